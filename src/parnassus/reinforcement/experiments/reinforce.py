"""REINFORCE learns to act from whole episodes, with and without a baseline (book sec. 18.4).

Learners of both kinds go side by side in one process. All have a critic; only one half lets it speak.
"""

from dataclasses import dataclass
from functools import partial
from math import isfinite

import torch
from torch import Tensor, nn
from torch.optim import Adam

from parnassus.reinforcement.actor_critic import ActorCritic
from parnassus.reinforcement.actor_vector import ActorVector
from parnassus.reinforcement.agent import Actor
from parnassus.reinforcement.evaluation import episode_returns
from parnassus.reinforcement.judged import by_learner, by_step
from parnassus.reinforcement.whole_episodes import (
    Episodes,
    critic_rows,
    reinforce_objective,
    reinforce_weights,
    slope_variance,
    whole_episodes,
)
from parnassus.report import curves
from parnassus.report.learning import learners_table
from parnassus.train import Run, at_least, at_most, reported

covers = ("B18.1-1", "B18.4-1", "B18.4-2")
expected = {
    "return_with": at_least(400.0, "mean return of whole episodes, learners with a baseline, the best action always"),
    "return_without": reported("the same, learners without a baseline"),
    "area_with": reported("mean return of all episodes played while learning, with a baseline"),
    "area_without": reported("the same without"),
    "variance_share": at_most(0.3, "variance of the gradient with the baseline, as a share of that without; median"),
}
profiles = {"smoke": {"updates": 2, "copies": 2, "learners": 2, "episodes": 2}, "gpu": {"copies": 64, "updates": 120}}

MEASURED = 5  # updates between two measurements of the variance


@dataclass(frozen=True)
class Experiment(Actor):
    env: str = "CartPole-v1"  # any environment of gymnasium; the classic ones are also written in tensors
    gym: bool = False  # use gymnasium's even where there is one in tensors
    workers: int = 0  # processes that share gymnasium's copies; 0 for this one alone
    learners: int = 6  # seeds that learn side by side, the first half of them without a baseline
    episodes: int = 100  # of each learner, to judge it in the end
    updates: int = 60  # steps of ascent
    copies: int = 8  # episodes of each learner between updates
    lr: float = 1e-2  # Adam's learning rate for the actor
    critic_lr: float = 1e-2  # the same for the critic
    critic_steps: int = 20  # of the critic, between updates
    batch: int = 256  # states the critic sees at a step
    discount: float = 0.99  # what a reward a step later counts

    def model(self) -> ActorCritic:
        return self.actor_critic()

    @property
    def without(self) -> int:
        """How many learn without a baseline."""
        if self.learners < 2:
            raise ValueError(f"with and without a baseline there are two learners at least; got {self.learners}")
        return (self.learners + 1) // 2

    def __call__(self, run: Run) -> dict[str, float]:
        self.demand_one_process(run.world)
        model, optimizer = run.prepare(run.build(self.model), partial(Adam, lr=self.critic_lr, fused=True))
        actor = ActorVector(model)
        theta = nn.Parameter(actor.read())
        ascent = Adam([theta], lr=self.lr, maximize=True)
        run.keep("ascent", ascent)
        worlds = self.worlds(self.learners * self.copies, run.device)
        heard = (torch.arange(self.learners, device=run.device) >= self.without).float()[:, None]

        for update, _ in run.steps(self.updates):
            seen = whole_episodes(worlds, lambda x: self.act(model, x, drawn=True), self.learners)
            with torch.no_grad():
                values = by_step(model.values(by_learner(seen.observations)), len(seen.rewards)).view_as(seen.rewards)
            weights = reinforce_weights(seen, heard * values, discount=self.discount)
            theta.grad = actor.slope(reinforce_objective(model, seen, weights).mean(1).sum())
            if update % MEASURED == 0:
                shares = self.shares(model, seen, values)
                run.record(update, **{f"share/{i}": own for i, own in enumerate(shares.tolist(), 1) if isfinite(own)})
            ascent.step()
            actor.write(theta.detach())
            for _ in range(self.critic_steps):
                states, returned = critic_rows(seen, self.batch, discount=self.discount)
                run.update(optimizer, (model.values(states) - returned).square().mean(1).sum())
            run.record(update, **{f"return/{i}": mean for i, mean in enumerate(seen.scores.mean(1).tolist(), 1)})

        judging = self.worlds(self.learners * self.episodes, run.device)
        returns = episode_returns(judging, lambda x: self.act(model, x), self.learners)
        played = torch.tensor([run.curve(f"return/{i + 1}")[1] for i in range(self.learners)])
        shares = self.measured(run)
        self.draw(run, played, shares)
        run.table(
            "learners",
            learners_table(returns),
            f"{self.episodes} episodes each, the likeliest action always; the first {self.without} had no baseline.",
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

    def shares(self, model: ActorCritic, seen: Episodes, values: Tensor) -> Tensor:
        """What the baseline leaves of the variance of the gradient: the same policy, the same episodes.

        Not a number where all episodes are alike: there is no variance that it could lessen.
        """
        left, all_of_it = (
            slope_variance(model, seen, reinforce_weights(seen, baseline, discount=self.discount))
            for baseline in (values, 0.0)
        )
        return torch.where(all_of_it > 0, left / all_of_it, torch.nan)

    def measured(self, run: Run) -> Tensor:
        """The shares of each learner at every measurement, as they were recorded."""
        found = torch.full((self.learners, len(range(0, self.updates, MEASURED))), torch.nan)
        for learner, own in enumerate(found):
            updates, shares = run.curve(f"share/{learner + 1}")
            own[torch.tensor(updates, dtype=torch.int64) // MEASURED] = torch.tensor(shares)
        return found

    def draw(self, run: Run, played: Tensor, shares: Tensor) -> None:
        kinds = dict(zip(("without", "with a baseline"), played.chunk(2), strict=True))
        updates = torch.arange(self.updates)
        run.figure(
            "return",
            curves(
                {name: (updates, own.mean(0)) for name, own in kinds.items()},
                x_label="updates",
                y_label=f"return, mean of {self.copies} episodes a learner",
                bands={name: (own.min(0).values, own.max(0).values) for name, own in kinds.items()},
            ),
            f"{self.env}, actions drawn: the mean of the learners of each kind, and how far they differ.",
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
