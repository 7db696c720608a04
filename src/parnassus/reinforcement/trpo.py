"""TRPO: the longest step along the natural gradient that keeps to its region (book sec. 18.5; Schulman et al. 2015).

max_θ E[ρ Â]   subject to   E KL(π_old(·|s) ‖ π_θ(·|s)) ≤ δ
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.reinforcement.actor_critic import ActorCritic
from parnassus.reinforcement.actor_vector import ActorVector
from parnassus.reinforcement.conjugate_gradient import conjugate_gradient
from parnassus.reinforcement.judged import Judged, standardised
from parnassus.reinforcement.laws import ActionLaw, Choice, Spread
from parnassus.reinforcement.surrogate import policy_ratio


@dataclass(frozen=True)
class Settings:
    """TRPO's numbers; those for CartPole, with eight copies, unless told.

    Observations are taken as they come: moments that move would move the policy behind the back of the constraint.
    """

    budget: int = 100_000
    copies: int = 8
    horizon: int = 128
    threshold: float = 0.01
    damping: float = 1e-3
    products: int = 15
    batch: int = 256
    epochs: int = 20
    lr: float = 2e-3
    discount: float = 0.98
    decay: float = 0.9


TUNED = {
    "Acrobot-v1": Settings(100_000, 8, 256, 0.01, 0.1, 15, 256, 20, 1e-3, 0.99, 0.95),
    "LunarLander-v3": Settings(200_000, 8, 256, 0.01, 0.1, 15, 256, 20, 1e-3, 0.99, 0.98),
    "Pendulum-v1": Settings(100_000, 8, 256, 0.01, 0.1, 15, 256, 15, 1e-3, 0.9, 0.95),
}
"""For other environments, after what is known to work there."""


class Moved(NamedTuple):
    """What a step did, for each learner: the divergence spent, what the surrogate gained, how often it was shortened.

    Where no length kept the promise, the policy stays as it was: all are 0 but `shortened`.
    """

    kl: Float[Tensor, " learners"]
    gain: Float[Tensor, " learners"]
    shortened: Int[Tensor, " learners"]


def natural_step(
    model: ActorCritic,
    seen: Judged,
    *,
    threshold: float,
    damping: float = 1e-3,
    products: int = 15,
    shrink: float = 0.8,
    tries: int = 10,
) -> Moved:
    """Move each learner's actor, within its region, to where the surrogate L = E[ρ Â] is larger (book sec. 18.5).

        x = (F + damping)⁻¹ ∇L,   θ' = θ + shrink^j √(2δ / xᵀ(F + damping)x) x

    with the least j < tries for which E KL(π_old ‖ π_θ') ≤ δ and L has grown. F is the curvature of the mean KL at θ;
    F x is the slope of ⟨∇KL, x⟩, so that F itself is never written down.
    """
    if not (threshold > 0 and damping >= 0 and 0 < shrink < 1 and tries >= 1):
        raise ValueError(
            f"need a positive threshold, a damping of at least 0, a shrinking in (0, 1) and a try; got "
            f"threshold={threshold}, damping={damping}, shrink={shrink}, tries={tries}"
        )
    actor, advantages = ActorVector(model), standardised(seen.advantages)
    before = actor.read()
    law = model.law(seen.observations)
    old = held(law)
    slope = actor.slope(surrogate(law, seen, advantages).sum(), keep=True)
    kl_slope = actor.slope(kl_between(old, law).sum(), twice=True)

    def product(x: Tensor) -> Tensor:
        return actor.slope((kl_slope * x).sum(), keep=True) + damping * x

    direction = conjugate_gradient(product, slope, steps=products, apart=1)
    curvature = (direction * product(direction)).sum(1, keepdim=True)
    full = (2 * threshold / curvature.clamp(min=1e-30)).sqrt() * direction
    return longest_that_keeps(model, seen, before, full, threshold=threshold, shrink=shrink, tries=tries)


@torch.no_grad()
def longest_that_keeps(
    model: ActorCritic,
    seen: Judged,
    before: Float[Tensor, "learners weights"],
    full: Float[Tensor, "learners weights"],
    *,
    threshold: float,
    shrink: float,
    tries: int,
) -> Moved:
    """Shorten the step of each learner until its divergence is allowed and its surrogate has grown; else stay."""
    actor, advantages = ActorVector(model), standardised(seen.advantages)
    old = held(model.law(seen.observations))
    start = surrogate(old, seen, advantages)
    settled, weights = torch.zeros_like(start, dtype=torch.bool), before
    kl, gain, shortened = torch.zeros_like(start), torch.zeros_like(start), torch.zeros_like(start, dtype=torch.int64)
    for attempt in range(tries):
        tried = before + shrink**attempt * full
        actor.write(tried)
        law = model.law(seen.observations)
        spent, grown = kl_between(old, law), surrogate(law, seen, advantages) - start
        fits = ~settled & (spent <= threshold) & (grown > 0)
        weights = torch.where(fits[:, None], tried, weights)
        kl, gain = torch.where(fits, spent, kl), torch.where(fits, grown, gain)
        settled = settled | fits
        if bool(settled.all()):
            break
        shortened += ~settled
    actor.write(weights)
    return Moved(kl, gain, shortened)


def surrogate(law: ActionLaw, seen: Judged, advantages: Float[Tensor, "learners rows"]) -> Float[Tensor, " learners"]:
    """L = E[π(a|s)/π_old(a|s) Â] over what each learner saw."""
    return (policy_ratio(law.log_prob(seen.actions), seen.log_probs) * advantages).mean(1)


def kl_between(old: ActionLaw, new: ActionLaw) -> Float[Tensor, " learners"]:
    """E KL(π_old(·|s) ‖ π_new(·|s)) over the states each learner saw."""
    if isinstance(old, Choice) and isinstance(new, Choice):
        return old.kl(new).mean(1)
    if isinstance(old, Spread) and isinstance(new, Spread):
        return old.kl(new).mean(1)
    raise ValueError(f"laws of one kind can be compared; got {type(old).__name__} and {type(new).__name__}")


def held(law: ActionLaw) -> ActionLaw:
    """The law as it is now, a constant: weights that change later do not change it."""
    if isinstance(law, Choice):
        return Choice(law.logits.detach().clone())
    return Spread(law.mean.detach().clone(), law.log_std.detach().clone())
