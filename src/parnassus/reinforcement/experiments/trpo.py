"""TRPO: natural gradient steps within a KL trust region (book sec. 18.5).

Several independent learners, each with its own weights and environments, are trained in one process.
"""

from dataclasses import dataclass
from functools import partial

import torch
from torch.optim import Adam

from parnassus.data.setting_types import EnvironmentId
from parnassus.reinforcement.agents.actor_critic import ActorCritic
from parnassus.reinforcement.agents.multi_learner import MultiLearnerActor
from parnassus.reinforcement.agents.ppo import minibatches
from parnassus.reinforcement.agents.settings import num_updates, resolve_settings
from parnassus.reinforcement.agents.trpo import TUNED, Settings, trust_region_update
from parnassus.reinforcement.commands.evaluate_agents import EvaluateAgents as Evaluate  # noqa: F401 - declares `parnassus evaluate`
from parnassus.reinforcement.experience.collector import Collector
from parnassus.reinforcement.experience.rollout_batch import estimate_advantages
from parnassus.reinforcement.figures.learning_curves import plot_divergences
from parnassus.reinforcement.figures.training_report import report_evaluation
from parnassus.train import NonNegative, Positive, Run, UnitInterval, at_least, at_most, no_band

covers = ("B18.1-1", "B18.5-1", "B18.5-2")
expected = {
    "return_mean": at_least(470.0, "mean return of episodes with the most likely actions"),
    "return_iqm": at_least(490.0, "interquartile mean over the learners"),
    "return_worst": no_band("mean return of the worst learner"),
    "solved": at_least(0.8, "fraction of learners above gymnasium's reward threshold; 0 where there is none"),
    "largest_kl": at_most(0.01, "largest mean KL divergence of a policy update"),
    "moved": at_least(0.9, "fraction of updates in which a step was accepted"),
    "steps_per_second": no_band("environment steps per second of all learners, training included"),
}
profiles = {
    "smoke": {"total_timesteps": 512, "n_envs": 4, "n_steps": 32, "n_epochs": 2, "num_learners": 2, "eval_episodes": 2},
    "gpu": {"n_envs": 512, "total_timesteps": 5_000_000, "batch_size": 4_096},
}


@dataclass(frozen=True)
class Experiment(MultiLearnerActor):
    env: EnvironmentId = "CartPole-v1"  # an environment of gymnasium
    use_gymnasium: bool = False  # use gymnasium's implementation even where there is one in tensors
    num_workers: NonNegative[int] = 0  # processes that share gymnasium's environments; 0 for none
    num_learners: Positive[int] = 5  # independent learners (seeds), trained side by side
    eval_episodes: Positive[int] = 100  # evaluation episodes per learner after training
    total_timesteps: Positive[int] | None = None  # environment steps per learner (None here and below: tuned for env)
    n_envs: Positive[int] | None = None  # environments per learner
    n_steps: Positive[int] | None = None  # steps per environment between updates
    target_kl: Positive[float] | None = None  # δ, largest KL divergence of an update
    cg_damping: NonNegative[float] | None = None  # damping added to the Fisher matrix
    cg_max_steps: Positive[int] | None = None  # largest number of conjugate gradient steps
    batch_size: Positive[int] | None = None  # rows per minibatch of the critic
    n_epochs: Positive[int] | None = None  # passes of the critic over each rollout
    learning_rate: Positive[float] | None = None  # learning rate of Adam for the critic
    gamma: UnitInterval | None = None  # discount factor
    gae_lambda: UnitInterval | None = None  # λ of generalised advantage estimation

    def model(self) -> ActorCritic:
        return self.actor_critic()

    @property
    def settings(self) -> Settings:
        return resolve_settings(TUNED.get(self.env, Settings()), self)

    def __call__(self, run: Run) -> dict[str, float]:
        self.require_single_process(run.world)
        settings = self.settings
        environments = self.make_environments(settings.n_envs * self.num_learners, run.device)
        collector = Collector(environments, self.num_learners)
        model, optimizer = run.prepare(run.build(self.model), partial(Adam, lr=settings.learning_rate, fused=True))
        run.keep("collector", collector)

        for _ in run.steps(num_updates(settings.total_timesteps, settings.n_envs, settings.n_steps)):
            experience = collector.collect(lambda x: self.act(model, x, sample_actions=True), settings.n_steps)
            rollout = estimate_advantages(model, experience, gamma=settings.gamma, gae_lambda=settings.gae_lambda)
            statistics = trust_region_update(
                model,
                rollout,
                target_kl=settings.target_kl,
                cg_damping=settings.cg_damping,
                cg_max_steps=settings.cg_max_steps,
            )
            for batch in minibatches(rollout, settings.batch_size, settings.n_epochs):
                # values depend only on the critic's part of the stacks: the gradient of the actor's is 0
                run.update(optimizer, (model.values(batch.observations) - batch.returns).square().mean(1).sum())
            run.record(
                collector.steps,
                **collector.progress,
                **{f"kl/{i}": kl for i, kl in enumerate(statistics.kl.tolist(), 1)},
            )

        divergences = {f"learner {i + 1}": run.curve(f"kl/{i + 1}") for i in range(self.num_learners)}
        kls = torch.tensor([kl for _, own in divergences.values() for kl in own])
        run.figure(
            "kl",
            plot_divergences(divergences, threshold=settings.target_kl),
            "KL(old ‖ new) at every update, averaged over the states of the rollout; 0 where no step was accepted.",
        )
        return {
            **report_evaluation(run, self, model, collector.steps),
            "largest_kl": float(kls.max()),
            "moved": float((kls > 0).double().mean()),
        }
