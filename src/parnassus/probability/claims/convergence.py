"""Claims about the ways to converge, the typewriter and the limit theorems (Diehl sec. 5)."""

from math import pi

import torch
from scipy.stats import kstest
from torch import Tensor
from torch.distributions import Cauchy

from parnassus.atlas import Correction, Evidence, accepts, all_of, at_least, at_most, claim, close, erratum, rate
from parnassus.probability.claims.distances import random_distributions
from parnassus.probability.claims.expectations import normals
from parnassus.probability.convergence import (
    deviation_probability,
    later_deviation_probability,
    levy_distance,
    lp_error,
)
from parnassus.probability.laws import Law, empirical_law
from parnassus.probability.limit_theorems import coin_sum_distance, kolmogorov_distance, running_means, scaled_sums
from parnassus.probability.sequences import mirrored, shrinking, spike, typewriter, typewriter_block

OMEGA = (torch.arange(1_000, dtype=torch.float64) + 0.5) / 1_000  # the middles of an even partition of [0, 1)
STEPS = torch.arange(1, 2_016)  # whole blocks of the typewriter, the last of 63 keys
NOWHERE = torch.zeros_like(OMEGA)


def uniforms(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@claim("D5.0.12")
def a_stronger_mode_bounds_a_weaker() -> Evidence:
    """P[|X_n−X| > ε] is at most P[sup > ε] and E|X_n−X|ᵖ/εᵖ, and bounds the distance of the laws (Diehl thm. 5.7)."""
    x = normals(500)
    limit = normals(500, seed=1)
    paths = limit[:, None] + x[:, None] * uniforms(500, 60, seed=2) * 3 / torch.arange(1, 61)
    eps = 0.3
    deviating = deviation_probability(paths, limit, tolerance=eps)
    first, third = lp_error(paths, limit, order=1.0), lp_error(paths, limit, order=3.0)
    some = torch.tensor([0, 4, 19, 59])
    laws = torch.stack([levy_distance(empirical_law(path), empirical_law(limit)) for path in paths.mT[some]])
    return all_of(
        almost_surely_to_probability=at_most(deviating, later_deviation_probability(paths, limit, tolerance=eps)),
        markov=at_most(deviating, third / eps**3),
        lyapunov=at_most(first, third ** (1 / 3) + 1e-15),
        probability_to_distribution=at_most(laws, deviating[some].clamp(min=eps) + 1e-12),
        all_fall=at_most(torch.stack([deviating[-1], first[-1], laws[-1]]), 0.05),
    )


@claim("D5.0.12")
def no_implication_can_be_turned() -> Evidence:
    """The typewriter, spikes n·1 and √n·1 on [0, 1/n) and the mirror −X each converge one way only (Diehl thm. 5.7)."""
    key, tall, root = typewriter(OMEGA, STEPS), spike(OMEGA, STEPS), spike(OMEGA, STEPS, power=0.5)
    x = normals(1_001)
    x = torch.cat([x, -x])  # exactly symmetric
    flipped = mirrored(x, torch.arange(1, 41))
    half, late = len(STEPS) // 2, 999
    return all_of(
        typewriter_in_probability=at_most(deviation_probability(key, NOWHERE, tolerance=0.5)[half:], 1 / 40),
        typewriter_in_mean=at_most(lp_error(key, NOWHERE, order=3.0)[half:], 1 / 40),
        typewriter_not_almost_surely=close(later_deviation_probability(key, NOWHERE, tolerance=0.5)[:half], 1.0),
        spike_almost_surely=at_most(later_deviation_probability(tall, NOWHERE, tolerance=0.5)[late:], 1e-3),
        spike_not_in_mean=close(lp_error(tall, NOWHERE, order=1.0)[[0, 1, 3, 7, 999]], 1.0, atol=1e-12),
        root_in_mean=at_most(lp_error(root, NOWHERE, order=1.0)[late:], 0.05),
        root_not_in_mean_square=close(lp_error(root, NOWHERE, order=2.0)[[0, 1, 3, 7, 999]], 1.0, atol=1e-12),
        mirror_in_distribution=close(levy_distance(empirical_law(flipped[:, 0]), empirical_law(x)), 0.0, atol=1e-9),
        mirror_not_in_probability=at_least(deviation_probability(flipped, x, tolerance=0.5)[::2], 0.75),
    )


@claim("D5.0.12")
def the_levy_distance_sees_convergence_in_distribution() -> Evidence:
    """It is a metric, min(|a − b|, 1) for point masses; along X/n it falls, total variation does not (Diehl sec. 5)."""
    masses = random_distributions(3, 8)
    laws = [Law(normals(8, seed=seed), p) for seed, p in enumerate(masses)]
    table = torch.stack([levy_distance(a, b) for a in laws for b in laws]).view(3, 3)
    one = torch.ones(1, dtype=torch.float64)
    points = torch.stack([levy_distance(Law(0 * one, one), Law(gap * one, one)) for gap in (0.25, 0.7, 3.0)])
    n = torch.tensor([10, 30, 100, 300])
    path = shrinking(torch.linspace(-1, 1, 1_001, dtype=torch.float64), n)
    atom = Law(0 * one, one)
    return all_of(
        symmetric=close(table, table.mT, atol=1e-12),
        zero_for_equal=close(table.diagonal(), 0.0, atol=1e-12),
        triangle=at_least(table[:, None, :] + table.mT[None, :, :] - table[:, :, None], -1e-12),
        points=close(points, torch.tensor([0.25, 0.7, 1.0], dtype=torch.float64), atol=1e-12),
        falls=close(
            torch.stack([levy_distance(empirical_law(x), atom) for x in path.mT]), 1 / (n.double() + 2), rtol=2e-3
        ),
        total_variation_does_not=close(
            torch.tensor([float((x != 0).double().mean()) for x in path.mT]), 1.0, atol=1e-3
        ),
    )


@erratum("D5.0.12", printed="P[|X_n − X| > ε] → 0, for an ε that is not said", right="for every ε > 0")
def one_tolerance_is_not_enough() -> Correction:
    """X_n = ½ for every n never comes within ¼ of 0, yet for ε = 1 the printed limit is 0 (Diehl sec. 5)."""
    paths, limit = torch.full((100, 50), 0.5, dtype=torch.float64), torch.zeros(100, dtype=torch.float64)
    return Correction(
        printed=all_of(
            its_condition=close(deviation_probability(paths, limit, tolerance=1.0), 0.0),
            comes_near=at_most(paths[:, -1], 0.1),
        ),
        corrected=all_of(
            a_smaller_one_refuses_it=close(deviation_probability(paths, limit, tolerance=0.25), 1.0),
            all_pass_where_it_converges=close(
                torch.stack([deviation_probability(paths / 1e4, limit, tolerance=eps) for eps in (1.0, 0.1, 0.001)]),
                0.0,
            ),
        ),
    )


@erratum("D5.0.13", printed="convergence in probability ⇒ almost sure convergence", right="⇏")
def in_probability_is_not_almost_surely() -> Correction:
    """The example given with the remark refutes the arrow as printed: the negation was lost (Diehl sec. 5)."""
    paths = typewriter(OMEGA, STEPS)
    half = len(STEPS) // 2
    deviating = deviation_probability(paths, NOWHERE, tolerance=0.5)[half:]
    return Correction(
        printed=all_of(
            in_probability=at_most(deviating, 0.03),
            almost_surely=at_most(later_deviation_probability(paths, NOWHERE, tolerance=0.5)[half], 0.03),
        ),
        corrected=all_of(
            in_probability=at_most(deviating, 0.03), every_outcome_again=close(paths[:, half:].amax(1), 1.0)
        ),
    )


@claim("D5.0.13")
def the_typewriter_strikes_every_point_once_a_block() -> Evidence:
    """P[X_n ≠ 0] = 1/m → 0 in block m, and each ω is struck once in every block, so for ever (Diehl sec. 5)."""
    m, j = typewriter_block(STEPS)
    omega = torch.arange(0, 27_720, 7, dtype=torch.float64) / 27_720
    small = torch.arange(1, 78)  # blocks 2 to 12
    exact = typewriter(torch.arange(27_720, dtype=torch.float64) / 27_720 + 1e-9, small)  # all of 2 … 12 divide 27 720
    strikes = torch.zeros(len(omega), 64, dtype=torch.float64).index_add(1, m, typewriter(omega, STEPS))
    large = torch.tensor([10**12, 10**12 + 1])
    blocks, places = typewriter_block(large)
    return all_of(
        first_keys=close(torch.stack([m, j], 1)[:5], torch.tensor([[2, 1], [2, 2], [3, 1], [3, 2], [3, 3]])),
        numbering=close(m * (m - 1) // 2 + j - 1, STEPS),
        probability=close(exact.mean(0), 1 / m[: len(small)].double(), atol=1e-12),
        once_a_block=close(strikes[:, 2:], 1.0),
        far_out=close(blocks * (blocks - 1) // 2 + places - 1, large),
    )


@claim("D5.0.14")
def running_means_settle_if_there_is_a_mean() -> Evidence:
    """Means of exponential draws near 1 as 1/√n; the mean of n Cauchy draws is as wild as one (Diehl thm. 5.9)."""
    draws = -uniforms(300, 8_192).log()
    means = running_means(draws)
    n = torch.tensor([64, 128, 256, 512, 1_024, 2_048])
    spread = (means - 1).abs()[:, n - 1].mean(0)
    wild = running_means(Cauchy(0.0, 1.0).icdf(uniforms(4_000, 500, seed=1)))
    return all_of(
        settled=at_most(
            later_deviation_probability(means, torch.ones(300, dtype=torch.float64), tolerance=0.1)[4_095], 0.01
        ),
        root_law=rate(n.double(), spread, -0.5, atol=0.05),
        cauchy_mean_is_cauchy=accepts(kstest(wild[:, -1].numpy(), "cauchy").pvalue),
        cauchy_does_not_settle=at_least(
            deviation_probability(wild, torch.zeros(4_000, dtype=torch.float64), tolerance=1.0), 0.45
        ),
    )


@claim("D5.0.14")
def scaled_sums_become_normal() -> Evidence:
    """The distance of n^(−1/2) Σ X_i to N(0, E X²) falls as 1/√n; that of Cauchy sums grows (Diehl thm. 5.9)."""
    counts = torch.tensor([4, 16, 64, 256, 1_024])
    coins = torch.tensor([coin_sum_distance(int(n)) for n in counts], dtype=torch.float64)
    sizes = (1, 4, 16, 64)
    sums = [scaled_sums(-uniforms(40_000, n, seed=n).log() - 1) for n in sizes]
    falling = torch.stack([kolmogorov_distance(x, torch.special.ndtr) for x in sums])
    cauchy = Cauchy(0.0, 1.0).icdf(uniforms(4_000, 256, seed=1))
    far = torch.stack([kolmogorov_distance(scaled_sums(cauchy[:, :n]), torch.special.ndtr) for n in (4, 64, 256)])
    return all_of(
        coins=rate(counts.double(), coins, -0.5, atol=0.01),
        coin_constant=close(coins[-1] * 32, 1 / (2 * pi) ** 0.5, rtol=0.01),
        exponentials_fall=at_most(falling[1:], 0.75 * falling[:-1]),
        exponentials_rate=rate(torch.tensor(sizes).double(), falling, -0.5, atol=0.1),
        variance=close(sums[-1].var(), 1.0, atol=0.03),
        cauchy_grows=at_least(far.diff(), 0.0),
        cauchy_stays_away=at_least(far, 0.2),
    )
