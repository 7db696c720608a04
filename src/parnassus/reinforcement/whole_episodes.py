"""REINFORCE with networks: whole episodes, each action weighed by what followed (book sec. 18.4; Williams 1992)."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor

from parnassus.reinforcement.actor_critic import ActorCritic
from parnassus.reinforcement.actor_vector import ActorVector
from parnassus.reinforcement.environments.interface import Environments, endless
from parnassus.reinforcement.judged import by_learner
from parnassus.reinforcement.returns import discounted_returns


@dataclass(frozen=True)
class Episodes:
    """One episode in every copy of each learner, from its beginning to its end; `live` until then.

    An episode that a limit of time cuts off ends there: the return meant is that of so many steps.
    """

    observations: Float[Tensor, "steps learners copies features"]
    actions: Shaped[Tensor, "steps learners copies *action"]
    rewards: Float[Tensor, "steps learners copies"]
    live: Bool[Tensor, "steps learners copies"]

    @property
    def scores(self) -> Float[Tensor, "learners copies"]:
        """The sum of all rewards of an episode."""
        return (self.rewards * self.live).sum(0)

    def returns(self, discount: float) -> Float[Tensor, "steps learners copies"]:
        """G_t = Σ_{k≥t} γ^{k−t} r_k, with r_k following a_k; 0 after the end."""
        earned = (self.rewards * self.live).flatten(1)
        found = discounted_returns(earned, torch.zeros_like(earned, dtype=torch.bool), discount=discount)
        return found.view_as(self.rewards)


@torch.no_grad()
def whole_episodes(
    environments: Environments,
    act: Callable[[Float[Tensor, "learners copies features"]], Shaped[Tensor, "..."]],
    learners: int = 1,
) -> Episodes:
    """Begin everywhere, and act until the first episode of every copy is over."""
    if environments.copies % learners:
        raise ValueError(f"{environments.copies} copies cannot be shared by {learners} learners alike")
    observation = environments.reset()
    live = torch.ones(environments.copies, dtype=torch.bool, device=observation.device)
    seen: list[tuple[Tensor, ...]] = []
    for _ in range(environments.longest):
        here = observation.unflatten(0, (learners, -1))
        action = act(here)
        observation, reward, terminated, truncated, _ = environments.step(action.flatten(0, 1))
        seen.append((here, action, reward.unflatten(0, (learners, -1)), live.unflatten(0, (learners, -1))))
        live = live & ~(terminated | truncated)
        if not bool(live.any()):
            break
    else:
        raise endless(environments.longest)
    return Episodes(*(torch.stack(column) for column in zip(*seen, strict=True)))


def reinforce_weights(
    episodes: Episodes, baseline: Float[Tensor, "steps learners copies"] | float = 0.0, *, discount: float
) -> Float[Tensor, "steps learners copies"]:
    """w_t = γ^t (G_t − b(s_t)), and 0 after the end (book sec. 18.4, put right)."""
    steps = torch.arange(len(episodes.rewards), device=episodes.rewards.device)
    powers = (discount ** steps.to(episodes.rewards))[:, None, None]
    return powers * (episodes.returns(discount) - baseline) * episodes.live


def reinforce_objective(
    model: ActorCritic, episodes: Episodes, weights: Float[Tensor, "steps learners copies"]
) -> Float[Tensor, "learners copies"]:
    """Σ_t w_t log π(a_t|s_t) of each episode, whose slope estimates ∇J (book eqs. 18.9-18.10)."""
    steps, _, copies = weights.shape
    chosen = model.law(by_learner(episodes.observations)).log_prob(by_learner(episodes.actions))
    scores = chosen.view(-1, steps, copies)
    return (weights.transpose(0, 1) * scores).sum(1)


def slope_variance(
    model: ActorCritic, episodes: Episodes, weights: Float[Tensor, "steps learners copies"]
) -> Float[Tensor, " learners"]:
    """E‖g − E g‖² of the estimate g that one episode gives, from the episodes there are."""
    if weights.shape[2] < 2:
        raise ValueError(f"a variance needs at least two episodes of each learner; got {weights.shape[2]}")
    actor, objective = ActorVector(model), reinforce_objective(model, episodes, weights)
    slopes = torch.stack([actor.slope(one.sum(), keep=True) for one in objective.unbind(1)])
    return slopes.var(0).sum(1)


def critic_rows(
    episodes: Episodes, rows: int, *, discount: float
) -> tuple[Float[Tensor, "learners rows features"], Float[Tensor, "learners rows"]]:
    """States drawn from those that each learner saw, and what was returned from there."""
    index = torch.multinomial(by_learner(episodes.live).float(), rows, replacement=True)
    learner = torch.arange(len(index), device=index.device)[:, None]
    return by_learner(episodes.observations)[learner, index], by_learner(episodes.returns(discount))[learner, index]
