"""PPO: several epochs of clipped policy updates on each rollout (book sec. 18.5).

Several independent learners, each with its own weights and environments, are trained in one process.
"""

from dataclasses import dataclass
from functools import partial

from parnassus.reinforcement.agents.actor_critic import ActorCritic
from parnassus.reinforcement.agents.multi_learner import MultiLearnerActor, num_updates
from parnassus.reinforcement.agents.ppo import TUNED, PPOSettings, minibatches, ppo_loss
from parnassus.reinforcement.commands.actor_training import prepare_actor_training, prepare_reward_normaliser
from parnassus.reinforcement.commands.evaluate_agents import EvaluateAgents as Evaluate  # noqa: F401 - declares `parnassus evaluate`
from parnassus.reinforcement.evaluation.stop_on_reward_threshold import StopOnRewardThreshold
from parnassus.reinforcement.experience.rollout_batch import estimate_advantages
from parnassus.reinforcement.experience.running_statistics import normalise_rewards
from parnassus.reinforcement.fast.flat_adam import FlatAdam
from parnassus.reinforcement.fast.ppo_backward import ppo_backward
from parnassus.reinforcement.figures.training_report import report_evaluation
from parnassus.train import Run, at_least, no_band

covers = ("B18.1-1", "B18.5-1", "B18.5-3")
expected = {
    "return_mean": at_least(450.0, "mean return of episodes with the most probable actions"),
    "return_iqm": at_least(475.0, "interquartile mean of the return over learners"),
    "return_worst": no_band("mean return of the worst learner"),
    "solved": at_least(0.8, "fraction of learners above Gymnasium's reward threshold; 0 if there is none"),
    "steps_per_second": no_band("environment steps per second of all learners, training included"),
}
profiles = {
    "smoke": {"total_timesteps": 1_024, "num_learners": 2, "n_eval_episodes": 2},
    "gpu": {"n_envs": 512, "total_timesteps": 1_000_000, "batch_size": 4_096},
}
tuned = {"env": TUNED}


@dataclass(frozen=True)
class Experiment(PPOSettings, MultiLearnerActor):
    stop_on_reward_threshold: bool = False  # stop as soon as all learners have solved the environment
    fast_backward: bool = False  # compute the gradient of the loss by hand instead of by autograd; equal up to rounding

    def model(self) -> ActorCritic:
        return self.actor_critic(normalize_observations=self.normalize)

    def __call__(self, run: Run) -> dict[str, float]:
        make_optimizer = partial(
            FlatAdam,
            lr=self.learning_rate,
            eps=1e-5,
            max_norm=self.max_grad_norm,
            num_learners=self.num_learners,
        )
        model, optimizer, collector = prepare_actor_training(run, self, make_optimizer)
        normaliser = prepare_reward_normaliser(run, self)

        stop = StopOnRewardThreshold(self, run.device) if self.stop_on_reward_threshold else None
        coefficients = {"vf_coef": self.vf_coef, "ent_coef": self.ent_coef}
        updates = num_updates(self.total_timesteps, self.n_envs, self.n_steps)
        for update, _ in run.steps(updates):
            remaining = 1 - update / updates
            optimizer.param_groups[0]["lr"] = remaining * self.learning_rate
            clip_range = max(remaining * self.clip_range, 1e-3)
            experience = collector.collect(lambda x: self.act(model, x, sample_actions=True), self.n_steps)
            experience = normalise_rewards(normaliser, experience)
            rollout = estimate_advantages(model, experience, gamma=self.gamma, gae_lambda=self.gae_lambda)
            for batch in minibatches(rollout, self.batch_size, self.n_epochs):
                optimizer.zero_grad()
                if self.fast_backward:
                    ppo_backward(model, batch, clip_range=clip_range, **coefficients)
                else:
                    ppo_loss(model, batch, clip_range=clip_range, **coefficients).sum().backward()
                optimizer.step()
            if model.observation_statistics is not None:
                model.observation_statistics.update(rollout.observations)
            solved = stop is not None and stop.is_solved(collector, model)
            if solved or update % max(1, updates // 200) == 0 or update == updates - 1:
                run.record(collector.steps, **collector.metrics)
            if solved:
                break
        if stop is None:
            return report_evaluation(run, self, model, collector.steps)
        run.note("solved", stop.describe(collector.steps, run.seconds))
        return report_evaluation(run, self, model, collector.steps, returns=stop.returns)
