"""A2C: one actor-critic update for each rollout of parallel environments (book sec. 18.5).

Several independent learners, each with its own weights and environments, are trained in one process.
"""

from dataclasses import dataclass
from functools import partial

from parnassus.data.setting_types import EnvironmentId
from parnassus.reinforcement.agents.a2c import TUNED, Settings, a2c_loss
from parnassus.reinforcement.agents.actor_critic import ActorCritic
from parnassus.reinforcement.agents.multi_learner import MultiLearnerActor
from parnassus.reinforcement.agents.settings import num_updates, resolve_settings
from parnassus.reinforcement.commands.evaluate_agents import EvaluateAgents as Evaluate  # noqa: F401 - declares `parnassus evaluate`
from parnassus.reinforcement.experience.collector import Collector
from parnassus.reinforcement.experience.rollout_batch import estimate_advantages, visited_states
from parnassus.reinforcement.experience.running_statistics import RewardNormaliser, normalise_rewards
from parnassus.reinforcement.fast.a2c_backward import a2c_backward
from parnassus.reinforcement.fast.flat_rmsprop import FlatRMSprop
from parnassus.reinforcement.figures.training_report import report_evaluation
from parnassus.train import NonNegative, Positive, Run, UnitInterval, at_least, no_band

covers = ("B18.1-1", "B18.5-1")
expected = {
    "return_mean": at_least(470.0, "mean return of episodes with the most likely actions"),
    "return_iqm": at_least(490.0, "interquartile mean over the learners"),
    "return_worst": no_band("mean return of the worst learner"),
    "solved": at_least(0.8, "fraction of learners above gymnasium's reward threshold; 0 where there is none"),
    "steps_per_second": no_band("environment steps per second of all learners, training included"),
}
profiles = {
    "smoke": {"total_timesteps": 512, "num_learners": 2, "eval_episodes": 2},
    "gpu": {"n_envs": 512, "total_timesteps": 10_000_000},
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
    learning_rate: Positive[float] | None = None  # initial learning rate of RMSprop; decreases linearly to 0
    gamma: UnitInterval | None = None  # discount factor
    gae_lambda: UnitInterval | None = None  # λ of generalised advantage estimation
    ent_coef: NonNegative[float] | None = None  # entropy coefficient of the loss
    normalize: bool | None = None  # normalise observations and rewards by running statistics
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
            FlatRMSprop, lr=settings.learning_rate, alpha=0.99, eps=1e-5, max_norm=0.5, num_learners=self.num_learners
        )
        model, optimizer = run.prepare(model, make_optimizer)
        run.keep("collector", collector)
        if normaliser is not None:
            run.keep("scale", normaliser.to(run.device))

        updates = num_updates(settings.total_timesteps, settings.n_envs, settings.n_steps)
        for update, _ in run.steps(updates):
            optimizer.param_groups[0]["lr"] = (1 - update / updates) * settings.learning_rate
            experience = collector.collect(lambda x: self.act(model, x, sample_actions=True), settings.n_steps)
            experience = normalise_rewards(normaliser, experience)
            trace = model.forward_with_trace(visited_states(experience))
            batch = estimate_advantages(model, experience, trace, gamma=settings.gamma, gae_lambda=settings.gae_lambda)
            optimizer.zero_grad()
            if self.fast_backward:
                a2c_backward(model, batch, trace, ent_coef=settings.ent_coef)
            else:
                a2c_loss(model, batch, ent_coef=settings.ent_coef).sum().backward()
            optimizer.step()
            if model.observation_statistics is not None:
                model.observation_statistics.update(batch.observations)
            if update % max(1, updates // 200) == 0 or update == updates - 1:
                run.record(collector.steps, **collector.progress)
        return report_evaluation(run, self, model, collector.steps)
