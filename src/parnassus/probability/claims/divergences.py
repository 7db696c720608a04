"""Claims about entropy, cross-entropy and Kullback-Leibler divergence (Diehl sec. 1.4)."""

from math import log

import torch
from torch import Tensor
from torch.autograd import grad

from parnassus.atlas import Correction, Evidence, all_of, at_least, at_most, claim, close, erratum
from parnassus.probability.claims.distances import random_distributions
from parnassus.probability.codes import expected_length, huffman_lengths, kraft_sum, shannon_lengths
from parnassus.probability.distances import lp_distance
from parnassus.probability.divergences import (
    cross_entropy_between,
    entropy,
    jeffreys,
    jensen_shannon,
    kl_divergence,
)


def row(*probabilities: float) -> Tensor:
    return torch.tensor(probabilities, dtype=torch.float64)


@claim("D1.4.4", "B6.1-1", "D6.0.4")
def divergence_is_zero_for_equal_laws_alone() -> Evidence:
    """KL ≥ 0, and it is 0 only for P = Q; it is not symmetric and has no triangle inequality (Diehl sec. 1.4)."""
    p, q = random_distributions(2_000, 4), random_distributions(2_000, 4, seed=1)
    half, quarter, tenth = row(0.5, 0.5), row(0.25, 0.75), row(0.1, 0.9)
    detour = kl_divergence(half, quarter) + kl_divergence(quarter, tenth)
    return all_of(
        positive=at_least(kl_divergence(p, q), (p - q).square().sum(-1) / 2),
        zero=close(kl_divergence(p, p), 0.0),
        not_symmetric=at_least((kl_divergence(p, q) - kl_divergence(q, p)).abs().max(), 1.0),
        straight=close(kl_divergence(half, tenth), 0.5108, atol=1e-4),
        detour_is_shorter=close(detour, 0.2362, atol=1e-4),
    )


@claim("D1.4.4", "B6.1-1")
def divergence_is_infinite_where_q_misses_mass() -> Evidence:
    """KL(P ‖ Q) = +∞ if and only if some outcome has P(i) > 0 = Q(i) (Diehl sec. 1.4)."""
    generator = torch.Generator().manual_seed(0)
    p, q = (
        random_distributions(500, 4, seed=seed) * torch.randint(2, (500, 4), generator=generator) for seed in (0, 1)
    )
    allowed = (p.sum(-1) > 0) & (q.sum(-1) > 0)
    p, q = (law[allowed] / law[allowed].sum(-1, keepdim=True) for law in (p, q))
    misses = ((p > 0) & (q == 0)).any(-1)
    return all_of(
        both_cases_occur=at_least(torch.stack([misses.sum(), (~misses).sum()]), 20),
        infinite_iff=close(kl_divergence(p, q).isinf().double(), misses.double()),
        nowhere_nan=close(kl_divergence(p, q).isnan().double(), 0.0),
    )


@erratum("D1.4.4", printed="0 log(0/0) := 0 is all that is needed", right="also 0 log(0/q) := 0 and p log(p/0) := +∞")
def zero_needs_three_conventions() -> Correction:
    """The formula as it stands gives NaN wherever P has no mass, even where Q has (Diehl sec. 1.4)."""
    p, q = row(0.5, 0.5, 0.0, 0.0), row(0.25, 0.25, 0.5, 0.0)
    ratio = torch.where((p == 0) & (q == 0), 1.0, p / q)
    return Correction(
        printed=close((p * ratio.log()).sum(), log(2), atol=1e-12),
        corrected=all_of(
            forwards=close(kl_divergence(p, q), log(2), atol=1e-12), backwards=close(kl_divergence(q, p), torch.inf)
        ),
    )


@erratum("D1.4.4", printed="the divergence, with a natural logarithm, counts bits", right="nats; bits with base 2")
def natural_logarithms_count_nats() -> Correction:
    """A fair coin taken for a certain one of two costs log 2 nats, which is one bit (Diehl sec. 1.4)."""
    certain, fair = row(1.0, 0.0), row(0.5, 0.5)
    return Correction(
        printed=close(kl_divergence(certain, fair), 1.0, atol=1e-12),
        corrected=all_of(
            nats=close(kl_divergence(certain, fair), log(2), atol=1e-12),
            bits=close(kl_divergence(certain, fair, base=2.0), 1.0, atol=1e-12),
        ),
    )


@erratum(
    "D1.4.4",
    "D6.0.5",
    printed="KL(λP+(1−λ)P′ ‖ λQ+(1−λ)Q′) ≤ λ KL(P‖Q) + (1−λ) KL(P‖Q)",
    right="… ≤ λ KL(P‖Q) + (1−λ) KL(P′‖Q′)",
)
def divergence_is_jointly_convex() -> Correction:
    """The printed bound knows only one of the two pairs that are mixed, and fails (Diehl sec. 1.4)."""
    p, q, p_other, q_other = (random_distributions(20_000, 4, seed=seed) for seed in range(4))
    share = torch.rand(20_000, 1, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    mixed = kl_divergence(share * p + (1 - share) * p_other, share * q + (1 - share) * q_other)
    first, second, weight = kl_divergence(p, q), kl_divergence(p_other, q_other), share[:, 0]
    return Correction(
        printed=at_most(mixed, first), corrected=at_most(mixed, weight * first + (1 - weight) * second + 1e-15)
    )


@claim("D1.4.4", "D1.4.6", "D6.0.2")
def divergence_is_extra_code_length() -> Evidence:
    """A code made for Q spends KL(P ‖ Q) more bits on P than the entropy H(P), give or take one (Diehl sec. 1.4)."""
    laws = zip(random_distributions(100, 7), random_distributions(100, 7, seed=1), strict=True)
    extra, shannon, huffman, kraft = torch.tensor(
        [
            (
                kl_divergence(p, q, base=2.0),
                expected_length(p, shannon_lengths(q)) - entropy(p, base=2.0),
                expected_length(q, huffman_lengths(q)) - entropy(q, base=2.0),
                torch.maximum(kraft_sum(shannon_lengths(q)), kraft_sum(huffman_lengths(q))),
            )
            for p, q in laws
        ],
        dtype=torch.float64,
    ).T
    dyadic, other = row(0.5, 0.25, 0.125, 0.125), row(0.1, 0.2, 0.3, 0.4)
    exact = expected_length(other, huffman_lengths(dyadic)) - entropy(other, base=2.0)
    return all_of(
        at_least_kl=at_least(shannon, extra),
        within_a_bit=at_most(shannon, extra + 1),
        best_code_of_its_own=at_least(huffman, 0.0),
        within_a_bit_of_entropy=at_most(huffman, 1.0),
        words_exist=at_most(kraft, 1.0),
        exact_for_powers_of_two=close(exact, kl_divergence(other, dyadic, base=2.0), atol=1e-12),
    )


@claim("D1.4.7")
def four_distances_of_two_coins() -> Evidence:
    """Over all pairs of coins CE ≥ KL, all but CE vanish on the diagonal, and only CE and KL blow up (Diehl fig. 3)."""
    heads = torch.linspace(0.001, 0.999, 101, dtype=torch.float64)
    coins = torch.stack([heads, 1 - heads], -1)
    p, q = coins[:, None], coins[None, :]
    sure = torch.eye(2, dtype=torch.float64)[:, None]  # p = 1 and p = 0
    ce, kl = cross_entropy_between(p, q), kl_divergence(p, q)
    l1, l2 = (lp_distance(p, q, order=order) for order in (1.0, 2.0))
    return all_of(
        ce_above_kl=at_least(ce - kl, 0.0),
        by_the_entropy=close(ce - kl, entropy(p).expand_as(ce), atol=1e-12),
        alike_for_sure_coins=close(cross_entropy_between(sure, q), kl_divergence(sure, q), atol=1e-12),
        zero_on_the_diagonal=close(torch.stack([each.diagonal() for each in (kl, l1, l2)]), 0.0, atol=1e-12),
        ce_is_not=at_least(ce.diagonal()[1:-1], 0.01),
        blow_up=at_least(torch.stack([ce.max(), kl.max()]), 6.0),
        stay_small=at_most(torch.stack([l1.max(), l2.max()]), 2.0),
    )


@claim("D1.4.6")
def cross_entropy_is_divergence_and_entropy() -> Evidence:
    """CE(p, q) = KL(p ‖ q) + H(p) ≥ H(p) ≥ 0, CE = H for q = p alone; −log q_k for a one-hot p (Diehl sec. 1.4)."""
    p, q = random_distributions(2_000, 5), random_distributions(2_000, 5, seed=1)
    onehot = torch.eye(5, dtype=torch.float64)
    extra = cross_entropy_between(p, q) - entropy(p)
    return all_of(
        sum_of_both=close(extra, kl_divergence(p, q), atol=1e-13),
        above_entropy=at_least(extra, (p - q).square().sum(-1) / 2),
        equal_for_equal=close(cross_entropy_between(p, p), entropy(p), atol=1e-15),
        entropy_positive=at_least(entropy(p), 0.0),
        entropy_at_most_uniform=at_most(entropy(p), log(5)),
        one_hot=close(cross_entropy_between(onehot, q[:5]), -q[:5].diagonal().log(), atol=1e-15),
    )


@erratum("D1.4.5", printed="(x log x)″ = 1/x + 1", right="(x log x)″ = 1/x")
def the_curvature_of_x_log_x() -> Correction:
    """The constant in (x log x)′ = log x + 1 has no slope of its own (Diehl sec. 1.4)."""
    x = torch.linspace(0.1, 5, 50, dtype=torch.float64, requires_grad=True)
    (slope,) = grad((x * x.log()).sum(), x, create_graph=True)
    (curvature,) = grad(slope.sum(), x)
    return Correction(printed=close(curvature, 1 / x + 1, atol=1e-9), corrected=close(curvature, 1 / x, atol=1e-12))


@claim("D1.4.8")
def labels_belong_in_the_first_place() -> Evidence:
    """With Q one-hot, KL(P ‖ Q) is +∞ but for P = Q; for a fixed P, KL and CE slope alike in Q (Diehl sec. 1.4)."""
    label = torch.eye(5, dtype=torch.float64)[2]
    p = random_distributions(200, 5)
    logits = torch.randn(200, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64, requires_grad=True)
    (of_kl,) = grad(kl_divergence(p, logits.softmax(-1)).sum(), logits)
    (of_ce,) = grad(cross_entropy_between(p, logits.softmax(-1)).sum(), logits)
    return all_of(
        infinite=close(kl_divergence(p, label), torch.inf),
        unless_equal=close(kl_divergence(label, label), 0.0),
        other_way_finite=close(kl_divergence(label, p), -p[:, 2].log(), atol=1e-14),
        same_slopes=close(of_kl, of_ce, atol=1e-14),
        softmax_minus_target=close(of_ce, logits.softmax(-1) - p, atol=1e-13),
    )


@erratum(
    "B6.1-5", printed="JS(P, Q) = ½ [KL(P, Q) + KL(Q, P)]", right="JS(P, Q) = ½ KL(P, M) + ½ KL(Q, M), M = ½ (P+Q)"
)
def half_of_jeffreys_is_not_jensen_shannon() -> Correction:
    """The symmetrised divergence is half of Jeffreys' and knows no bound; Jensen-Shannon's is log 2 (book eq. 6.5)."""
    p, q = row(0.9, 0.1), row(0.1, 0.9)
    return Correction(
        printed=close(jeffreys(p, q) / 2, jensen_shannon(p, q), atol=1e-3),
        corrected=all_of(
            half_jeffreys=close(jeffreys(p, q) / 2, 1.7578, atol=1e-4),
            jensen_shannon=close(jensen_shannon(p, q), 0.3681, atol=1e-4),
        ),
    )


@claim("B6.1-5")
def jensen_shannon_is_bounded_and_its_root_a_metric() -> Evidence:
    """JS ≤ log 2, reached by disjoint laws, where Jeffreys is +∞; √JS is a metric, JS is none (book sec. 6.1)."""
    p, q, r = (random_distributions(5_000, 3, seed=seed) for seed in range(3))
    disjoint = row(0.5, 0.5, 0.0), row(0.0, 0.0, 1.0)
    straight, first, second = jensen_shannon(p, q), jensen_shannon(p, r), jensen_shannon(r, q)
    near_one = torch.stack([row(1 - 10.0**-k, 10.0**-k) for k in range(1, 9)])
    return all_of(
        symmetric=close(jensen_shannon(q, p), straight, atol=1e-15),
        at_most_log_2=at_most(straight, log(2)),
        disjoint=close(jensen_shannon(*disjoint), log(2), atol=1e-15),
        one_bit=close(jensen_shannon(*disjoint, base=2.0), 1.0, atol=1e-15),
        jeffreys_of_disjoint=close(jeffreys(*disjoint), torch.inf),
        jeffreys_grows=at_least(jeffreys(near_one, near_one.flip(-1)).diff(), 4.0),
        root_is_a_metric=at_most(straight.sqrt(), first.sqrt() + second.sqrt()),
        itself_is_not=at_least((straight - first - second).max(), 0.1),
        quarter_of_jeffreys_bounds_it=at_most(straight, jeffreys(p, q) / 4),
    )
