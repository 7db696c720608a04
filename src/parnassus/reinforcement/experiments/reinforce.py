"""REINFORCE on complete episodes, with and without a learned baseline (book sec. 18.4).

Learners of both kinds are trained in one process. All have a critic; half of them use it as a baseline.
"""

from dataclasses import dataclass
from functools import partial
from math import isfinite

import torch
from torch import Tensor, nn
from torch.optim import Adam

from parnassus.reinforcement.agents.actor_critic import ActorCritic
from parnassus.reinforcement.agents.actor_parameters import ActorParameters
from parnassus.reinforcement.agents.multi_learner import MultiLearnerActor
from parnassus.reinforcement.agents.reinforce import (
    EpisodeBatch,
    collect_episodes,
    gradient_variance,
    reinforce_objective,
    reinforce_weights,
    sample_critic_batch,
)
from parnassus.reinforcement.commands.evaluate_agents import EvaluateAgents as Evaluate  # noqa: F401 - declares `parnassus evaluate`
from parnassus.reinforcement.evaluation.episode_returns import episode_returns
from parnassus.reinforcement.experience.rollout_batch import group_by_learner, group_by_step
from parnassus.reinforcement.figures.learning_curves import learners_table
from parnassus.report import curves
from parnassus.train import Positive, Run, UnitInterval, at_least, at_most, no_band

covers = ("B18.1-1", "B18.4-1", "B18.4-2")
expected = {
    "return_with_baseline": at_least(400.0, "mean return with a baseline, most probable actions"),
    "return_without_baseline": no_band("mean return without a baseline, most probable actions"),
    "training_return_with_baseline": no_band("mean return of all training episodes, with a baseline"),
    "training_return_without_baseline": no_band("mean return of all training episodes, without a baseline"),
    "variance_ratio": at_most(0.3, "median ratio of the gradient variance with the baseline to that without"),
}
profiles = {
    "smoke": {"num_updates": 2, "n_envs": 2, "num_learners": 2, "n_eval_episodes": 2},
    "gpu": {"n_envs": 64, "num_updates": 120},
}

VARIANCE_INTERVAL = 5  # updates between two measurements of the gradient variance


@dataclass(frozen=True)
class Experiment(MultiLearnerActor):
    num_learners: Positive[int] = 6  # independent learners (seeds), the first half without a baseline
    num_updates: Positive[int] = 60  # gradient steps of the actor
    n_envs: Positive[int] = 8  # episodes per learner and update
    learning_rate: Positive[float] = 1e-2  # learning rate of Adam for the actor
    critic_learning_rate: Positive[float] = 1e-2  # learning rate of Adam for the critic
    critic_steps: Positive[int] = 20  # gradient steps of the critic per update
    batch_size: Positive[int] = 256  # states per gradient step of the critic
    gamma: UnitInterval = 0.99  # discount factor

    def model(self) -> ActorCritic:
        return self.actor_critic()

    @property
    def num_without_baseline(self) -> int:
        """Number of learners without a baseline."""
        if self.num_learners < 2:
            raise ValueError(f"num_learners must be at least 2, for both kinds of learners; got {self.num_learners}")
        return (self.num_learners + 1) // 2

    def __call__(self, run: Run) -> dict[str, float]:
        self.check_single_process(run.world_size)
        model, optimizer = run.prepare(run.build(self.model), partial(Adam, lr=self.critic_learning_rate, fused=True))
        actor = ActorParameters(model)
        theta = nn.Parameter(actor.read())
        actor_optimizer = Adam([theta], lr=self.learning_rate, maximize=True)
        run.keep("actor", nn.ParameterList([theta]))
        run.keep("actor_optimizer", actor_optimizer)
        environments = self.make_environments(self.num_learners * self.n_envs, run.device)
        use_baseline = (torch.arange(self.num_learners, device=run.device) >= self.num_without_baseline).float()

        for update, _ in run.steps(self.num_updates):
            episodes = collect_episodes(
                environments, lambda x: self.act(model, x, sample_actions=True), self.num_learners
            )
            with torch.no_grad():
                values = model.values(group_by_learner(episodes.observations))
                values = group_by_step(values, len(episodes.rewards)).view_as(episodes.rewards)
            weights = reinforce_weights(episodes, use_baseline[:, None] * values, gamma=self.gamma)
            theta.grad = actor.gradient(reinforce_objective(model, episodes, weights).mean(1).sum())
            if update % VARIANCE_INTERVAL == 0:
                ratios = enumerate(self.variance_ratios(model, episodes, values).tolist(), 1)
                run.record(update, **{f"variance_ratio/{i}": ratio for i, ratio in ratios if isfinite(ratio)})
            actor_optimizer.step()
            actor.write(theta.detach())
            for _ in range(self.critic_steps):
                states, returns = sample_critic_batch(episodes, self.batch_size, gamma=self.gamma)
                run.update(optimizer, (model.values(states) - returns).square().mean(1).sum())
            mean_returns = enumerate(episodes.total_rewards.mean(1).tolist(), 1)
            run.record(update, **{f"return/{i}": mean for i, mean in mean_returns})

        eval_environments = self.make_environments(self.num_learners * self.n_eval_episodes, run.device)
        eval_returns = episode_returns(eval_environments, lambda x: self.act(model, x), self.num_learners)
        training_returns = torch.tensor([run.curve(f"return/{i + 1}")[1] for i in range(self.num_learners)])
        variance_ratios = self.recorded_variance_ratios(run)
        self.plot(run, training_returns, variance_ratios)
        run.table(
            "learners",
            learners_table(eval_returns),
            f"{self.n_eval_episodes} evaluation episodes each, with the most probable actions; the first "
            f"{self.num_without_baseline} were trained without a baseline.",
        )
        without, with_baseline = eval_returns.mean(1).chunk(2)
        training_without, training_with_baseline = training_returns.mean(1).chunk(2)
        return {
            "return_with_baseline": float(with_baseline.mean()),
            "return_without_baseline": float(without.mean()),
            "training_return_with_baseline": float(training_with_baseline.mean()),
            "training_return_without_baseline": float(training_without.mean()),
            "variance_ratio": float(variance_ratios.nanmedian().nan_to_num(1.0)),  # 1 where all variances were 0
        }

    def variance_ratios(self, model: ActorCritic, episodes: EpisodeBatch, values: Tensor) -> Tensor:
        """Ratio of the gradient variances with the critic as baseline and without, on the same episodes, per learner.

        NaN where the variance without a baseline is 0, as for equal episodes.
        """
        with_baseline, without = (
            gradient_variance(model, episodes, reinforce_weights(episodes, baseline, gamma=self.gamma))
            for baseline in (values, 0.0)
        )
        return torch.where(without > 0, with_baseline / without, torch.nan)

    def recorded_variance_ratios(self, run: Run) -> Tensor:
        """The recorded variance ratios of each learner."""
        measurements = len(range(0, self.num_updates, VARIANCE_INTERVAL))
        found = torch.full((self.num_learners, measurements), torch.nan)
        for learner, row in enumerate(found):
            updates, ratios = run.curve(f"variance_ratio/{learner + 1}")
            row[torch.tensor(updates, dtype=torch.int64) // VARIANCE_INTERVAL] = torch.tensor(ratios)
        return found

    def plot(self, run: Run, returns: Tensor, variance_ratios: Tensor) -> None:
        groups = dict(zip(("without a baseline", "with a baseline"), returns.chunk(2), strict=True))
        updates = torch.arange(self.num_updates)
        run.figure(
            "return",
            curves(
                {name: (updates, group.mean(0)) for name, group in groups.items()},
                x_label="updates",
                y_label=f"return, mean of {self.n_envs} episodes per learner",
                bands={name: (group.min(0).values, group.max(0).values) for name, group in groups.items()},
            ),
            f"{self.env}, sampled actions: mean and range over the learners of each kind.",
        )
        if bool(variance_ratios.isnan().all()):
            return
        kinds = ("trained without a baseline", "trained with a baseline")
        groups = dict(zip(kinds, variance_ratios.chunk(2), strict=True))
        run.figure(
            "variance_ratio",
            curves(
                {name: (updates[::VARIANCE_INTERVAL], group.nanmedian(0).values) for name, group in groups.items()},
                x_label="updates",
                y_label="variance ratio, with to without baseline",
                log_y=True,
            ),
            "Ratio of the variances of the one-episode gradient with weights G − v and G, on the same episodes; "
            "median over the learners. An untrained critic leaves the ratio near 1.",
        )
