"""Claims about attributions by gradients: what they satisfy of Shapley values, and what not (book sec. 17.3)."""

import torch
from torch import Tensor, nn

from parnassus.atlas import Evidence, all_of, at_least, at_most, claim, close, raises, rate
from parnassus.shapley.attribution import Attribution, explain_exactly
from parnassus.shapley.deep_lift import deep_lift
from parnassus.shapley.game import members
from parnassus.shapley.gradients import expected_gradients, gradient_times_input, integrated_gradients, moments
from parnassus.shapley.lines import along_lines
from parnassus.shapley.masking import Interventional
from parnassus.shapley.model import ModelError, as_model
from parnassus.shapley.slopes import Slopes

FEATURES = 5
ONES, ZEROS = torch.ones(1, 2, dtype=torch.float64), torch.zeros(1, 2, dtype=torch.float64)


def normals(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def network(activation: type[nn.Module]) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(FEATURES, 24), activation(), nn.Linear(24, 24), activation(), nn.Linear(24, 2)
    ).double()


def shapley(model: nn.Module, x: Tensor, background: Tensor) -> Tensor:
    """Of the first output, by all coalitions."""
    return explain_exactly(Interventional(as_model(model), background), x).values[0, 0]


def of_first(parts: Attribution) -> Tensor:
    return parts.values[0, 0]


class Product(nn.Module):
    """Π_j x_j^{p_j}."""

    def __init__(self, *powers: int) -> None:
        super().__init__()
        self.powers = torch.tensor(powers, dtype=torch.float64)

    def forward(self, x: Tensor) -> Tensor:
        return x.pow(self.powers).prod(1, keepdim=True)


class Multilinear(nn.Module):
    """Σ_S c_S Π_{j∈S} x_j, with a weight for every set of features."""

    def forward(self, x: Tensor) -> Tensor:
        products = torch.where(members(FEATURES)[None], x[:, None], 1.0).prod(-1)
        return (products @ normals(2**FEATURES, seed=3))[:, None]


class Smaller(nn.Module):
    """The minimum of x_j, as a sum of ReLUs for two: x₁ − (x₁ − x₂)₊."""

    def forward(self, x: Tensor) -> Tensor:
        return x[:, :1] - (x[:, :1] - x[:, 1:]).relu()


class Saturated(nn.Module):
    """min(x, 1): rises by 1 and then no more."""

    def forward(self, x: Tensor) -> Tensor:
        return 1 - (1 - x).relu()


class Late(nn.Module):
    """((x₁)₊ − 1 − (x₂)₊)₊ (Sundararajan et al. 2017)."""

    def forward(self, x: Tensor) -> Tensor:
        return (x[:, :1].relu() - 1 - x[:, 1:].relu()).relu()


class Early(nn.Module):
    """((x₁ − 1)₊ − (x₂)₊)₊, which says the same of every input."""

    def forward(self, x: Tensor) -> Tensor:
        return ((x[:, :1] - 1).relu() - x[:, 1:].relu()).relu()


@claim("B17.3-1")
def gradients_add_up_and_leave_the_idle_alone() -> Evidence:
    """Integrated, drawn or by secants, parts sum to f(x); an idle or unmoved feature gets 0 (book sec. 17.3)."""
    x, background = normals(4, FEATURES, seed=1), normals(6, FEATURES, seed=2)
    background[:, 3] = x[:, 3] = 0.5
    gaps, idle = [], []
    for activation in (nn.Tanh, nn.ReLU):
        model = network(activation)
        with torch.no_grad():
            model[0].weight[:, 1] = 0.0  # type: ignore[operator]
            said = model(x)
        for parts in (
            integrated_gradients(model, x, background),
            integrated_gradients(model, x, background, most=10),
            expected_gradients(model, x, background, 20, generator=torch.Generator().manual_seed(0)),
            deep_lift(model, x, background),
        ):
            gaps.append((parts.prediction - said).abs().max())
            idle.append(parts.values[..., [1, 3]].abs().max())
    return all_of(local_accuracy=at_most(torch.stack(gaps), 1e-12), missingness=at_most(torch.stack(idle), 1e-15))


@claim("B17.3-1", "B17.3-3")
def multilinear_models_have_the_values_of_shapley() -> Evidence:
    """If f is linear in each feature, integrated gradients are Shapley values, for any background (book eq. 17.8)."""
    x, background = normals(1, FEATURES, seed=4), normals(3, FEATURES, seed=5)
    model, linear = Multilinear(), nn.Linear(FEATURES, 1).double()
    pair = torch.tensor([[2.0, 3.0]], dtype=torch.float64)
    return all_of(
        any_sets=close(of_first(integrated_gradients(model, x, background)), shapley(model, x, background), atol=1e-10),
        linear=close(of_first(deep_lift(linear, x, background)), shapley(linear, x, background), atol=1e-12),
        product=close(of_first(integrated_gradients(Product(1, 1), pair, ZEROS)), torch.tensor([3.0, 3.0]), atol=1e-12),
    )


@claim("B17.3-1", "B17.3-3")
def elsewhere_they_differ_and_are_not_consistent() -> Evidence:
    """x₁x₂² has (1/3, 2/3), not (1/2, 1/2): one game, other parts, so consistency is lost (book eq. 17.7).

    At 0 and 1 the models x₁x₂ and x₁x₂² agree, so both are the same game and a consistent rule gives the same parts.
    The smaller one of 1 and 2 is all due to the 1.
    """
    half = torch.tensor([0.5, 0.5], dtype=torch.float64)
    uneven = torch.tensor([[1.0, 2.0]], dtype=torch.float64)
    square, plain = Product(1, 2), Product(1, 1)
    return all_of(
        square=close(
            of_first(integrated_gradients(square, ONES, ZEROS)), torch.tensor([1, 2]).double() / 3, atol=1e-12
        ),
        plain=close(of_first(integrated_gradients(plain, ONES, ZEROS)), half, atol=1e-12),
        shapley_of_both=close(torch.stack([shapley(each, ONES, ZEROS) for each in (square, plain)]), half.expand(2, 2)),
        smaller=close(of_first(integrated_gradients(Smaller(), uneven, ZEROS)), torch.tensor([1.0, 0.0]), atol=1e-12),
        shapley_of_smaller=close(shapley(Smaller(), uneven, ZEROS), half, atol=1e-12),
    )


@claim("B17.3-1")
def the_slope_at_the_input_misses_what_is_saturated() -> Evidence:
    """At 2, min(x, 1) has risen by 1 and x/10 by 1/5; gradient × input says 0 and 1/5 (book eq. 17.7)."""
    two, nought = torch.full((1, 1), 2.0, dtype=torch.float64), torch.zeros(1, 1, dtype=torch.float64)
    gentle = nn.Linear(1, 1, bias=False).double()
    nn.init.constant_(gentle.weight, 0.1)
    at_input = [float(gradient_times_input(model, two, nought)) for model in (Saturated(), gentle)]
    complete = [
        float(explain(model, two, nought).values)
        for explain in (integrated_gradients, deep_lift)
        for model in (Saturated(), gentle)
    ]
    return all_of(
        gradient_times_input=close(torch.tensor(at_input), torch.tensor([0.0, 0.2]), atol=1e-7),
        integrated_and_deep_lift=close(torch.tensor(complete), torch.tensor([1.0, 0.2, 1.0, 0.2]), atol=1e-7),
    )


@claim("B17.3-1")
def deep_lift_depends_on_how_a_function_is_written() -> Evidence:
    """Of two networks that say the same, the parts are (3/2, −1/2) and (2, −1); integrals agree (book sec. 17.3)."""
    x, grid = torch.tensor([[3.0, 1.0]], dtype=torch.float64), 3 * normals(1_000, 2, seed=6)
    late, early, right = Late(), Early(), torch.tensor([1.5, -0.5], dtype=torch.float64)
    return all_of(
        same_function=close(late(grid), early(grid), atol=1e-12),
        late=close(of_first(deep_lift(late, x, ZEROS)), right, atol=1e-12),
        early=close(of_first(deep_lift(early, x, ZEROS)), torch.tensor([2.0, -1.0]).double(), atol=1e-12),
        integrated_late=close(of_first(integrated_gradients(late, x, ZEROS)), right, atol=1e-9),
        integrated_early=close(of_first(integrated_gradients(early, x, ZEROS)), right, atol=1e-9),
        shapley=close(shapley(early, x, ZEROS), right, atol=1e-12),
    )


@claim("B17.3-1")
def kinks_are_integrated_exactly() -> Evidence:
    """Cut where tangents meet, the integral over a ReLU network closes to 1e-8; 50 midpoints leave more than 1e-4."""
    model, x, background = network(nn.ReLU), normals(4, FEATURES, seed=1), normals(1, FEATURES, seed=2)
    slopes = Slopes(model)
    change = slopes.answers(x) - slopes.answers(background)
    found = along_lines(slopes, x, background, tolerance=1e-9, most=10_000)
    middles = ((torch.arange(50).double() + 0.5) / 50)[:, None, None]
    points = background + middles * (x - background)
    plain = slopes(points.flatten(0, 1)).unflatten(0, (50, len(x))).mean(0) * (x - background)[:, None]
    tanh = Slopes(network(nn.Tanh))
    smooth = along_lines(tanh, x, background, tolerance=1e-6, most=10_000)
    smooth_gap = smooth.parts.sum(-1) - (tanh.answers(x) - tanh.answers(background))
    return all_of(
        cut=at_most((found.parts.sum(-1) - change).abs().max(), 1e-8),
        midpoints=at_least((plain.sum(-1) - change).abs().max(), 1e-4),
        gradients_asked=at_most(float(found.asked), 2_000.0),
        smooth=at_most(smooth_gap.abs().max(), 1e-6),
        gradients_of_a_smooth_one=at_most(float(smooth.asked), 200.0),
        a_jump_is_refused=raises(ModelError, lambda: integrated_gradients(lambda z: z.relu().sign(), ONES, ZEROS)),
    )


@claim("B17.3-1", "B17.3-3")
def drawn_gradients_add_up_in_the_mean_only() -> Evidence:
    """Plain draws miss the sum by 1/√n; made a control variate, it closes and improves them (book sec. 17.3)."""
    model, x, background = network(nn.Tanh), normals(4, FEATURES, seed=1), 2 * normals(8, FEATURES, seed=2)
    slopes, counts = Slopes(model), (25, 100, 400)
    change = slopes.answers(x) - slopes.answers(background).mean(0)
    exact = integrated_gradients(model, x, background).values
    source, gaps, off = torch.Generator().manual_seed(0), [], []
    for count in counts:
        drawn = [moments(slopes, x, background, count, generator=source).mean for _ in range(25)]
        gaps.append((torch.stack(drawn).sum(-1) - change).square().mean().sqrt())
        off.append((torch.stack(drawn) - exact).square().mean().sqrt())
    held = [expected_gradients(model, x, background, 100, generator=source) for _ in range(25)]
    wrong = torch.stack([each.values for each in held]) - exact
    scores = wrong / torch.stack([each.errors for each in held])
    by_baseline = torch.stack([integrated_gradients(model, x, low[None]).values for low in background]).mean(0)
    return all_of(
        mean_of_baselines=close(by_baseline, exact, atol=1e-6),
        gap=rate(torch.tensor(counts), torch.stack(gaps), -0.5, atol=0.12),
        closed=at_most((held[0].prediction - slopes.answers(x)).abs().max(), 1e-12),
        the_control_helps=at_most(wrong.square().mean().sqrt(), float(off[1])),
        errors_are_honest=close(scores.square().mean().sqrt(), 1.0, atol=0.12),
    )
