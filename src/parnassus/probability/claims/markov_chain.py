"""Claims about random walks, Markov chains and Markov kernels (Diehl sec. 5.1)."""

from fractions import Fraction
from itertools import repeat

import torch
from scipy.stats import chi2, chisquare, kstest
from torch import Tensor

from parnassus.atlas import (
    Correction,
    Evidence,
    accepts,
    all_of,
    claim,
    close,
    erratum,
    greater_equal,
    raises,
    rejects,
)
from parnassus.probability.distributions.normal import normal_density
from parnassus.probability.distributions.seeded_samples import seeded_generator, uniform_samples
from parnassus.probability.processes.markov_chain import InhomogeneousMarkovChain, MarkovChain, stationary_distribution
from parnassus.probability.processes.markov_kernel import LinearGaussianKernel, kernel_mass, sample_paths
from parnassus.probability.processes.path_distribution import (
    chain_distribution,
    is_markov,
    markov_violations,
    next_state_distribution,
    observed_distribution,
    random_walk_distribution,
)
from parnassus.probability.processes.random_walk import random_walk

WEATHER = MarkovChain(
    torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64),
    torch.tensor([[0.7, 0.2, 0.1], [0.3, 0.4, 0.3], [0.2, 0.3, 0.5]], dtype=torch.float64),
)


def chi_square_p_value(states: Tensor, distribution: Tensor) -> float:
    """The p-value of Pearson's χ² test that the states are drawn from the distribution."""
    counts = torch.bincount(states, minlength=len(distribution)).double()
    return float(chisquare(counts, distribution * len(states)).pvalue)


@claim("D5.1.2", "D5.1.3")
def the_random_walk_is_markov() -> Evidence:
    """Over all paths of 8 steps, for p = ½ and ⅓, the walk is Markov; sums of two steps are not (Diehl ex. 5.10).

    S_n = X_n + X_{n−1} is not Markov: P[S_{n+1} = 2 | S_n = 0] is 0 after S_{n−1} = 2, as then X_n = −1.
    """
    fair, biased = random_walk_distribution(8), random_walk_distribution(8, up=Fraction(1, 3))
    half, signs = Fraction(1, 2), (-1, 1)
    steps = {(a, b): {(b, c): half for c in signs} for a in signs for b in signs}
    pairs = observed_distribution(chain_distribution(dict.fromkeys(steps, Fraction(1, 4)), [steps] * 4), sum)
    return all_of(
        paths=close(len(fair), 2**9),
        fair_walk=close(float(is_markov(fair)), 1.0),
        biased_walk=close(float(is_markov(biased)), 1.0),
        sums=close(float(is_markov(pairs)), 0.0),
        sums_of_two_steps=greater_equal(len(markov_violations(pairs)), 1),
        after_2_and_0=close(float(next_state_distribution(pairs, (2, 0)).get(2, Fraction(0))), 0.0),
        after_0=close(float(next_state_distribution(pairs, (0,), since=1)[2]), 0.25),
    )


@claim("D5.1.1")
def a_sample_path_is_built_step_by_step() -> Evidence:
    """X_{n+1} depends on X_n and the kernel of step n; the walk has E Y_n = (n + 1)(2p − 1) (Diehl sec. 5.1)."""
    kernels = [lambda x, _: 2 * x, lambda x, _: x + 3, lambda x, _: x.square()]
    paths = sample_paths(kernels, torch.tensor([1.0, -2.0]))
    walk = random_walk(40_000, steps=6, up=0.8, generator=seeded_generator())
    n = torch.arange(7)
    return all_of(
        paths=close(paths, torch.tensor([[1.0, 2.0, 5.0, 25.0], [-2.0, -4.0, -1.0, 1.0]])),
        steps=close(walk.diff(dim=1).abs(), 1),
        first_step=close(walk[:, 0].abs(), 1),
        mean=close(walk.double().mean(0), 0.6 * (n + 1), atol=4 * (0.64 * 7 / 40_000) ** 0.5),
        variance=close(walk.double().var(0), 0.64 * (n + 1), rtol=0.05),
    )


@claim("D5.1.3")
def the_variance_of_a_random_walk_is_its_number_of_steps() -> Evidence:
    """Var Y_n = n + 1 for p = ½, as Y_0 is already a step; 4p(1 − p)(n + 1) in general (Diehl ex. 5.10)."""

    def moments(up: Fraction) -> tuple[Fraction, Fraction]:
        distribution = observed_distribution(random_walk_distribution(9, up=up), lambda y: y)
        mean = sum((p * path[-1] for path, p in distribution.items()), Fraction(0))
        return mean, sum((p * (path[-1] - mean) ** 2 for path, p in distribution.items()), Fraction(0))

    paths = random_walk(20_000, steps=400, generator=seeded_generator()).double()
    n = torch.arange(401)
    return all_of(
        fair=close(float(moments(Fraction(1, 2))[1]), 10.0),
        biased_mean=close(float(moments(Fraction(1, 4))[0]), -5.0),
        biased_variance=close(float(moments(Fraction(1, 4))[1]), 7.5),
        simulated=close(paths.var(0) / (n + 1), 1.0, atol=0.05),
    )


@claim("D5.1.4")
def the_marginal_distribution_is_a_matrix_power() -> Evidence:
    """100,000 simulated paths have distribution ν Aⁿ at step n, and not ν Aⁿ⁻¹ (Diehl ex. 5.10)."""
    paths = WEATHER.sample(100_000, steps=4, generator=seeded_generator())
    marginals = WEATHER.marginals(4)
    rows = [{j: Fraction(round(10 * p), 10) for j, p in enumerate(row)} for row in WEATHER.transition.tolist()]
    of_paths = chain_distribution({0: Fraction(1)}, [dict(enumerate(rows))] * 3)
    by_paths = [float(sum(p for path, p in of_paths.items() if path[-1] == state)) for state in range(3)]
    return all_of(
        **{f"step_{n}": accepts(chi_square_p_value(paths[:, n], WEATHER.marginal(n))) for n in range(1, 5)},
        one_step_less=rejects(chi_square_p_value(paths[:, 2], WEATHER.marginal(1))),
        by_recursion=close(marginals[4], WEATHER.marginal(4), atol=1e-15),
        by_paths=close(torch.tensor(by_paths, dtype=torch.float64), WEATHER.marginal(3), atol=1e-14),
        sums_to_one=close(marginals.sum(1), 1.0, atol=1e-14),
    )


@claim("D5.1.4")
def row_stochastic_matrices_preserve_mass() -> Evidence:
    """ν A is a distribution for every ν if the rows of A sum to one; columns do not suffice (Diehl ex. 5.10)."""
    columns = WEATHER.transition.T
    starts = uniform_samples(100, 3)
    starts = starts / starts.sum(1, keepdim=True)
    return all_of(
        rows=close((starts @ WEATHER.transition).sum(1), 1.0, atol=1e-14),
        columns=close((WEATHER.start @ columns).sum(), 1.2, atol=1e-14),
        rejected=raises(ValueError, lambda: MarkovChain(WEATHER.start, columns)),
    )


@claim("D5.1.4")
def a_chain_converges_at_the_rate_of_its_second_eigenvalue() -> Evidence:
    """The distance of ν Aⁿ to the stationary distribution decreases by the factor |λ₂| per step (Diehl sec. 5.1)."""
    stationary = stationary_distribution(WEATHER.transition)
    second = torch.linalg.eigvals(WEATHER.transition).abs().sort(descending=True).values[1]
    distance = (WEATHER.marginals(16) - stationary).abs().sum(1)
    return all_of(
        stationary=close(stationary @ WEATHER.transition, stationary, atol=1e-15),
        factor=close(distance[16] / distance[15], second, rtol=1e-3),
        two_closed_classes_are_rejected=raises(ValueError, lambda: stationary_distribution(torch.eye(2))),
    )


@claim("D5.1.5")
def inhomogeneous_transitions_multiply_in_order() -> Evidence:
    """With a matrix for each step the distribution is ν A_0 A_1 A_2, in this order (Diehl ex. 5.10)."""
    matrices = uniform_samples(3, 4, 4).square()
    matrices = matrices / matrices.sum(-1, keepdim=True)
    chain = InhomogeneousMarkovChain(torch.tensor([0.7, 0.1, 0.1, 0.1], dtype=torch.float64), matrices)
    ends = chain.sample(200_000, generator=seeded_generator(1))[:, -1]
    distribution = chain.start @ matrices[0] @ matrices[1] @ matrices[2]
    return all_of(
        product=close(chain.marginals()[-1], distribution, atol=1e-15),
        simulated=accepts(chi_square_p_value(ends, distribution)),
        reversed_order=rejects(
            chi_square_p_value(ends, InhomogeneousMarkovChain(chain.start, matrices.flip(0)).marginals()[-1])
        ),
    )


@erratum("D5.1.6", printed="∫_V A(x, B) dx = 1 for all B", right="A(x, V) = 1 for all x, and x ↦ A(x, B) measurable")
def a_kernel_is_normalised_over_the_target() -> Correction:
    """The integral of the Gaussian kernel A(x, B) over x is the length of B instead (Diehl ex. 5.10)."""
    kernel = LinearGaussianKernel(torch.tensor([[0.25]], dtype=torch.float64))
    x = torch.linspace(-10, 12, 4_001, dtype=torch.float64)
    lengths = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64)
    normal = torch.distributions.Normal(x, 0.5)
    over_x = torch.stack([torch.trapezoid(normal.cdf(b) - normal.cdf(torch.zeros_like(b)), x) for b in lengths])
    points = torch.tensor([-1.0, 0.0, 1.0], dtype=torch.float64)
    over_y = torch.stack([torch.trapezoid(normal_density(x, mean=point, variance=0.25), x) for point in points])
    masses = [
        kernel_mass(kernel, point[None], lambda y: y[:, 0].isfinite(), draws=100, generator=seeded_generator())
        for point in points
    ]
    return Correction(
        printed=close(over_x, 1.0, atol=1e-3),
        corrected=all_of(
            from_every_point=close(over_y, 1.0, atol=1e-9),
            by_sampling=close(torch.tensor(masses), 1.0),
            over_x_is_the_length_of_b=close(over_x, lengths, atol=1e-9),
        ),
    )


@claim("D5.1.6")
def a_kernel_is_defined_by_its_sampler() -> Evidence:
    """A(x, B) by sampling is the normal probability of B, and any sampler is a kernel (Diehl ex. 5.10)."""
    kernel = LinearGaussianKernel(torch.eye(1, dtype=torch.float64))
    points = torch.linspace(-2, 2, 5, dtype=torch.float64)
    masses = [
        kernel_mass(kernel, x[None], lambda y: y[:, 0] < 0, draws=40_000, generator=seeded_generator()) for x in points
    ]
    jump = sample_paths([kernel, lambda x, _: torch.zeros_like(x)], points[:, None], generator=seeded_generator())
    return all_of(
        masses=close(torch.tensor(masses), torch.distributions.Normal(0.0, 1.0).cdf(-points), atol=0.01),
        any_sampler_is_a_kernel=close(jump[:, 2], 0.0),
    )


@claim("D5.1.7")
def gaussian_steps_add_their_covariances() -> Evidence:
    """The composition of n steps N(x, Σ) is N(x, nΣ), in closed form and in 50,000 paths (Diehl ex. 5.10)."""
    covariance = torch.tensor([[1.0, 0.6], [0.6, 0.5]], dtype=torch.float64)
    kernel, x = LinearGaussianKernel(covariance), torch.tensor([2.0, -1.0], dtype=torch.float64)
    ends = sample_paths(repeat(kernel, 7), x.expand(50_000, 2), generator=seeded_generator())[:, -1]
    centred = ends - x
    squared = (centred @ torch.linalg.inv(7 * covariance) * centred).sum(1)
    return all_of(
        n_times_the_covariance=close(kernel.power(7).covariance, 7 * covariance, rtol=1e-14),
        mean=close(ends.mean(0), x, atol=0.04),
        covariance=close(ends.T.cov(), 7 * covariance, atol=0.15),
        mahalanobis_is_chi_squared=accepts(float(kstest(squared, chi2(2).cdf).pvalue)),
        not_with_six=rejects(float(kstest(squared * 7 / 6, chi2(2).cdf).pvalue)),
    )


@claim("D5.1.7")
def scaled_gaussian_steps_compose_to_the_diffusion_kernel() -> Evidence:
    """The composition of steps N(√α_t x, 1 − α_t) is N(√ᾱ x, 1 − ᾱ), as in diffusion models (Diehl ex. 5.10)."""
    alpha = torch.linspace(0.999, 0.9, 30, dtype=torch.float64)
    composed = LinearGaussianKernel((1 - alpha[0]).reshape(1, 1), float(alpha[0].sqrt()))
    for each in alpha[1:]:
        composed = composed.compose(LinearGaussianKernel((1 - each).reshape(1, 1), float(each.sqrt())))
    alpha_bar = alpha.prod()
    return all_of(
        factor=close(composed.factor, alpha_bar.sqrt(), rtol=1e-12),
        variance=close(composed.covariance, 1 - alpha_bar, rtol=1e-12),
    )
