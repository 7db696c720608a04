"""Proximal policy optimisation in the form of an estimator."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from numpy.typing import NDArray

from parnassus.arrays import ArrayLike, as_tensor
from parnassus.estimators.inline_figure import InlineFigure
from parnassus.estimators.training import temporary_seed, training_run
from parnassus.reinforcement.agents.actor_critic import ActorCritic
from parnassus.reinforcement.agents.multi_learner import num_updates
from parnassus.reinforcement.agents.ppo import TUNED, PPOSettings, minibatches, ppo_loss
from parnassus.reinforcement.environments import Environments, make_environments
from parnassus.reinforcement.evaluation.episode_returns import episode_returns
from parnassus.reinforcement.experience.collector import Collector
from parnassus.reinforcement.experience.rollout_batch import estimate_advantages
from parnassus.reinforcement.experience.running_statistics import RewardNormaliser, normalise_rewards
from parnassus.reinforcement.fast.flat_adam import FlatAdam
from parnassus.reinforcement.figures.learning_curves import plot_learning_curves
from parnassus.train import Run


class PPO:
    """PPO on a Gymnasium environment (book sec. 18.5).

    `env` is its id, or a function from a number of copies to environments. `settings` are by default those tuned for
    it.

    >>> from parnassus.estimators import PPO
    >>> agent = PPO("CartPole-v1", verbose=False).fit(2_048)
    >>> int(agent.act([0.0, 0.0, 0.1, 0.0])) in (0, 1)
    True
    >>> agent.evaluate(5).shape
    (5,)
    """

    def __init__(
        self,
        env: str | Callable[[int], Environments] = "CartPole-v1",
        settings: PPOSettings | None = None,
        *,
        random_state: int = 0,
        device: str = "cpu",
        verbose: bool = True,
    ) -> None:
        tuned: dict[str, Any] = TUNED.get(env, {}) if isinstance(env, str) else {}
        self.env = env
        self.settings = settings or PPOSettings(**tuned)
        self.random_state = random_state
        self.device = device
        self.verbose = verbose
        self.returns_: tuple[list[int], list[float]] = ([], [])

    def fit(self, total_timesteps: int | None = None) -> "PPO":
        """Train for this many environment steps, from new random weights."""
        settings = replace(self.settings, total_timesteps=total_timesteps or self.settings.total_timesteps)
        with training_run(self.random_state, self.device, verbose=self.verbose) as run:
            self.model_ = self._train(run, settings)
            self.returns_ = run.curve("return/1")
        return self

    def _train(self, run: Run, settings: PPOSettings) -> ActorCritic:
        environments = self._environments(settings.n_envs, run.device)
        model = ActorCritic(environments.features, environments.actions, normalize_observations=settings.normalize)
        make_optimizer = partial(FlatAdam, lr=settings.learning_rate, eps=1e-5, max_norm=settings.max_grad_norm)
        model, optimizer = run.prepare(model, make_optimizer)
        collector = Collector(environments)
        normaliser = RewardNormaliser(1, settings.n_envs, settings.gamma).to(run.device) if settings.normalize else None
        updates = num_updates(settings.total_timesteps, settings.n_envs, settings.n_steps)
        for update, _ in run.steps(updates):
            remaining = 1 - update / updates
            optimizer.param_groups[0]["lr"] = remaining * settings.learning_rate
            experience = collector.collect(lambda x: model.distribution(x).sample(), settings.n_steps)
            rollout = estimate_advantages(
                model,
                normalise_rewards(normaliser, experience),
                gamma=settings.gamma,
                gae_lambda=settings.gae_lambda,
            )
            for batch in minibatches(rollout, settings.batch_size, settings.n_epochs):
                loss = ppo_loss(
                    model,
                    batch,
                    clip_range=max(remaining * settings.clip_range, 1e-3),
                    vf_coef=settings.vf_coef,
                    ent_coef=settings.ent_coef,
                )
                run.update(optimizer, loss.sum())
            if model.observation_statistics is not None:
                model.observation_statistics.update(rollout.observations)
            run.record(collector.steps, **collector.metrics)
        return model

    @torch.no_grad()
    def act(self, observation: ArrayLike, *, sample_actions: bool = False) -> NDArray[Any]:
        """The most probable action in a state or in each row of states; with `sample_actions`, a random one."""
        self._check_fitted()
        x = as_tensor(observation, "observation").float()
        if x.dim() not in (1, 2):
            raise ValueError(f"observation must be one state or rows of states; got shape {tuple(x.shape)}")
        distribution = self.model_.distribution(torch.atleast_2d(x)[None].to(next(self.model_.parameters()).device))
        actions = (distribution.sample() if sample_actions else distribution.mode())[0]
        return (actions if x.dim() == 2 else actions[0]).cpu().numpy()

    def evaluate(self, n_eval_episodes: int = 10, *, random_state: int = 0) -> NDArray[Any]:
        """The returns of complete episodes with the most probable actions."""
        self._check_fitted()
        with temporary_seed(random_state):
            environments = self._environments(n_eval_episodes, next(self.model_.parameters()).device)
            return episode_returns(environments, lambda x: self.model_.distribution(x).mode())[0].cpu().numpy()

    def plot_returns(self) -> InlineFigure:
        """The mean return of the last hundred training episodes against the environment steps."""
        return InlineFigure(plot_learning_curves({"learner 1": self.returns_}))

    def __repr__(self) -> str:
        name = repr(self.env) if isinstance(self.env, str) else "environments"
        steps, returns = self.returns_
        trained = f"{steps[-1]:,} steps, return {returns[-1]:.4g}" if steps else "not fitted"
        return f"PPO({name}: {trained})"

    def _repr_html_(self) -> str:
        figure = self.plot_returns()._repr_html_() if self.returns_[0] else ""
        return f"<p>{self!r}</p>{figure}"

    def _environments(self, count: int, device: torch.device) -> Environments:
        return make_environments(self.env, count, device=device) if isinstance(self.env, str) else self.env(count)

    def _check_fitted(self) -> None:
        if not hasattr(self, "model_"):
            raise ValueError("this PPO is not fitted: call fit(total_timesteps) first")
