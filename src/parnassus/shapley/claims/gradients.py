"""Claims about gradient attributions: which properties of Shapley values they have (book sec. 17.3)."""

import torch
from torch import Tensor, nn

from parnassus.atlas import Evidence, all_of, claim, close, greater_equal, less_equal, raises, rate
from parnassus.probability import standard_normal
from parnassus.shapley.attributions.attribution import Attribution, explain_exactly
from parnassus.shapley.attributions.interventional import InterventionalValue
from parnassus.shapley.attributions.model_adapters import ModelError, as_model
from parnassus.shapley.games.cooperative_games import all_coalitions
from parnassus.shapley.gradients.deep_lift import deep_lift
from parnassus.shapley.gradients.expected_gradients import expected_gradients, gradient_moments
from parnassus.shapley.gradients.integrated_gradients import gradient_times_input, integrated_gradients
from parnassus.shapley.gradients.model_gradients import ModelGradients
from parnassus.shapley.gradients.path_integrals import integrate_along_lines

FEATURES = 5
ONES, ZEROS = torch.ones(1, 2, dtype=torch.float64), torch.zeros(1, 2, dtype=torch.float64)


def network(activation: type[nn.Module]) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(FEATURES, 24), activation(), nn.Linear(24, 24), activation(), nn.Linear(24, 2)
    ).double()


def exact_values(model: nn.Module, x: Tensor, background: Tensor) -> Tensor:
    """Shapley values of the first output, by enumeration."""
    return explain_exactly(InterventionalValue(as_model(model), background), x).values[0, 0]


def first_output(attribution: Attribution) -> Tensor:
    return attribution.values[0, 0]


class Product(nn.Module):
    """Π_j x_j^{p_j}."""

    def __init__(self, *powers: int) -> None:
        super().__init__()
        self.powers = torch.tensor(powers, dtype=torch.float64)

    def forward(self, x: Tensor) -> Tensor:
        return x.pow(self.powers).prod(1, keepdim=True)


class Multilinear(nn.Module):
    """Σ_S c_S Π_{j∈S} x_j, with a coefficient for every set of features."""

    def forward(self, x: Tensor) -> Tensor:
        products = torch.where(all_coalitions(FEATURES)[None], x[:, None], 1.0).prod(-1)
        return (products @ standard_normal(2**FEATURES, seed=3))[:, None]


class Minimum(nn.Module):
    """The minimum of two features with a ReLU: x₁ − (x₁ − x₂)₊."""

    def forward(self, x: Tensor) -> Tensor:
        return x[:, :1] - (x[:, :1] - x[:, 1:]).relu()


class Saturated(nn.Module):
    """min(x, 1): constant above 1."""

    def forward(self, x: Tensor) -> Tensor:
        return 1 - (1 - x).relu()


class OuterClipping(nn.Module):
    """((x₁)₊ − 1 − (x₂)₊)₊ (Sundararajan et al. 2017)."""

    def forward(self, x: Tensor) -> Tensor:
        return (x[:, :1].relu() - 1 - x[:, 1:].relu()).relu()


class InnerClipping(nn.Module):
    """((x₁ − 1)₊ − (x₂)₊)₊, the same function."""

    def forward(self, x: Tensor) -> Tensor:
        return ((x[:, :1] - 1).relu() - x[:, 1:].relu()).relu()


@claim("B17.3-1")
def gradient_attributions_are_complete_and_ignore_unused_features() -> Evidence:
    """All gradient attributions sum to f(x); unused or unchanged features have 0 (book sec. 17.3)."""
    x, background = standard_normal(4, FEATURES, seed=1), standard_normal(6, FEATURES, seed=2)
    background[:, 3] = x[:, 3] = 0.5
    gaps, unused = [], []
    for activation in (nn.Tanh, nn.ReLU):
        model = network(activation)
        with torch.no_grad():
            model[0].weight[:, 1] = 0.0  # type: ignore[operator]
            prediction = model(x)
        for found in (
            integrated_gradients(model, x, background),
            integrated_gradients(model, x, background, max_gradients=10),
            expected_gradients(model, x, background, 20, generator=torch.Generator().manual_seed(0)),
            deep_lift(model, x, background),
        ):
            gaps.append((found.prediction - prediction).abs().max())
            unused.append(found.values[..., [1, 3]].abs().max())
    return all_of(
        local_accuracy=less_equal(torch.stack(gaps), 1e-12), missingness=less_equal(torch.stack(unused), 1e-15)
    )


@claim("B17.3-1", "B17.3-3")
def integrated_gradients_equal_shapley_values_of_multilinear_models() -> Evidence:
    """If f is linear in each feature, integrated gradients are Shapley values (book eq. 17.8)."""
    x, background = standard_normal(1, FEATURES, seed=4), standard_normal(3, FEATURES, seed=5)
    model, linear = Multilinear(), nn.Linear(FEATURES, 1).double()
    pair = torch.tensor([[2.0, 3.0]], dtype=torch.float64)
    return all_of(
        multilinear=close(
            first_output(integrated_gradients(model, x, background)), exact_values(model, x, background), atol=1e-10
        ),
        linear=close(first_output(deep_lift(linear, x, background)), exact_values(linear, x, background), atol=1e-12),
        product=close(
            first_output(integrated_gradients(Product(1, 1), pair, ZEROS)), torch.tensor([3.0, 3.0]), atol=1e-12
        ),
    )


@claim("B17.3-1", "B17.3-3")
def integrated_gradients_are_not_consistent() -> Evidence:
    """x₁x₂² has (1/3, 2/3), x₁x₂ has (1/2, 1/2), for the same game (book eq. 17.7).

    At 0 and 1 the models x₁x₂ and x₁x₂² agree, so their games are equal and consistent attributions must be equal too.
    The minimum of 1 and 2 is attributed to the 1 alone.
    """
    half = torch.tensor([0.5, 0.5], dtype=torch.float64)
    uneven = torch.tensor([[1.0, 2.0]], dtype=torch.float64)
    square, plain = Product(1, 2), Product(1, 1)
    return all_of(
        square=close(
            first_output(integrated_gradients(square, ONES, ZEROS)), torch.tensor([1, 2]).double() / 3, atol=1e-12
        ),
        plain=close(first_output(integrated_gradients(plain, ONES, ZEROS)), half, atol=1e-12),
        shapley_of_both=close(
            torch.stack([exact_values(each, ONES, ZEROS) for each in (square, plain)]), half.expand(2, 2)
        ),
        minimum=close(
            first_output(integrated_gradients(Minimum(), uneven, ZEROS)), torch.tensor([1.0, 0.0]), atol=1e-12
        ),
        shapley_of_minimum=close(exact_values(Minimum(), uneven, ZEROS), half, atol=1e-12),
    )


@claim("B17.3-1")
def gradient_times_input_is_zero_where_saturated() -> Evidence:
    """From 0 to 2, min(x, 1) changes by 1 and x/10 by 1/5; gradient × input gives 0 and 1/5 (book eq. 17.7)."""
    two, zero = torch.full((1, 1), 2.0, dtype=torch.float64), torch.zeros(1, 1, dtype=torch.float64)
    linear = nn.Linear(1, 1, bias=False).double()
    nn.init.constant_(linear.weight, 0.1)
    at_input = [float(gradient_times_input(model, two, zero)) for model in (Saturated(), linear)]
    complete = [
        float(explain(model, two, zero).values)
        for explain in (integrated_gradients, deep_lift)
        for model in (Saturated(), linear)
    ]
    return all_of(
        gradient_times_input=close(torch.tensor(at_input), torch.tensor([0.0, 0.2]), atol=1e-7),
        integrated_and_deep_lift=close(torch.tensor(complete), torch.tensor([1.0, 0.2, 1.0, 0.2]), atol=1e-7),
    )


@claim("B17.3-1")
def deep_lift_depends_on_the_implementation() -> Evidence:
    """Two implementations of one function have (3/2, −1/2) and (2, −1); integrals agree (book sec. 17.3)."""
    x, grid = torch.tensor([[3.0, 1.0]], dtype=torch.float64), 3 * standard_normal(1_000, 2, seed=6)
    outer, inner, exact = OuterClipping(), InnerClipping(), torch.tensor([1.5, -0.5], dtype=torch.float64)
    return all_of(
        same_function=close(outer(grid), inner(grid), atol=1e-12),
        outer=close(first_output(deep_lift(outer, x, ZEROS)), exact, atol=1e-12),
        inner=close(first_output(deep_lift(inner, x, ZEROS)), torch.tensor([2.0, -1.0]).double(), atol=1e-12),
        integrated_outer=close(first_output(integrated_gradients(outer, x, ZEROS)), exact, atol=1e-9),
        integrated_inner=close(first_output(integrated_gradients(inner, x, ZEROS)), exact, atol=1e-9),
        shapley=close(exact_values(inner, x, ZEROS), exact, atol=1e-12),
    )


@claim("B17.3-1")
def kinks_are_integrated_exactly() -> Evidence:
    """Adaptive integration of a ReLU network is complete to 1e-8; 50 midpoints have an error above 1e-4."""
    model, x, background = network(nn.ReLU), standard_normal(4, FEATURES, seed=1), standard_normal(1, FEATURES, seed=2)
    gradients = ModelGradients(model)
    change = gradients.outputs(x) - gradients.outputs(background)
    found = integrate_along_lines(gradients, x, background, tolerance=1e-9, max_gradients=10_000)
    midpoints = ((torch.arange(50).double() + 0.5) / 50)[:, None, None]
    points = background + midpoints * (x - background)
    plain = gradients(points.flatten(0, 1)).unflatten(0, (50, len(x))).mean(0) * (x - background)[:, None]
    tanh = ModelGradients(network(nn.Tanh))
    smooth = integrate_along_lines(tanh, x, background, tolerance=1e-6, max_gradients=10_000)
    smooth_gap = smooth.integrals.sum(-1) - (tanh.outputs(x) - tanh.outputs(background))
    return all_of(
        adaptive=less_equal((found.integrals.sum(-1) - change).abs().max(), 1e-8),
        midpoints=greater_equal((plain.sum(-1) - change).abs().max(), 1e-4),
        adaptive_gradients=less_equal(float(found.evaluations), 2_000.0),
        smooth=less_equal(smooth_gap.abs().max(), 1e-6),
        smooth_gradients=less_equal(float(smooth.evaluations), 200.0),
        discontinuity_is_rejected=raises(
            ModelError, lambda: integrated_gradients(lambda z: z.relu().sign(), ONES, ZEROS)
        ),
    )


@claim("B17.3-1", "B17.3-3")
def a_control_variate_completes_expected_gradients() -> Evidence:
    """The sum of plain draws has an error of order 1/√n; as control variate it reduces all errors (book sec. 17.3)."""
    model, x, background = (
        network(nn.Tanh),
        standard_normal(4, FEATURES, seed=1),
        2 * standard_normal(8, FEATURES, seed=2),
    )
    gradients, counts = ModelGradients(model), (25, 100, 400)
    change = gradients.outputs(x) - gradients.outputs(background).mean(0)
    exact = integrated_gradients(model, x, background).values
    generator, gaps, deviations = torch.Generator().manual_seed(0), [], []
    for count in counts:
        drawn = [gradient_moments(gradients, x, background, count, generator=generator).mean for _ in range(25)]
        gaps.append((torch.stack(drawn).sum(-1) - change).square().mean().sqrt())
        deviations.append((torch.stack(drawn) - exact).square().mean().sqrt())
    controlled = [expected_gradients(model, x, background, 100, generator=generator) for _ in range(25)]
    deviation = torch.stack([each.values for each in controlled]) - exact
    scores = deviation / torch.stack([each.errors for each in controlled])
    by_baseline = torch.stack([integrated_gradients(model, x, low[None]).values for low in background]).mean(0)
    return all_of(
        mean_of_baselines=close(by_baseline, exact, atol=1e-6),
        gap=rate(torch.tensor(counts), torch.stack(gaps), -0.5, atol=0.12),
        complete=less_equal((controlled[0].prediction - gradients.outputs(x)).abs().max(), 1e-12),
        error_is_smaller=less_equal(deviation.square().mean().sqrt(), float(deviations[1])),
        reported_errors=close(scores.square().mean().sqrt(), 1.0, atol=0.12),
    )
