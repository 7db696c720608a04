"""PPO: several epochs of clipped policy updates on each rollout (book sec. 18.5).

Several independent learners, each with its own weights and environments, are trained in one process.
"""

from dataclasses import dataclass
from functools import partial

from parnassus.data.setting_types import EnvironmentId
from parnassus.reinforcement.agents.actor_critic import ActorCritic
from parnassus.reinforcement.agents.multi_learner import MultiLearnerActor
from parnassus.reinforcement.agents.ppo import TUNED, Settings, minibatches, ppo_loss
from parnassus.reinforcement.agents.settings import num_updates, resolve_settings
from parnassus.reinforcement.commands.evaluate_agents import EvaluateAgents as Evaluate  # noqa: F401 - declares `parnassus evaluate`
from parnassus.reinforcement.evaluation.stop_on_reward_threshold import StopOnRewardThreshold
from parnassus.reinforcement.experience.collector import Collector
from parnassus.reinforcement.experience.rollout_batch import estimate_advantages
from parnassus.reinforcement.experience.running_statistics import RewardNormaliser, normalise_rewards
from parnassus.reinforcement.fast.flat_adam import FlatAdam
from parnassus.reinforcement.fast.ppo_backward import ppo_backward
from parnassus.reinforcement.figures.training_report import report_evaluation
from parnassus.train import NonNegative, Positive, Run, UnitInterval, at_least, no_band

covers = ("B18.1-1", "B18.5-1", "B18.5-3")
expected = {
    "return_mean": at_least(450.0, "mean return of episodes with the most likely actions"),
    "return_iqm": at_least(475.0, "interquartile mean over the learners"),
    "return_worst": no_band("mean return of the worst learner"),
    "solved": at_least(0.8, "fraction of learners above gymnasium's reward threshold; 0 where there is none"),
    "steps_per_second": no_band("environment steps per second of all learners, training included"),
}
profiles = {
    "smoke": {"total_timesteps": 1_024, "num_learners": 2, "eval_episodes": 2},
    "gpu": {"n_envs": 512, "total_timesteps": 1_000_000, "batch_size": 4_096},
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
    batch_size: Positive[int] | None = None  # rows per minibatch
    n_epochs: Positive[int] | None = None  # passes over each rollout
    learning_rate: Positive[float] | None = None  # initial learning rate of Adam; decreases linearly to 0
    clip_range: Positive[float] | None = None  # clip range ε of the probability ratio; decreases linearly
    gamma: UnitInterval | None = None  # discount factor
    gae_lambda: UnitInterval | None = None  # λ of generalised advantage estimation
    ent_coef: NonNegative[float] | None = None  # entropy coefficient of the loss
    normalize: bool | None = None  # normalise observations and rewards by running statistics
    stop_when_solved: bool = False  # stop as soon as all learners have solved the environment
    fast_backward: bool = True  # use the hand-written gradient, equal to autograd's

    def model(self) -> ActorCritic:
        return self.actor_critic(normalize_observations=self.settings.normalize)

    @property
    def settings(self) -> Settings:
        return resolve_settings(TUNED.get(self.env, Settings()), self)

    def __call__(self, run: Run) -> dict[str, float]:
        self.require_single_process(run.world)
        settings = self.settings
        environments = self.make_environments(settings.n_envs * self.num_learners, run.device)
        collector = Collector(environments, self.num_learners)
        model = run.build(self.model)
        normaliser = (
            RewardNormaliser(self.num_learners, settings.n_envs, settings.gamma) if settings.normalize else None
        )
        make_optimizer = partial(
            FlatAdam, lr=settings.learning_rate, eps=1e-5, max_norm=0.5, num_learners=self.num_learners
        )
        model, optimizer = run.prepare(model, make_optimizer)
        run.keep("collector", collector)
        if normaliser is not None:
            run.keep("scale", normaliser.to(run.device))

        stop = StopOnRewardThreshold(self, run.device) if self.stop_when_solved else None
        updates = num_updates(settings.total_timesteps, settings.n_envs, settings.n_steps)
        for update, _ in run.steps(updates):
            remaining = 1 - update / updates
            optimizer.param_groups[0]["lr"] = remaining * settings.learning_rate
            clip_range = max(remaining * settings.clip_range, 1e-3)
            experience = collector.collect(lambda x: self.act(model, x, sample_actions=True), settings.n_steps)
            experience = normalise_rewards(normaliser, experience)
            rollout = estimate_advantages(model, experience, gamma=settings.gamma, gae_lambda=settings.gae_lambda)
            for batch in minibatches(rollout, settings.batch_size, settings.n_epochs):
                optimizer.zero_grad()
                if self.fast_backward:
                    ppo_backward(model, batch, clip_range=clip_range, ent_coef=settings.ent_coef)
                else:
                    ppo_loss(model, batch, clip_range=clip_range, ent_coef=settings.ent_coef).sum().backward()
                optimizer.step()
            if model.observation_statistics is not None:
                model.observation_statistics.update(rollout.observations)
            solved = stop is not None and stop.is_solved(collector, model)
            if solved or update % max(1, updates // 200) == 0 or update == updates - 1:
                run.record(collector.steps, **collector.progress)
            if solved:
                break
        if stop is None:
            return report_evaluation(run, self, model, collector.steps)
        run.note("solved", stop.describe(collector.steps, run.seconds))
        return report_evaluation(run, self, model, collector.steps, returns=stop.returns)
