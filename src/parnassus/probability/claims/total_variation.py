"""Claims about total variation and Lᵖ distance (Diehl sec. 1.4)."""

from itertools import product

import torch
from torch import Tensor

from parnassus.atlas import Evidence, all_of, claim, close, greater_equal, less_equal, raises
from parnassus.probability.distributions.seeded_samples import random_distributions
from parnassus.probability.divergences.kl_divergence import kl_divergence
from parnassus.probability.divergences.total_variation import lp_distance, total_variation, total_variation_event

ORDERS = (1.0, 1.5, 2.0, 3.0, torch.inf)


@claim("D1.4.2")
def lp_distances_are_metrics() -> Evidence:
    """For p ≥ 1, Lᵖ is symmetric, definite and satisfies the triangle inequality (Diehl sec. 1.4)."""
    p, q, r = (random_distributions(2_000, 5, seed=seed) for seed in range(3))
    direct = torch.stack([lp_distance(p, q, order=order) for order in ORDERS])
    detour = torch.stack([lp_distance(p, r, order=order) + lp_distance(r, q, order=order) for order in ORDERS])
    swapped = torch.stack([lp_distance(q, p, order=order) for order in ORDERS])
    return all_of(
        triangle=less_equal(direct, detour + 1e-15),
        symmetric=close(swapped, direct),
        zero_for_equal=close(lp_distance(p, p, order=2.0), 0.0),
        positive_for_unequal=greater_equal(direct, 1e-4),
    )


@claim("D1.4.2")
def the_triangle_inequality_fails_below_order_one() -> Evidence:
    """L^½ violates the triangle inequality: (½,0,½,0) to (0,½,0,½) is 8, but 4 via (0,½,½,0) (Diehl sec. 1.4)."""

    def half(p: Tensor, q: Tensor) -> Tensor:
        return (p - q).abs().sqrt().sum(-1).square()

    first, second = torch.tensor([[1, 0, 1, 0], [0, 1, 0, 1]], dtype=torch.float64) / 2
    between = torch.tensor([0, 1, 1, 0], dtype=torch.float64) / 2
    p, q, r = (random_distributions(2_000, 5, seed=seed) for seed in range(3))
    broken = (half(p, q) > half(p, r) + half(r, q)).double().mean()
    return all_of(
        direct=close(half(first, second), 8.0, atol=1e-12),
        detour=close(half(first, between) + half(between, second), 4.0, atol=1e-12),
        random_detours_shorter=greater_equal(broken, 0.01),
        rejected=raises(ValueError, lambda: lp_distance(first, second, order=0.5)),
    )


@claim("D1.4.3")
def total_variation_is_the_largest_difference_of_an_event() -> Evidence:
    """Over all 2ⁿ events, max |P(A) − Q(A)| is half the L¹ distance, attained at A = {P ≥ Q} (Diehl sec. 1.4)."""
    outcomes = 6
    events = torch.tensor(list(product((0.0, 1.0), repeat=outcomes)), dtype=torch.float64)
    p, q = random_distributions(200, outcomes), random_distributions(200, outcomes, seed=1)
    largest = ((p - q) @ events.T).abs().amax(-1)
    maximiser = total_variation_event(p, q)
    return all_of(
        events=close(float(len(events)), 2.0**outcomes),
        half_l1=close(total_variation(p, q), largest, atol=1e-14),
        attained=close(((p - q) * maximiser).sum(-1), largest, atol=1e-14),
        at_most_one=less_equal(total_variation(p, q), 1.0),
        one_for_disjoint=close(total_variation(*torch.eye(2, dtype=torch.float64)), 1.0),
    )


@claim("D1.4.3", "D1.4.4")
def pinsker_bounds_total_variation() -> Evidence:
    """Pinsker's inequality TV ≤ √(KL/2); the constant ½ is sharp as P → Q (Diehl sec. 1.4)."""
    p, q = random_distributions(2_000, 4), random_distributions(2_000, 4, seed=1)
    fair = torch.tensor([0.5, 0.5], dtype=torch.float64)
    biased = torch.tensor([0.501, 0.499], dtype=torch.float64)
    ratio = total_variation(biased, fair).square() / kl_divergence(biased, fair)
    return all_of(
        pinsker=less_equal(total_variation(p, q), (kl_divergence(p, q) / 2).sqrt()),
        sharp=close(ratio, 0.5, atol=1e-5),
    )


@claim("D1.4.3")
def total_variation_is_a_metric() -> Evidence:
    """Total variation is symmetric, zero only for equal distributions, and TV(P, Q) ≤ TV(P, R) + TV(R, Q)."""
    p, q, r = (random_distributions(2_000, 5, seed=seed) for seed in range(3))
    between = torch.lerp(p, q, 0.3)  # on the segment the triangle inequality is an equality
    disjoint = torch.tensor([[2, 3, 5, 0, 0], [0, 0, 0, 9, 1]], dtype=torch.float64) / 10
    return all_of(
        symmetric=close(total_variation(q, p), total_variation(p, q)),
        triangle=less_equal(total_variation(p, q) - total_variation(p, r) - total_variation(r, q), 1e-15),
        equality=close(total_variation(p, between) + total_variation(between, q), total_variation(p, q), atol=1e-14),
        share=close(total_variation(p, between), 0.3 * total_variation(p, q), atol=1e-14),
        one_for_disjoint_supports=close(total_variation(*disjoint), 1.0, atol=1e-15),
        zero_for_equal=close(total_variation(p, p), 0.0),
        positive_for_unequal=greater_equal(total_variation(p, q), 1e-3),
    )
