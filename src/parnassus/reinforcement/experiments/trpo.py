"""TRPO: natural gradient steps within a KL trust region (book sec. 18.5).

Several independent learners, each with its own weights and environments, are trained in one process.
"""

from dataclasses import dataclass
from functools import partial

import torch
from torch.optim import Adam

from parnassus.reinforcement.agents.actor_critic import ActorCritic
from parnassus.reinforcement.agents.multi_learner import MultiLearnerActor, num_updates
from parnassus.reinforcement.agents.ppo import minibatches
from parnassus.reinforcement.agents.trpo import TUNED, TRPOSettings, trust_region_update
from parnassus.reinforcement.commands.actor_training import prepare_actor_training
from parnassus.reinforcement.commands.evaluate_agents import EvaluateAgents as Evaluate  # noqa: F401 - declares `parnassus evaluate`
from parnassus.reinforcement.experience.rollout_batch import estimate_advantages
from parnassus.reinforcement.figures.learning_curves import plot_divergences
from parnassus.reinforcement.figures.training_report import report_evaluation
from parnassus.train import Run, at_least, at_most, no_band

covers = ("B18.1-1", "B18.5-1", "B18.5-2")
expected = {
    "return_mean": at_least(470.0, "mean return of episodes with the most probable actions"),
    "return_iqm": at_least(490.0, "interquartile mean of the return over learners"),
    "return_worst": no_band("mean return of the worst learner"),
    "solved": at_least(0.8, "fraction of learners above Gymnasium's reward threshold; 0 if there is none"),
    "largest_kl": at_most(0.01, "maximum mean KL divergence of a policy update"),
    "moved": at_least(0.9, "fraction of updates in which a step was accepted"),
    "steps_per_second": no_band("environment steps per second of all learners, training included"),
}
profiles = {
    "smoke": {
        "total_timesteps": 512,
        "n_envs": 4,
        "n_steps": 32,
        "n_epochs": 2,
        "num_learners": 2,
        "n_eval_episodes": 2,
    },
    "gpu": {"n_envs": 512, "total_timesteps": 5_000_000, "batch_size": 4_096},
}
tuned = {"env": TUNED}


@dataclass(frozen=True)
class Experiment(TRPOSettings, MultiLearnerActor):
    def model(self) -> ActorCritic:
        return self.actor_critic()

    def __call__(self, run: Run) -> dict[str, float]:
        make_optimizer = partial(Adam, lr=self.learning_rate, fused=True)
        model, optimizer, collector = prepare_actor_training(run, self, make_optimizer)

        for _ in run.steps(num_updates(self.total_timesteps, self.n_envs, self.n_steps)):
            experience = collector.collect(lambda x: self.act(model, x, sample_actions=True), self.n_steps)
            rollout = estimate_advantages(model, experience, gamma=self.gamma, gae_lambda=self.gae_lambda)
            statistics = trust_region_update(
                model,
                rollout,
                target_kl=self.target_kl,
                cg_damping=self.cg_damping,
                cg_max_steps=self.cg_max_steps,
            )
            for batch in minibatches(rollout, self.batch_size, self.n_epochs):
                # values depend only on the critic's part of the stacks: the gradient of the actor's is 0
                run.update(optimizer, (model.values(batch.observations) - batch.returns).square().mean(1).sum())
            run.record(
                collector.steps,
                **collector.metrics,
                **{f"kl/{i}": kl for i, kl in enumerate(statistics.kl.tolist(), 1)},
            )

        divergences = {f"learner {i + 1}": run.curve(f"kl/{i + 1}") for i in range(self.num_learners)}
        kls = torch.tensor([kl for _, own in divergences.values() for kl in own])
        run.figure(
            "kl",
            plot_divergences(divergences, threshold=self.target_kl),
            "KL(old ‖ new) at every update, averaged over the states of the rollout; 0 where no step was accepted.",
        )
        return {
            **report_evaluation(run, self, model, collector.steps),
            "largest_kl": float(kls.max()),
            "moved": float((kls > 0).double().mean()),
        }
