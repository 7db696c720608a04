"""Claims about modes of convergence, the typewriter sequence and the limit theorems (Diehl sec. 5)."""

from math import pi

import torch
from scipy.stats import kstest
from torch.distributions import Cauchy

from parnassus.atlas import (
    Correction,
    Evidence,
    accepts,
    all_of,
    claim,
    close,
    erratum,
    greater_equal,
    less_equal,
    rate,
)
from parnassus.probability.distributions.discrete import DiscreteDistribution, empirical_distribution
from parnassus.probability.distributions.seeded_samples import random_distributions, standard_normal, uniform_samples
from parnassus.probability.expectations.convergence_examples import (
    alternating_sign_sequence,
    spike_sequence,
    typewriter_block,
    typewriter_sequence,
    vanishing_sequence,
)
from parnassus.probability.expectations.convergence_modes import (
    deviation_probability,
    levy_distance,
    lp_error,
    tail_deviation_probability,
)
from parnassus.probability.expectations.limit_theorems import (
    coin_sum_normal_distance,
    kolmogorov_distance,
    running_means,
    scaled_sums,
)

OMEGA = (torch.arange(1_000, dtype=torch.float64) + 0.5) / 1_000  # midpoints of a uniform partition of [0, 1)
STEPS = torch.arange(1, 2_016)  # complete blocks of the typewriter sequence, the last of length 63
ZERO = torch.zeros_like(OMEGA)


@claim("D5.0.12")
def stronger_modes_bound_weaker_ones() -> Evidence:
    """P[|X_n−X| > ε] is at most P[sup > ε] and E|X_n−X|ᵖ/εᵖ, and bounds the Lévy distance (Diehl thm. 5.7)."""
    x = standard_normal(500)
    limit = standard_normal(500, seed=1)
    paths = limit[:, None] + x[:, None] * uniform_samples(500, 60, seed=2) * 3 / torch.arange(1, 61)
    eps = 0.3
    deviating = deviation_probability(paths, limit, tolerance=eps)
    l1_error, l3_error = lp_error(paths, limit, order=1.0), lp_error(paths, limit, order=3.0)
    indices = torch.tensor([0, 4, 19, 59])
    levy = torch.stack(
        [levy_distance(empirical_distribution(path), empirical_distribution(limit)) for path in paths.mT[indices]]
    )
    return all_of(
        almost_surely_to_probability=less_equal(deviating, tail_deviation_probability(paths, limit, tolerance=eps)),
        markov_inequality=less_equal(deviating, l3_error / eps**3),
        lyapunov_inequality=less_equal(l1_error, l3_error ** (1 / 3) + 1e-15),
        probability_to_distribution=less_equal(levy, deviating[indices].clamp(min=eps) + 1e-12),
        all_fall=less_equal(torch.stack([deviating[-1], l1_error[-1], levy[-1]]), 0.05),
    )


@claim("D5.0.12")
def no_implication_can_be_reversed() -> Evidence:
    """The typewriter, spikes n·1 and √n·1 on [0, 1/n), and ±X are counterexamples (Diehl thm. 5.7)."""
    typewriter, spike, root_spike = (
        typewriter_sequence(OMEGA, STEPS),
        spike_sequence(OMEGA, STEPS),
        spike_sequence(OMEGA, STEPS, power=0.5),
    )
    x = standard_normal(1_001)
    x = torch.cat([x, -x])  # exactly symmetric
    alternating = alternating_sign_sequence(x, torch.arange(1, 41))
    half, tail = len(STEPS) // 2, 999
    return all_of(
        typewriter_in_probability=less_equal(deviation_probability(typewriter, ZERO, tolerance=0.5)[half:], 1 / 40),
        typewriter_in_mean=less_equal(lp_error(typewriter, ZERO, order=3.0)[half:], 1 / 40),
        typewriter_not_almost_surely=close(tail_deviation_probability(typewriter, ZERO, tolerance=0.5)[:half], 1.0),
        spike_almost_surely=less_equal(tail_deviation_probability(spike, ZERO, tolerance=0.5)[tail:], 1e-3),
        spike_not_in_mean=close(lp_error(spike, ZERO, order=1.0)[[0, 1, 3, 7, 999]], 1.0, atol=1e-12),
        root_in_mean=less_equal(lp_error(root_spike, ZERO, order=1.0)[tail:], 0.05),
        root_not_in_mean_square=close(lp_error(root_spike, ZERO, order=2.0)[[0, 1, 3, 7, 999]], 1.0, atol=1e-12),
        alternating_in_distribution=close(
            levy_distance(empirical_distribution(alternating[:, 0]), empirical_distribution(x)), 0.0, atol=1e-9
        ),
        alternating_not_in_probability=greater_equal(deviation_probability(alternating, x, tolerance=0.5)[::2], 0.75),
    )


@claim("D5.0.12")
def the_levy_distance_metrises_convergence_in_distribution() -> Evidence:
    """The Lévy distance is a metric; for X/n it converges to 0, total variation does not (Diehl sec. 5)."""
    masses = random_distributions(3, 8)
    distributions = [DiscreteDistribution(standard_normal(8, seed=seed), p) for seed, p in enumerate(masses)]
    table = torch.stack([levy_distance(a, b) for a in distributions for b in distributions]).view(3, 3)
    one = torch.ones(1, dtype=torch.float64)
    points = torch.stack(
        [
            levy_distance(DiscreteDistribution(0 * one, one), DiscreteDistribution(gap * one, one))
            for gap in (0.25, 0.7, 3.0)
        ]
    )
    n = torch.tensor([10, 30, 100, 300])
    path = vanishing_sequence(torch.linspace(-1, 1, 1_001, dtype=torch.float64), n)
    atom = DiscreteDistribution(0 * one, one)
    return all_of(
        symmetric=close(table, table.mT, atol=1e-12),
        zero_for_equal=close(table.diagonal(), 0.0, atol=1e-12),
        triangle=greater_equal(table[:, None, :] + table.mT[None, :, :] - table[:, :, None], -1e-12),
        points=close(points, torch.tensor([0.25, 0.7, 1.0], dtype=torch.float64), atol=1e-12),
        falls=close(
            torch.stack([levy_distance(empirical_distribution(x), atom) for x in path.mT]),
            1 / (n.double() + 2),
            rtol=2e-3,
        ),
        total_variation_does_not=close(
            torch.tensor([float((x != 0).double().mean()) for x in path.mT]), 1.0, atol=1e-3
        ),
    )


@claim("D5.0.12")
def probabilities_converge_for_continuity_sets_only() -> Evidence:
    """δ_{1/n} → δ_0 in distribution: P[X_n ∈ A] converges for A = (−∞, ¼], but not for (−∞, 0] (Diehl thm. 5.7)."""
    one = torch.ones(1, dtype=torch.float64)
    limit = DiscreteDistribution(0 * one, one)
    masses = [DiscreteDistribution(one / n, one) for n in (2, 3, 10, 1_000)]
    at_zero, at_quarter = 0 * one, one / 4
    return all_of(
        in_distribution=close(
            torch.stack([levy_distance(each, limit) for each in masses]), 1 / torch.tensor([2, 3, 10, 1_000]), atol=1e-7
        ),
        continuity_set=close(torch.cat([each.cdf(at_quarter) for each in masses]), torch.tensor([0, 0, 1, 1])),
        its_limit=close(limit.cdf(at_quarter), 1.0),
        boundary_with_mass=close(torch.cat([each.cdf(at_zero) for each in masses]), 0.0),
        not_its_limit=close(limit.cdf(at_zero), 1.0),
    )


@claim("D5.0.12")
def almost_sure_convergence_is_a_limit_superior() -> Evidence:
    """X_n → X almost surely iff P[|X_n − X| > ε for infinitely many n] = 0 for every ε > 0 (Diehl thm. 5.7)."""
    typewriter, spike = typewriter_sequence(OMEGA, STEPS), spike_sequence(OMEGA, STEPS)
    again = [(paths[:, 999:] > 0.5).any(1).double().mean() for paths in (typewriter, spike)]  # a deviation after n
    tails = [tail_deviation_probability(paths, ZERO, tolerance=0.5) for paths in (typewriter, spike)]
    return all_of(
        union_over_later_steps=close(torch.stack([tail[999] for tail in tails]), torch.stack(again), atol=1e-12),
        tails_decrease=less_equal(torch.stack(tails).diff(dim=1), 1e-15),
        typewriter_infinitely_often=close(again[0], 1.0),
        spike_finitely_often=less_equal(again[1], 1e-3),
        spike_tail_is_the_first_interval=close(tails[1][9], 0.1, atol=1e-12),
    )


@erratum("D5.0.12", printed="P[|X_n − X| > ε] → 0, for an unspecified ε", right="for every ε > 0")
def one_tolerance_is_not_enough() -> Correction:
    """X_n = ½ for every n does not converge to 0, yet for ε = 1 the printed limit is 0 (Diehl sec. 5)."""
    paths, limit = torch.full((100, 50), 0.5, dtype=torch.float64), torch.zeros(100, dtype=torch.float64)
    return Correction(
        printed=all_of(
            printed_condition=close(deviation_probability(paths, limit, tolerance=1.0), 0.0),
            converges=less_equal(paths[:, -1], 0.1),
        ),
        corrected=all_of(
            a_smaller_tolerance_fails=close(deviation_probability(paths, limit, tolerance=0.25), 1.0),
            all_tolerances_pass_under_convergence=close(
                torch.stack([deviation_probability(paths / 1e4, limit, tolerance=eps) for eps in (1.0, 0.1, 0.001)]),
                0.0,
            ),
        ),
    )


@erratum("D5.0.13", printed="convergence in probability ⇒ almost sure convergence", right="⇏")
def in_probability_is_not_almost_surely() -> Correction:
    """The example given with the remark contradicts the printed implication; it lacks a negation (Diehl sec. 5)."""
    paths = typewriter_sequence(OMEGA, STEPS)
    half = len(STEPS) // 2
    deviating = deviation_probability(paths, ZERO, tolerance=0.5)[half:]
    return Correction(
        printed=all_of(
            in_probability=less_equal(deviating, 0.03),
            almost_surely=less_equal(tail_deviation_probability(paths, ZERO, tolerance=0.5)[half], 0.03),
        ),
        corrected=all_of(
            in_probability=less_equal(deviating, 0.03), one_again_for_every_outcome=close(paths[:, half:].amax(1), 1.0)
        ),
    )


@claim("D5.0.13")
def the_typewriter_sequence_is_one_once_per_block() -> Evidence:
    """P[X_n ≠ 0] = 1/m → 0 in block m, and X_n(ω) = 1 once in every block for each ω (Diehl sec. 5)."""
    m, j = typewriter_block(STEPS)
    omega = torch.arange(0, 27_720, 7, dtype=torch.float64) / 27_720
    small = torch.arange(1, 78)  # blocks 2 to 12
    exact = typewriter_sequence(
        torch.arange(27_720, dtype=torch.float64) / 27_720 + 1e-9, small
    )  # all of 2 … 12 divide 27 720
    ones = torch.zeros(len(omega), 64, dtype=torch.float64).index_add(1, m, typewriter_sequence(omega, STEPS))
    large = torch.tensor([10**12, 10**12 + 1])
    blocks, positions = typewriter_block(large)
    return all_of(
        first_positions=close(torch.stack([m, j], 1)[:5], torch.tensor([[2, 1], [2, 2], [3, 1], [3, 2], [3, 3]])),
        numbering=close(m * (m - 1) // 2 + j - 1, STEPS),
        probability=close(exact.mean(0), 1 / m[: len(small)].double(), atol=1e-12),
        once_per_block=close(ones[:, 2:], 1.0),
        large_indices=close(blocks * (blocks - 1) // 2 + positions - 1, large),
    )


@claim("D5.0.14")
def running_means_converge_if_the_mean_exists() -> Evidence:
    """Means of exponential samples converge as 1/√n; means of Cauchy samples remain Cauchy (Diehl thm. 5.9)."""
    draws = -uniform_samples(300, 8_192).log()
    means = running_means(draws)
    n = torch.tensor([64, 128, 256, 512, 1_024, 2_048])
    error = (means - 1).abs()[:, n - 1].mean(0)
    cauchy = running_means(Cauchy(0.0, 1.0).icdf(uniform_samples(4_000, 500, seed=1)))
    return all_of(
        converged=less_equal(
            tail_deviation_probability(means, torch.ones(300, dtype=torch.float64), tolerance=0.1)[4_095], 0.01
        ),
        rate_one_over_root_n=rate(n.double(), error, -0.5, atol=0.05),
        cauchy_mean_is_cauchy=accepts(kstest(cauchy[:, -1].numpy(), "cauchy").pvalue),
        cauchy_does_not_converge=greater_equal(
            deviation_probability(cauchy, torch.zeros(4_000, dtype=torch.float64), tolerance=1.0), 0.45
        ),
    )


@claim("D5.0.14")
def scaled_sums_converge_to_the_normal_distribution() -> Evidence:
    """The distance between n^(−1/2) Σ X_i and N(0, E X²) decays as 1/√n; for Cauchy it grows (Diehl thm. 5.9)."""
    counts = torch.tensor([4, 16, 64, 256, 1_024])
    coins = torch.tensor([coin_sum_normal_distance(int(n)) for n in counts], dtype=torch.float64)
    sizes = (1, 4, 16, 64)
    sums = [scaled_sums(-uniform_samples(40_000, n, seed=n).log() - 1) for n in sizes]
    exponential_distances = torch.stack([kolmogorov_distance(x, torch.special.ndtr) for x in sums])
    cauchy = Cauchy(0.0, 1.0).icdf(uniform_samples(4_000, 256, seed=1))
    cauchy_distances = torch.stack(
        [kolmogorov_distance(scaled_sums(cauchy[:, :n]), torch.special.ndtr) for n in (4, 64, 256)]
    )
    return all_of(
        coins=rate(counts.double(), coins, -0.5, atol=0.01),
        coin_constant=close(coins[-1] * 32, 1 / (2 * pi) ** 0.5, rtol=0.01),
        exponentials_fall=less_equal(exponential_distances[1:], 0.75 * exponential_distances[:-1]),
        exponentials_rate=rate(torch.tensor(sizes).double(), exponential_distances, -0.5, atol=0.1),
        variance=close(sums[-1].var(), 1.0, atol=0.03),
        cauchy_grows=greater_equal(cauchy_distances.diff(), 0.0),
        cauchy_stays_large=greater_equal(cauchy_distances, 0.2),
    )
