"""Claims about the distances that are metrics (Diehl sec. 1.4)."""

from itertools import product

import torch
from torch import Tensor

from parnassus.atlas import Evidence, all_of, at_least, at_most, claim, close, raises
from parnassus.probability.distances import lp_distance, most_telling_event, total_variation
from parnassus.probability.divergences import kl_divergence

ORDERS = (1.0, 1.5, 2.0, 3.0, torch.inf)


def random_distributions(count: int, outcomes: int, *, seed: int = 0) -> Tensor:
    """Draws from the flat Dirichlet law, the uniform one on the simplex."""
    shares = torch.rand(count, outcomes, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).log()
    return shares / shares.sum(-1, keepdim=True)


@claim("D1.4.2")
def lp_distances_are_metrics() -> Evidence:
    """For p ≥ 1, Lᵖ is symmetric, 0 for equal laws alone, and no detour is shorter (Diehl sec. 1.4)."""
    p, q, r = (random_distributions(2_000, 5, seed=seed) for seed in range(3))
    straight = torch.stack([lp_distance(p, q, order=order) for order in ORDERS])
    detour = torch.stack([lp_distance(p, r, order=order) + lp_distance(r, q, order=order) for order in ORDERS])
    mirrored = torch.stack([lp_distance(q, p, order=order) for order in ORDERS])
    return all_of(
        triangle=at_most(straight, detour + 1e-15),
        symmetric=close(mirrored, straight),
        zero_for_equal=close(lp_distance(p, p, order=2.0), 0.0),
        positive_for_unequal=at_least(straight, 1e-4),
    )


@claim("D1.4.2")
def below_order_one_a_detour_is_shorter() -> Evidence:
    """For p = ½, (½,0,½,0) and (0,½,0,½) are 8 apart, yet 4 by way of (0,½,½,0): no metric (Diehl sec. 1.4)."""

    def half(p: Tensor, q: Tensor) -> Tensor:
        return (p - q).abs().sqrt().sum(-1).square()

    here, there = torch.tensor([[1, 0, 1, 0], [0, 1, 0, 1]], dtype=torch.float64) / 2
    between = torch.tensor([0, 1, 1, 0], dtype=torch.float64) / 2
    p, q, r = (random_distributions(2_000, 5, seed=seed) for seed in range(3))
    broken = (half(p, q) > half(p, r) + half(r, q)).double().mean()
    return all_of(
        straight=close(half(here, there), 8.0, atol=1e-12),
        detour=close(half(here, between) + half(between, there), 4.0, atol=1e-12),
        random_detours_shorter=at_least(broken, 0.01),
        refused=raises(ValueError, lambda: lp_distance(here, there, order=0.5)),
    )


@claim("D1.4.3")
def total_variation_is_the_largest_disagreement() -> Evidence:
    """Over all 2ⁿ events, max |P(A) − Q(A)| is half the L¹ distance, reached at A = {P ≥ Q} (Diehl sec. 1.4)."""
    outcomes = 6
    events = torch.tensor(list(product((0.0, 1.0), repeat=outcomes)), dtype=torch.float64)
    p, q = random_distributions(200, outcomes), random_distributions(200, outcomes, seed=1)
    largest = ((p - q) @ events.T).abs().amax(-1)
    telling = most_telling_event(p, q)
    return all_of(
        events=close(float(len(events)), 2.0**outcomes),
        half_l1=close(total_variation(p, q), largest, atol=1e-14),
        reached=close(((p - q) * telling).sum(-1), largest, atol=1e-14),
        at_most_one=at_most(total_variation(p, q), 1.0),
        one_for_disjoint=close(total_variation(*torch.eye(2, dtype=torch.float64)), 1.0),
    )


@claim("D1.4.3", "D1.4.4")
def divergence_bounds_total_variation() -> Evidence:
    """Pinsker: TV ≤ √(KL/2), with equality in the limit of equal laws; ½ cannot be lowered (Diehl sec. 1.4)."""
    p, q = random_distributions(2_000, 4), random_distributions(2_000, 4, seed=1)
    fair = torch.tensor([0.5, 0.5], dtype=torch.float64)
    bent = torch.tensor([0.501, 0.499], dtype=torch.float64)
    ratio = total_variation(bent, fair).square() / kl_divergence(bent, fair)
    return all_of(
        pinsker=at_most(total_variation(p, q), (kl_divergence(p, q) / 2).sqrt()),
        sharp=close(ratio, 0.5, atol=1e-5),
    )
