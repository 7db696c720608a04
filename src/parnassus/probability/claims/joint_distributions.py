"""Claims about push-forwards, independence, joint densities and conditional distributions (Diehl sec. 5)."""

from math import pi

import torch
from torch import Tensor

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal, raises, rate
from parnassus.probability.distributions.conditional import conditional_expectation, conditional_table, conditioning_gap
from parnassus.probability.distributions.discrete import (
    empirical_distribution,
    events,
    joint_distribution,
    push_forward,
)
from parnassus.probability.distributions.gaussian import gaussian_log_density
from parnassus.probability.distributions.independence import (
    event_dependence,
    function_covariance,
    maximal_correlation,
    product_table,
)
from parnassus.probability.distributions.joint_density import GridDensity, box_density
from parnassus.probability.distributions.normal import normal_density
from parnassus.probability.distributions.seeded_samples import random_distributions, standard_normal
from parnassus.probability.distributions.simplex import check_distribution
from parnassus.probability.expectations.expectation import expectation, expectation_by_sampling

TWO_DICE = torch.cartesian_prod(
    torch.arange(1.0, 7.0, dtype=torch.float64), torch.arange(1.0, 7.0, dtype=torch.float64)
)
FAIR = torch.full((36,), 1 / 36, dtype=torch.float64)
GRID = torch.linspace(-9, 9, 361, dtype=torch.float64)


@claim("D5.0.1")
def expectations_agree_under_the_push_forward() -> Evidence:
    """E f(X) = ∫ f(X) dP = ∫ f dP_X: exact for two dice, with scalar and vector values (Diehl sec. 5)."""
    total = TWO_DICE.sum(1)
    total_distribution = push_forward(total, FAIR)
    pair = push_forward(torch.stack([total, TWO_DICE.amax(1)], 1), FAIR)
    triangle = (6 - (torch.arange(2.0, 13.0, dtype=torch.float64) - 7).abs()) / 36
    joint = joint_distribution(total, TWO_DICE.amax(1), FAIR)
    places, cumulative = torch.tensor([[3.0, 3.5, 12.0], [3 / 36, 3 / 36, 1.0]], dtype=torch.float64)
    estimate = expectation_by_sampling(torch.cos, standard_normal(40_000).square())  # χ², whose E cos is known
    return all_of(
        distribution_of_the_total=close(total_distribution.p, triangle, atol=1e-15),
        scalars=close(total_distribution.expectation(torch.square), expectation(total.square(), FAIR), atol=1e-12),
        vectors=close(
            pair.expectation(lambda v: v[:, 0] * v[:, 1].exp()), (total * TWO_DICE.amax(1).exp()).mean(), rtol=1e-13
        ),
        mass=close(pair.p.sum(), 1.0, atol=1e-15),
        joint_table=close(joint.table[3], torch.tensor([0, 0, 2, 2, 0, 0], dtype=torch.float64) / 36, atol=1e-15),
        first_marginal=close(joint.table.sum(1), triangle, atol=1e-15),
        second_marginal=close(joint.table.sum(0), torch.arange(1, 12, 2) / 36, atol=1e-7),
        empirical=close(
            empirical_distribution(TWO_DICE).expectation(lambda v: v[:, 0] * v[:, 1].square()), 3.5 * 91 / 6, rtol=1e-13
        ),
        frequencies=close(empirical_distribution(total).cdf(places), cumulative, atol=1e-14),
        sampled=less_equal((estimate.mean - _chi_square_cosine()).abs(), 4 * estimate.standard_error),
    )


def _chi_square_cosine() -> Tensor:
    """E cos(X²) = Re (1 − 2i)^(−1/2) for X ~ N(0, 1)."""
    return torch.tensor(1 - 2j, dtype=torch.complex128).pow(-0.5).real


@claim("D5.0.2")
def events_factorise_exactly_when_functions_do() -> Evidence:
    """Independence of all events is equivalent to zero covariance of all functions (Diehl sec. 5)."""
    product = random_distributions(1, 5)[0][:, None] * random_distributions(1, 6, seed=1)[0]
    tables = random_distributions(200, 12, seed=2).view(200, 3, 4)
    f, g = standard_normal(50, 5), standard_normal(50, 6, seed=1)
    covariances = torch.stack([function_covariance(product, *pair) for pair in zip(f, g, strict=True)])
    in_events = torch.stack([event_dependence(table) for table in tables])
    in_functions = torch.stack([maximal_correlation(table) for table in tables])
    enumerated = torch.stack([_gap_by_enumeration(table) for table in tables[:5]])
    return all_of(
        independent_events=less_equal(event_dependence(product), 1e-15),
        independent_functions=close(covariances, 0.0, atol=1e-14),
        independent_correlation=less_equal(maximal_correlation(product), 1e-14),
        dependent_events=greater_equal(in_events, 1e-3),
        dependent_functions=greater_equal(in_functions, 4 * in_events),  # as indicators have variances up to ¼
        all_events_enumerated=close(in_events[:5], enumerated, atol=1e-15),
    )


def _gap_by_enumeration(table: Tensor) -> Tensor:
    """The maximum dependence of events, by enumeration of all pairs of events."""
    rows, columns = events(len(table)).double(), events(table.shape[1]).double()
    return (rows @ (table - product_table(table)) @ columns.mT).abs().max()


@claim("D5.0.2")
def uncorrelated_is_not_independent() -> Evidence:
    """X uniform on {−1, 0, 1} and X² have covariance 0, yet X² is a function of X (Diehl sec. 5)."""
    x = torch.tensor([-1.0, 0.0, 1.0], dtype=torch.float64)
    pair = joint_distribution(x, x.square(), torch.full((3,), 1 / 3, dtype=torch.float64))
    return all_of(
        covariance=close(function_covariance(pair.table, pair.x, pair.y), 0.0, atol=1e-16),
        events=close(event_dependence(pair.table), 2 / 9, atol=1e-15),
        functions=close(maximal_correlation(pair.table), 1.0, atol=1e-14),
    )


@claim("D5.0.3")
def a_normal_density_factorises_only_without_correlation() -> Evidence:
    """Marginals on a grid are standard normal; p_{X,Y} = p_X p_Y only for ρ = 0 (Diehl sec. 5)."""
    joint, independent = _normal_pair(0.6), _normal_pair(0.0)
    marginal = normal_density(GRID, mean=0.0, variance=1.0)
    return all_of(
        mass=close(joint.mass, 1.0, atol=1e-12),
        marginal_x=close(joint.marginal_x, marginal, atol=1e-12),
        marginal_y=close(joint.marginal_y, marginal, atol=1e-12),
        product_when_independent=close(independent.values, independent.product, atol=1e-12),
        no_product_when_correlated=greater_equal((joint.values - joint.product).abs().max(), 0.03),
    )


@claim("D5.0.4")
def a_pair_on_the_diagonal_has_no_density() -> Evidence:
    """Histograms of (X, X) grow as 1/h on the diagonal; those of an independent pair converge (Diehl sec. 5)."""
    x, other, origin = standard_normal(400_000), standard_normal(400_000, seed=1), torch.zeros(2, dtype=torch.float64)
    widths = torch.tensor([0.4, 0.2, 0.1, 0.05, 0.025], dtype=torch.float64)

    def heights(pair: Tensor) -> Tensor:
        return torch.stack([box_density(pair, centre=origin, width=float(h)) for h in widths])

    diagonal, independent = heights(torch.stack([x, x], 1)), heights(torch.stack([x, other], 1))
    return all_of(
        grows=rate(widths, diagonal, -1.0, atol=0.03),
        as_predicted=close(diagonal * widths, 1 / (2 * pi) ** 0.5, rtol=0.03),
        converges=close(independent[:3], 1 / (2 * pi), rtol=0.1),
        each_marginal_has_a_density=close(
            box_density(x[:, None], centre=origin[:1], width=0.05), (2 * pi) ** -0.5, rtol=0.03
        ),
    )


@claim("D5.0.5")
def conditional_distributions_determine_the_joint_distribution() -> Evidence:
    """P[X∈A, Y∈B] = Σ_{y∈B} P_{X|Y=y}(A) P[Y=y] for all A, B; the mean of E[f(X)|Y] is E f(X) (Diehl thm. 5.2)."""
    table = random_distributions(1, 20)[0].view(5, 4)
    padded = torch.cat([table, torch.zeros(5, 1, dtype=torch.float64)], 1)  # the last value of Y has probability 0
    kernel, f = conditional_table(table), standard_normal(5)
    product = product_table(table)
    grid = _normal_pair(0.6)
    inner = grid.conditional_x[(GRID.abs() < 5).nonzero()[:, 0]]
    mean, variance = 0.6 * GRID[GRID.abs() < 5][:, None], 1 - 0.36
    return all_of(
        all_events=less_equal(conditioning_gap(kernel, table), 1e-15),
        tower=close(conditional_expectation(f, table) @ table.sum(0), f @ table.sum(1), atol=1e-14),
        each_row_is_a_distribution=close(conditional_table(padded).sum(1), 1.0, atol=1e-15),
        null_values_do_not_matter=less_equal(conditioning_gap(conditional_table(padded), padded), 1e-15),
        constant_if_independent=close(conditional_table(product), product.sum(1), atol=1e-15),
        not_constant_otherwise=greater_equal((kernel - table.sum(1)).abs().max(), 1e-2),
        density_integrates_to_one=close(torch.trapezoid(inner, GRID, dim=1), 1.0, atol=1e-12),
        closed_form_density=close(inner, normal_density(GRID, mean=mean, variance=variance), atol=1e-9),
    )


@erratum(
    "D5.0.5", printed="P[X∈A] = ∫ P_{X|Y=y}(A) P_Y(dy)", right="P[X∈A, Y∈B] = ∫_B P_{X|Y=y}(A) P_Y(dy) for all A, B"
)
def one_equation_does_not_determine_the_conditional_distribution() -> Correction:
    """The constant family P_X satisfies the printed equation for a dependent pair as well (Diehl thm. 5.2)."""
    table = random_distributions(1, 20)[0].view(5, 4)
    p_x, p_y = table.sum(1), table.sum(0)
    constant, kernel = p_x.expand(4, 5), conditional_table(table)
    return Correction(
        printed=all_of(
            satisfies_the_equation=close(constant.mT @ p_y, p_x, atol=1e-15),
            is_the_conditional=close(constant, kernel, atol=1e-3),
        ),
        corrected=all_of(
            the_constant_family_fails=greater_equal(conditioning_gap(constant, table), 1e-2),
            the_conditional_distribution_passes=less_equal(conditioning_gap(kernel, table), 1e-15),
        ),
    )


@erratum("D5.0.5", printed="P_{X|Y=y}(A) = 0 where P[Y=y] = 0", right="any probability measure, for example P_X")
def zero_is_no_probability_measure() -> Correction:
    """For values of Y with probability 0 the printed family has total mass 0 (Diehl thm. 5.2)."""
    table = torch.tensor([[0.2, 0.0], [0.8, 0.0]], dtype=torch.float64)
    printed = torch.where(table.sum(0)[:, None] > 0, conditional_table(table), 0)
    return Correction(
        printed=close(printed.sum(1), 1.0, atol=1e-12),
        corrected=all_of(
            a_distribution_for_each_value=close(conditional_table(table).sum(1), 1.0, atol=1e-15),
            still_conditional=less_equal(conditioning_gap(conditional_table(table), table), 1e-15),
            the_printed_family_is_rejected=raises(ValueError, lambda: check_distribution(printed)),
        ),
    )


def _normal_pair(correlation: float) -> GridDensity:
    """The density of two standard normal variables with this correlation on [−9, 9]²."""
    covariance = torch.tensor([[1.0, correlation], [correlation, 1.0]], dtype=torch.float64)
    points = torch.cartesian_prod(GRID, GRID)
    log_density = gaussian_log_density(points, mean=torch.zeros(2, dtype=torch.float64), covariance=covariance)
    return GridDensity(GRID, GRID, log_density.exp().view(len(GRID), len(GRID)))
