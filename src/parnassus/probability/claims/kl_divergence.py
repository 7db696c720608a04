"""Claims about entropy, cross-entropy and Kullback-Leibler divergence (Diehl sec. 1.4)."""

from math import log

import torch
from torch.autograd import grad

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal
from parnassus.probability.distributions.seeded_samples import float64_tensor, random_distributions, uniform_samples
from parnassus.probability.divergences.entropy import cross_entropy_between, entropy
from parnassus.probability.divergences.kl_divergence import (
    jeffreys_divergence,
    jensen_shannon_divergence,
    kl_divergence,
)
from parnassus.probability.divergences.total_variation import lp_distance


@claim("D1.4.4", "B6.1-1", "D6.0.4")
def divergence_is_zero_only_for_equal_distributions() -> Evidence:
    """KL ≥ 0, equality only for P = Q; not symmetric, without triangle inequality (Diehl sec. 1.4)."""
    p, q = random_distributions(2_000, 4), random_distributions(2_000, 4, seed=1)
    half, quarter, tenth = float64_tensor(0.5, 0.5), float64_tensor(0.25, 0.75), float64_tensor(0.1, 0.9)
    detour = kl_divergence(half, quarter) + kl_divergence(quarter, tenth)
    return all_of(
        positive=greater_equal(kl_divergence(p, q), (p - q).square().sum(-1) / 2),
        zero=close(kl_divergence(p, p), 0.0),
        not_symmetric=greater_equal((kl_divergence(p, q) - kl_divergence(q, p)).abs().max(), 1.0),
        direct=close(kl_divergence(half, tenth), 0.5108, atol=1e-4),
        detour_is_shorter=close(detour, 0.2362, atol=1e-4),
    )


@claim("D1.4.4", "B6.1-1")
def divergence_is_infinite_without_absolute_continuity() -> Evidence:
    """KL(P ‖ Q) = +∞ if and only if some outcome has P(i) > 0 = Q(i) (Diehl sec. 1.4)."""
    generator = torch.Generator().manual_seed(0)
    p, q = (
        random_distributions(500, 4, seed=seed) * torch.randint(2, (500, 4), generator=generator) for seed in (0, 1)
    )
    allowed = (p.sum(-1) > 0) & (q.sum(-1) > 0)
    p, q = (each[allowed] / each[allowed].sum(-1, keepdim=True) for each in (p, q))
    not_continuous = ((p > 0) & (q == 0)).any(-1)
    return all_of(
        both_cases_occur=greater_equal(torch.stack([not_continuous.sum(), (~not_continuous).sum()]), 20),
        infinite_iff=close(kl_divergence(p, q).isinf().double(), not_continuous.double()),
        never_nan=close(kl_divergence(p, q).isnan().double(), 0.0),
    )


@erratum("D1.4.4", printed="0 log(0/0) := 0 is sufficient", right="also 0 log(0/q) := 0 and p log(p/0) := +∞")
def zero_needs_three_conventions() -> Correction:
    """With this convention alone the formula gives NaN where P(i) = 0 < Q(i) (Diehl sec. 1.4)."""
    p, q = float64_tensor(0.5, 0.5, 0.0, 0.0), float64_tensor(0.25, 0.25, 0.5, 0.0)
    ratio = torch.where((p == 0) & (q == 0), 1.0, p / q)
    return Correction(
        printed=close((p * ratio.log()).sum(), log(2), atol=1e-12),
        corrected=all_of(
            forward=close(kl_divergence(p, q), log(2), atol=1e-12), reverse=close(kl_divergence(q, p), torch.inf)
        ),
    )


@erratum("D1.4.4", printed="the divergence with the natural logarithm is in bits", right="nats; bits with base 2")
def natural_logarithms_give_nats() -> Correction:
    """KL of a certain outcome from a fair coin is log 2 nats, which is one bit (Diehl sec. 1.4)."""
    certain, fair = float64_tensor(1.0, 0.0), float64_tensor(0.5, 0.5)
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
    """The printed bound contains only one of the two pairs that are mixed, and fails (Diehl sec. 1.4)."""
    p, q, p_other, q_other = (random_distributions(20_000, 4, seed=seed) for seed in range(4))
    weight = uniform_samples(20_000, 1, seed=4)
    mixed = kl_divergence(weight * p + (1 - weight) * p_other, weight * q + (1 - weight) * q_other)
    first, second, weight = kl_divergence(p, q), kl_divergence(p_other, q_other), weight[:, 0]
    return Correction(
        printed=less_equal(mixed, first), corrected=less_equal(mixed, weight * first + (1 - weight) * second + 1e-15)
    )


@claim("D1.4.7")
def four_distances_of_bernoulli_distributions() -> Evidence:
    """CE ≥ KL for all pairs; all but CE vanish on the diagonal, and only CE and KL are unbounded (Diehl fig. 3)."""
    heads = torch.linspace(0.001, 0.999, 101, dtype=torch.float64)
    coins = torch.stack([heads, 1 - heads], -1)
    p, q = coins[:, None], coins[None, :]
    certain = torch.eye(2, dtype=torch.float64)[:, None]  # p = 1 and p = 0
    ce, kl = cross_entropy_between(p, q), kl_divergence(p, q)
    l1, l2 = (lp_distance(p, q, order=order) for order in (1.0, 2.0))
    return all_of(
        ce_above_kl=greater_equal(ce - kl, 0.0),
        difference_is_entropy=close(ce - kl, entropy(p).expand_as(ce), atol=1e-12),
        equal_for_certain_outcomes=close(cross_entropy_between(certain, q), kl_divergence(certain, q), atol=1e-12),
        zero_on_the_diagonal=close(torch.stack([each.diagonal() for each in (kl, l1, l2)]), 0.0, atol=1e-12),
        ce_positive_on_the_diagonal=greater_equal(ce.diagonal()[1:-1], 0.01),
        unbounded=greater_equal(torch.stack([ce.max(), kl.max()]), 6.0),
        bounded=less_equal(torch.stack([l1.max(), l2.max()]), 2.0),
    )


@claim("D1.4.6")
def cross_entropy_is_divergence_plus_entropy() -> Evidence:
    """CE(p, q) = KL(p ‖ q) + H(p) ≥ H(p) ≥ 0, CE = H only for q = p; −log q_k for one-hot p (Diehl sec. 1.4)."""
    p, q = random_distributions(2_000, 5), random_distributions(2_000, 5, seed=1)
    onehot = torch.eye(5, dtype=torch.float64)
    extra = cross_entropy_between(p, q) - entropy(p)
    return all_of(
        sum_of_both=close(extra, kl_divergence(p, q), atol=1e-13),
        above_entropy=greater_equal(extra, (p - q).square().sum(-1) / 2),
        equal_to_entropy_for_q_equal_p=close(cross_entropy_between(p, p), entropy(p), atol=1e-15),
        entropy_positive=greater_equal(entropy(p), 0.0),
        entropy_at_most_uniform=less_equal(entropy(p), log(5)),
        one_hot=close(cross_entropy_between(onehot, q[:5]), -q[:5].diagonal().log(), atol=1e-15),
    )


@erratum("D1.4.5", printed="(x log x)″ = 1/x + 1", right="(x log x)″ = 1/x")
def the_curvature_of_x_log_x() -> Correction:
    """The constant in (x log x)′ = log x + 1 has derivative 0 (Diehl sec. 1.4)."""
    x = torch.linspace(0.1, 5, 50, dtype=torch.float64, requires_grad=True)
    (gradient,) = grad((x * x.log()).sum(), x, create_graph=True)
    (curvature,) = grad(gradient.sum(), x)
    t = torch.linspace(0.1, 0.9, 9, dtype=torch.float64, requires_grad=True)
    (slope,) = grad(-entropy(torch.stack([t, 1 - t], -1)).sum(), t, create_graph=True)
    (of_entropy,) = grad(slope.sum(), t)  # of t log t + (1 − t) log(1 − t)
    return Correction(
        printed=close(curvature, 1 / x + 1, atol=1e-9),
        corrected=all_of(
            function=close(curvature, 1 / x, atol=1e-12), entropy=close(of_entropy, 1 / t + 1 / (1 - t), rtol=1e-12)
        ),
    )


@claim("D1.4.8")
def one_hot_labels_belong_in_the_first_argument() -> Evidence:
    """With Q one-hot, KL(P ‖ Q) = +∞ unless P = Q; for fixed P, KL and CE have equal gradients (Diehl sec. 1.4)."""
    label = torch.eye(5, dtype=torch.float64)[2]
    p = random_distributions(200, 5)
    logits = torch.randn(200, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64, requires_grad=True)
    (of_kl,) = grad(kl_divergence(p, logits.softmax(-1)).sum(), logits)
    (of_ce,) = grad(cross_entropy_between(p, logits.softmax(-1)).sum(), logits)
    return all_of(
        infinite=close(kl_divergence(p, label), torch.inf),
        unless_equal=close(kl_divergence(label, label), 0.0),
        reverse_is_finite=close(kl_divergence(label, p), -p[:, 2].log(), atol=1e-14),
        same_gradients=close(of_kl, of_ce, atol=1e-14),
        softmax_minus_target=close(of_ce, logits.softmax(-1) - p, atol=1e-13),
    )


@erratum(
    "B6.1-5", printed="JS(P, Q) = ½ [KL(P, Q) + KL(Q, P)]", right="JS(P, Q) = ½ KL(P, M) + ½ KL(Q, M), M = ½ (P+Q)"
)
def half_of_jeffreys_is_not_jensen_shannon() -> Correction:
    """The symmetrised KL is half of Jeffreys and unbounded; Jensen-Shannon is at most log 2 (book eq. 6.5)."""
    p, q = float64_tensor(0.9, 0.1), float64_tensor(0.1, 0.9)
    return Correction(
        printed=close(jeffreys_divergence(p, q) / 2, jensen_shannon_divergence(p, q), atol=1e-3),
        corrected=all_of(
            half_jeffreys=close(jeffreys_divergence(p, q) / 2, 1.7578, atol=1e-4),
            jensen_shannon=close(jensen_shannon_divergence(p, q), 0.3681, atol=1e-4),
        ),
    )


@claim("B6.1-5")
def jensen_shannon_is_bounded_and_its_root_a_metric() -> Evidence:
    """JS ≤ log 2, attained for disjoint supports, where Jeffreys is +∞; √JS is a metric, JS is not (book sec. 6.1)."""
    p, q, r = (random_distributions(5_000, 3, seed=seed) for seed in range(3))
    disjoint = float64_tensor(0.5, 0.5, 0.0), float64_tensor(0.0, 0.0, 1.0)
    direct, first, second = (
        jensen_shannon_divergence(p, q),
        jensen_shannon_divergence(p, r),
        jensen_shannon_divergence(r, q),
    )
    near_one = torch.stack([float64_tensor(1 - 10.0**-k, 10.0**-k) for k in range(1, 9)])
    return all_of(
        symmetric=close(jensen_shannon_divergence(q, p), direct, atol=1e-15),
        at_most_log_2=less_equal(direct, log(2)),
        disjoint=close(jensen_shannon_divergence(*disjoint), log(2), atol=1e-15),
        one_bit=close(jensen_shannon_divergence(*disjoint, base=2.0), 1.0, atol=1e-15),
        jeffreys_of_disjoint=close(jeffreys_divergence(*disjoint), torch.inf),
        jeffreys_grows=greater_equal(jeffreys_divergence(near_one, near_one.flip(-1)).diff(), 4.0),
        root_is_a_metric=less_equal(direct.sqrt(), first.sqrt() + second.sqrt()),
        itself_is_not=greater_equal((direct - first - second).max(), 0.1),
        quarter_of_jeffreys_bounds_it=less_equal(direct, jeffreys_divergence(p, q) / 4),
    )
