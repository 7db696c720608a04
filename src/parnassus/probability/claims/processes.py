"""Claims about walks, chains and kernels (Diehl sec. 5.1)."""

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
    at_least,
    claim,
    close,
    erratum,
    raises,
    rejects,
)
from parnassus.probability.kernels import GaussianKernel, kernel_mass, walk
from parnassus.probability.markov_chains import MarkovChain, TimedChain, stationary_law
from parnassus.probability.normal import normal_density
from parnassus.probability.path_laws import (
    chain_law,
    following_law,
    memories,
    observed,
    walk_law,
)
from parnassus.probability.processes import random_walk

WEATHER = MarkovChain(
    torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64),
    torch.tensor([[0.7, 0.2, 0.1], [0.3, 0.4, 0.3], [0.2, 0.3, 0.5]], dtype=torch.float64),
)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def counted(states: Tensor, law: Tensor) -> float:
    """The p-value of Pearson's test that the states were drawn from the law."""
    counts = torch.bincount(states, minlength=len(law)).double()
    return float(chisquare(counts, law * len(states)).pvalue)


@claim("D5.1.2", "D5.1.3")
def the_random_walk_has_no_memory() -> Evidence:
    """Over all paths of 8 steps, fair or not, the walk is Markov; its last two steps together are not (Diehl ex. 5.10).

    S_n = X_n + X_{n−1} remembers: after 0 it matters whether 2 came before, for then the last step was −1.
    """
    fair, bent = walk_law(8), walk_law(8, up=Fraction(1, 3))
    half, signs = Fraction(1, 2), (-1, 1)
    steps = {(a, b): {(b, c): half for c in signs} for a in signs for b in signs}
    pairs = observed(chain_law(dict.fromkeys(steps, Fraction(1, 4)), [steps] * 4), sum)
    return all_of(
        paths=close(len(fair), 2**9),
        fair_walk=close(len(memories(fair)), 0),
        bent_walk=close(len(memories(bent)), 0),
        sums_of_two_steps=at_least(len(memories(pairs)), 1),
        after_2_and_0=close(float(following_law(pairs, (2, 0)).get(2, Fraction(0))), 0.0),
        after_0=close(float(following_law(pairs, (0,), since=1)[2]), 0.25),
    )


@claim("D5.1.3")
def the_variance_of_a_walk_counts_its_steps() -> Evidence:
    """Var Y_n = n + 1 for fair steps, as Y_0 is a step already; 4p(1 − p)(n + 1) in general (Diehl ex. 5.10)."""

    def moments(up: Fraction) -> tuple[Fraction, Fraction]:
        law = observed(walk_law(9, up=up), lambda y: y)
        mean = sum((p * path[-1] for path, p in law.items()), Fraction(0))
        return mean, sum((p * (path[-1] - mean) ** 2 for path, p in law.items()), Fraction(0))

    paths = random_walk(20_000, steps=400, generator=seeded()).double()
    n = torch.arange(401)
    return all_of(
        fair=close(float(moments(Fraction(1, 2))[1]), 10.0),
        bent_mean=close(float(moments(Fraction(1, 4))[0]), -5.0),
        bent_variance=close(float(moments(Fraction(1, 4))[1]), 7.5),
        simulated=close(paths.var(0) / (n + 1), 1.0, atol=0.05),
    )


@claim("D5.1.4")
def the_law_of_a_chain_is_a_matrix_power_away() -> Evidence:
    """100,000 simulated paths have the law ν Aⁿ at every step, not that of one step less (Diehl ex. 5.10)."""
    paths = WEATHER.sample(100_000, steps=4, generator=seeded())
    laws = WEATHER.laws(4)
    return all_of(
        **{f"step_{n}": accepts(counted(paths[:, n], WEATHER.law(n))) for n in range(1, 5)},
        one_step_less=rejects(counted(paths[:, 2], WEATHER.law(1))),
        by_recursion=close(laws[4], WEATHER.law(4), atol=1e-15),
        sums_to_one=close(laws.sum(1), 1.0, atol=1e-14),
    )


@claim("D5.1.4")
def rows_that_sum_to_one_keep_the_mass() -> Evidence:
    """ν A is a law for every ν when rows sum to one; columns that do are not enough (Diehl ex. 5.10)."""
    columns = WEATHER.transition.T
    laws = torch.rand(100, 3, generator=seeded(), dtype=torch.float64)
    laws = laws / laws.sum(1, keepdim=True)
    return all_of(
        rows=close((laws @ WEATHER.transition).sum(1), 1.0, atol=1e-14),
        columns=close((WEATHER.start @ columns).sum(), 1.2, atol=1e-14),
        refused=raises(ValueError, lambda: MarkovChain(WEATHER.start, columns)),
    )


@claim("D5.1.4")
def a_chain_forgets_its_start_at_the_rate_of_its_second_eigenvalue() -> Evidence:
    """The distance of ν Aⁿ to the stationary law shrinks by |λ₂| a step, whatever ν (Diehl sec. 5.1)."""
    stationary = stationary_law(WEATHER.transition)
    second = torch.linalg.eigvals(WEATHER.transition).abs().sort(descending=True).values[1]
    distance = (WEATHER.laws(16) - stationary).abs().sum(1)
    return all_of(
        stays=close(stationary @ WEATHER.transition, stationary, atol=1e-15),
        factor=close(distance[16] / distance[15], second, rtol=1e-3),
        two_parts_have_no_one_law=raises(ValueError, lambda: stationary_law(torch.eye(2))),
    )


@claim("D5.1.5")
def changing_rules_multiply_in_order() -> Evidence:
    """With a matrix for each step the law is ν A_0 A_1 A_2; another order is another law (Diehl ex. 5.10)."""
    matrices = torch.rand(3, 4, 4, generator=seeded(), dtype=torch.float64).square()
    matrices = matrices / matrices.sum(-1, keepdim=True)
    chain = TimedChain(torch.tensor([0.7, 0.1, 0.1, 0.1], dtype=torch.float64), matrices)
    ends = chain.sample(200_000, generator=seeded(1))[:, -1]
    law = chain.start @ matrices[0] @ matrices[1] @ matrices[2]
    return all_of(
        product=close(chain.laws()[-1], law, atol=1e-15),
        simulated=accepts(counted(ends, law)),
        backwards=rejects(counted(ends, TimedChain(chain.start, matrices.flip(0)).laws()[-1])),
    )


@erratum("D5.1.6", printed="∫_V A(x, B) dx = 1 for all B", right="A(x, V) = 1 for all x, and x ↦ A(x, B) measurable")
def the_mass_of_a_kernel_is_summed_over_where_it_goes() -> Correction:
    """Over where one comes from, the Gaussian kernel sums to the length of B instead (Diehl ex. 5.10)."""
    kernel = GaussianKernel(torch.tensor([[0.25]], dtype=torch.float64))
    x = torch.linspace(-10, 12, 4_001, dtype=torch.float64)
    lengths = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64)
    normal = torch.distributions.Normal(x, 0.5)
    over_x = torch.stack([torch.trapezoid(normal.cdf(b) - normal.cdf(torch.zeros_like(b)), x) for b in lengths])
    places = torch.tensor([-1.0, 0.0, 1.0], dtype=torch.float64)
    over_y = torch.stack([torch.trapezoid(normal_density(x, mean=place, variance=0.25), x) for place in places])
    drawn = [
        kernel_mass(kernel, place[None], lambda y: y[:, 0].isfinite(), draws=100, generator=seeded())
        for place in places
    ]
    return Correction(
        printed=close(over_x, 1.0, atol=1e-3),
        corrected=all_of(
            from_every_place=close(over_y, 1.0, atol=1e-9),
            by_draws=close(torch.tensor(drawn), 1.0),
            over_x_is_the_length_of_b=close(over_x, lengths, atol=1e-9),
        ),
    )


@claim("D5.1.6")
def a_kernel_is_what_can_be_drawn_from() -> Evidence:
    """A(x, B) by draws is the normal probability of B around x, for every x, and a walk uses it (Diehl ex. 5.10)."""
    kernel = GaussianKernel(torch.eye(1, dtype=torch.float64))
    places = torch.linspace(-2, 2, 5, dtype=torch.float64)
    drawn = [kernel_mass(kernel, x[None], lambda y: y[:, 0] < 0, draws=40_000, generator=seeded()) for x in places]
    jump = walk([kernel, lambda x, _: torch.zeros_like(x)], places[:, None], generator=seeded())
    return all_of(
        masses=close(torch.tensor(drawn), torch.distributions.Normal(0.0, 1.0).cdf(-places), atol=0.01),
        any_sampler_will_do=close(jump[:, 2], 0.0),
    )


@claim("D5.1.7")
def gaussian_steps_add_their_covariances() -> Evidence:
    """Together n steps N(x, Σ) are one step N(x, nΣ), in closed form and in 50,000 walks (Diehl ex. 5.10)."""
    covariance = torch.tensor([[1.0, 0.6], [0.6, 0.5]], dtype=torch.float64)
    kernel, x = GaussianKernel(covariance), torch.tensor([2.0, -1.0], dtype=torch.float64)
    ends = walk(repeat(kernel, 7), x.expand(50_000, 2), generator=seeded())[:, -1]
    away = ends - x
    squared = (away @ torch.linalg.inv(7 * covariance) * away).sum(1)
    return all_of(
        n_times_the_covariance=close(kernel.repeated(7).covariance, 7 * covariance, rtol=1e-14),
        mean=close(ends.mean(0), x, atol=0.04),
        covariance=close(ends.T.cov(), 7 * covariance, atol=0.15),
        mahalanobis_is_chi_squared=accepts(float(kstest(squared, chi2(2).cdf).pvalue)),
        not_with_six=rejects(float(kstest(squared * 7 / 6, chi2(2).cdf).pvalue)),
    )


@claim("D5.1.7")
def shrinking_gaussian_steps_end_in_the_normal_law() -> Evidence:
    """Steps N(√α_t x, 1 − α_t) in a row are N(√ᾱ x, 1 − ᾱ): what diffusion models build on (Diehl ex. 5.10)."""
    alpha = torch.linspace(0.999, 0.9, 30, dtype=torch.float64)
    whole = GaussianKernel((1 - alpha[0]).reshape(1, 1), float(alpha[0].sqrt()))
    for each in alpha[1:]:
        whole = whole.then(GaussianKernel((1 - each).reshape(1, 1), float(each.sqrt())))
    alpha_bar = alpha.prod()
    return all_of(
        factor=close(whole.factor, alpha_bar.sqrt(), rtol=1e-12),
        variance=close(whole.covariance, 1 - alpha_bar, rtol=1e-12),
    )
