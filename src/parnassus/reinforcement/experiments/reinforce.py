"""REINFORCE on complete episodes, with and without a learned baseline (book sec. 18.4).

Learners of both kinds are trained in one process. All have a critic; half of them use it as a baseline.
"""

from dataclasses import dataclass
from functools import partial
from math import isfinite

import torch
from torch import Tensor, nn
from torch.optim import Adam

from parnassus.data.setting_types import EnvironmentId
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
from parnassus.train import NonNegative, Positive, Run, at_least, at_most, no_band

covers = ("B18.1-1", "B18.4-1", "B18.4-2")
expected = {
    "return_with": at_least(400.0, "mean return with a baseline, most likely actions"),
    "return_without": no_band("mean return without a baseline"),
    "area_with": no_band("mean return over all training episodes, with a baseline"),
    "area_without": no_band("mean return over all training episodes, without a baseline"),
    "variance_share": at_most(0.3, "gradient variance with the baseline over that without; median"),
}
profiles = {
    "smoke": {"num_updates": 2, "n_envs": 2, "num_learners": 2, "eval_episodes": 2},
    "gpu": {"n_envs": 64, "num_updates": 120},
}

MEASURED = 5  # updates between two measurements of the variance


@dataclass(frozen=True)
class Experiment(MultiLearnerActor):
    env: EnvironmentId = "CartPole-v1"  # an environment of gymnasium
    use_gymnasium: bool = False  # use gymnasium's even where there is one in tensors
    num_workers: NonNegative[int] = 0  # processes that share gymnasium's copies; 0 for this one alone
    num_learners: Positive[int] = 6  # seeds that learn side by side, the first half of them without a baseline
    eval_episodes: Positive[int] = 100  # of each learner, to judge it in the end
    num_updates: Positive[int] = 60  # steps of ascent
    n_envs: Positive[int] = 8  # episodes of each learner between updates
    learning_rate: Positive[float] = 1e-2  # Adam's learning rate for the actor
    critic_learning_rate: Positive[float] = 1e-2  # the same for the critic
    critic_steps: Positive[int] = 20  # of the critic, between updates
    batch_size: Positive[int] = 256  # states the critic sees at a step
    gamma: float = 0.99  # what a reward a step later counts

    def model(self) -> ActorCritic:
        return self.actor_critic()

    @property
    def without(self) -> int:
        """Number of learners without a baseline."""
        if self.num_learners < 2:
            raise ValueError(f"num_learners must be at least 2, for both kinds of learners; got {self.num_learners}")
        return (self.num_learners + 1) // 2

    def __call__(self, run: Run) -> dict[str, float]:
        self.require_single_process(run.world)
        model, optimizer = run.prepare(run.build(self.model), partial(Adam, lr=self.critic_learning_rate, fused=True))
        actor = ActorParameters(model)
        theta = nn.Parameter(actor.read())
        ascent = Adam([theta], lr=self.learning_rate, maximize=True)
        run.keep("ascent", ascent)
        worlds = self.make_environments(self.num_learners * self.n_envs, run.device)
        heard = (torch.arange(self.num_learners, device=run.device) >= self.without).float()[:, None]

        for update, _ in run.steps(self.num_updates):
            seen = collect_episodes(worlds, lambda x: self.act(model, x, sample_actions=True), self.num_learners)
            with torch.no_grad():
                values = group_by_step(model.values(group_by_learner(seen.observations)), len(seen.rewards)).view_as(
                    seen.rewards
                )
            weights = reinforce_weights(seen, heard * values, gamma=self.gamma)
            theta.grad = actor.gradient(reinforce_objective(model, seen, weights).mean(1).sum())
            if update % MEASURED == 0:
                shares = self.shares(model, seen, values)
                run.record(update, **{f"share/{i}": own for i, own in enumerate(shares.tolist(), 1) if isfinite(own)})
            ascent.step()
            actor.write(theta.detach())
            for _ in range(self.critic_steps):
                states, returned = sample_critic_batch(seen, self.batch_size, gamma=self.gamma)
                run.update(optimizer, (model.values(states) - returned).square().mean(1).sum())
            run.record(update, **{f"return/{i}": mean for i, mean in enumerate(seen.total_rewards.mean(1).tolist(), 1)})

        judging = self.make_environments(self.num_learners * self.eval_episodes, run.device)
        returns = episode_returns(judging, lambda x: self.act(model, x), self.num_learners)
        played = torch.tensor([run.curve(f"return/{i + 1}")[1] for i in range(self.num_learners)])
        shares = self.recorded_variance_ratios(run)
        self.plot(run, played, shares)
        run.table(
            "learners",
            learners_table(returns),
            f"{self.eval_episodes} evaluation episodes each, with the most likely actions; the first {self.without} "
            "had no baseline.",
        )
        without, having = returns.mean(1).chunk(2)
        early, quiet = played.mean(1).chunk(2)
        return {
            "return_with": float(having.mean()),
            "return_without": float(without.mean()),
            "area_with": float(quiet.mean()),
            "area_without": float(early.mean()),
            "variance_share": float(shares.nanmedian().nan_to_num(1.0)),  # of no variance, nothing was taken
        }

    def shares(self, model: ActorCritic, seen: EpisodeBatch, values: Tensor) -> Tensor:
        """What the baseline leaves of the variance of the gradient: the same policy, the same episodes.

        Not a number where all episodes are alike: there is no variance that it could lessen.
        """
        left, all_of_it = (
            gradient_variance(model, seen, reinforce_weights(seen, baseline, gamma=self.gamma))
            for baseline in (values, 0.0)
        )
        return torch.where(all_of_it > 0, left / all_of_it, torch.nan)

    def recorded_variance_ratios(self, run: Run) -> Tensor:
        """The recorded variance ratios of each learner."""
        found = torch.full((self.num_learners, len(range(0, self.num_updates, MEASURED))), torch.nan)
        for learner, own in enumerate(found):
            updates, shares = run.curve(f"share/{learner + 1}")
            own[torch.tensor(updates, dtype=torch.int64) // MEASURED] = torch.tensor(shares)
        return found

    def plot(self, run: Run, played: Tensor, shares: Tensor) -> None:
        kinds = dict(zip(("without", "with a baseline"), played.chunk(2), strict=True))
        updates = torch.arange(self.num_updates)
        run.figure(
            "return",
            curves(
                {name: (updates, own.mean(0)) for name, own in kinds.items()},
                x_label="updates",
                y_label=f"return, mean of {self.n_envs} episodes per learner",
                bands={name: (own.min(0).values, own.max(0).values) for name, own in kinds.items()},
            ),
            f"{self.env}, sampled actions: mean and range over the learners of each kind.",
        )
        if bool(shares.isnan().all()):
            return
        kinds = dict(zip(("learned without", "learned with a baseline"), shares.chunk(2), strict=True))
        run.figure(
            "share",
            curves(
                {name: (updates[::MEASURED], own.nanmedian(0).values) for name, own in kinds.items()},
                x_label="updates",
                y_label="variance with the baseline / without",
                log_y=True,
            ),
            "Of the gradient that one episode gives, measured on the same episodes with G − v and with G; the median "
            "of the learners. Before the critic has learned anything it changes nothing.",
        )
