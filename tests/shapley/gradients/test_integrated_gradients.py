"""Gradient attributions: polynomials, kinks, discontinuities, sampling errors, models and inputs that are rejected."""

import pytest
import torch
from torch import Tensor, nn

from parnassus.probability import standard_normal
from parnassus.shapley.attributions.attribution import explain_exactly
from parnassus.shapley.attributions.interventional import Interventional
from parnassus.shapley.attributions.model_adapters import ModelError
from parnassus.shapley.gradients.completeness import enforce_completeness
from parnassus.shapley.gradients.expected_gradients import expected_gradients, gradient_moments
from parnassus.shapley.gradients.integrated_gradients import gradient_times_input, integrated_gradients
from parnassus.shapley.gradients.model_gradients import ModelGradients, validate_inputs
from parnassus.shapley.gradients.path_integrals import integrate_along_lines, legendre_rules


def network(activation: type[nn.Module], outputs: int = 2) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(5, 24), activation(), nn.Linear(24, 24), activation(), nn.Linear(24, outputs)
    ).double()


ONES, ZEROS = torch.ones(1, 2, dtype=torch.float64), torch.zeros(1, 2, dtype=torch.float64)


def test_the_rules_of_legendre_see_their_polynomials() -> None:
    nodes, rules = legendre_rules(5)
    for degree in range(10):
        assert float(rules[0] @ nodes**degree) == pytest.approx(1 / (degree + 1), abs=1e-14)
    high = torch.tensor([[0.0, 0, 0, 0], [1.0, 2, 3, 0]], dtype=torch.float64) @ torch.stack(
        [nodes**degree for degree in (0, 1, 2, 3)]
    )
    assert float((rules[2:] @ high.mT).abs().max()) < 1e-13  # a square has nothing of degree 4
    assert float(rules[2] @ nodes**4) == pytest.approx(1 / 70)  # t⁴ has 1/70 of Legendre's P₄(2t − 1)


def test_polynomials_are_integrated_by_hand() -> None:
    parts = integrated_gradients(lambda z: z[:, 0] * z[:, 1].square(), ONES, ZEROS)
    assert parts.values[0, 0].tolist() == pytest.approx([1 / 3, 2 / 3])
    two = torch.tensor([[2.0, 3.0]], dtype=torch.float64)
    parts = integrated_gradients(lambda z: torch.stack([z.prod(1), z.pow(3).sum(1)], 1), two, ZEROS)
    assert parts.values[0].tolist() == [pytest.approx([3.0, 3.0]), pytest.approx([8.0, 27.0])]
    assert parts.base_values.tolist() == [[0.0, 0.0]]


def test_a_slope_that_is_infinite_at_the_baseline_can_be_integrated() -> None:
    parts = integrated_gradients(lambda z: z.sqrt().sum(1), torch.tensor([[4.0, 9.0]], dtype=torch.float64), ZEROS)
    assert parts.values[0, 0].tolist() == pytest.approx([2.0, 3.0], abs=1e-6)


def test_kinks_are_found() -> None:
    def bent(z: Tensor) -> Tensor:
        return (z[:, 0] - 0.3).relu() - (z[:, 1] - 0.7071).relu() * 2

    parts = integrated_gradients(bent, ONES, ZEROS)
    assert parts.values[0, 0].tolist() == pytest.approx([0.7, -2 * 0.2929], abs=1e-12)
    assert parts.evaluations <= 100


@pytest.mark.parametrize("activation", [nn.Tanh, nn.ReLU, nn.GELU])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_network_is_integrated_to_the_tolerance(activation: type[nn.Module], dtype: torch.dtype) -> None:
    model, x, background = (
        network(activation).to(dtype),
        standard_normal(3, 5, seed=1).to(dtype),
        standard_normal(2, 5, seed=2),
    )
    background = background.to(dtype)
    found = integrate_along_lines(ModelGradients(model), x, background, tolerance=1e-6, max_gradients=4_096)
    change = ModelGradients(model).outputs(x) - ModelGradients(model).outputs(background).mean(0)
    assert float((found.integrals.sum(-1) - change).abs().max()) < 2e-6
    many = (torch.arange(20_000, dtype=dtype) + 0.5) / 20_000
    by_hand = torch.zeros(5, dtype=torch.float64)
    for low in background:
        by_hand += ModelGradients(model)(low + many[:, None] * (x[0] - low))[:, 1].mean(0) * (x[0] - low).double() / 2
    assert torch.allclose(found.integrals[0, 1], by_hand, atol=1e-5)
    parts = integrated_gradients(model, x, background)
    assert float((parts.prediction - model(x).detach().double()).abs().max()) < 1e-12


def test_batches_do_not_change_results(monkeypatch: pytest.MonkeyPatch) -> None:
    x, background = standard_normal(2, 5, seed=1), standard_normal(2, 5, seed=2)
    whole = integrated_gradients(network(nn.ReLU), x, background)
    drawn = expected_gradients(network(nn.ReLU), x, background, 50, generator=torch.Generator().manual_seed(0))
    for file in ("path_integrals", "expected_gradients"):
        monkeypatch.setattr(f"parnassus.shapley.gradients.{file}.MAX_GRADIENT_VALUES", 2_000)
    assert torch.allclose(integrated_gradients(network(nn.ReLU), x, background).values, whole.values, atol=1e-13)
    again = expected_gradients(network(nn.ReLU), x, background, 50, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(again.values, drawn.values, atol=1e-13)
    assert torch.allclose(again.errors, drawn.errors, rtol=1e-8)


@pytest.mark.parametrize(("width", "most", "better"), [(6, 1_024, 0.05), (128, 256, 1.5)], ids=["few", "many"])
def test_kinks_are_found_if_few_and_else_gradients_are_spaced_evenly(width: int, most: int, better: float) -> None:
    """Never much worse than by midpoints alone; where kinks are few, exact."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))
    slopes, x, low = ModelGradients(model.double()), standard_normal(6, 5, seed=1), standard_normal(1, 5, seed=2)

    def by_midpoints(count: int) -> Tensor:
        places = (torch.arange(count, dtype=torch.float64) + 0.5) / count
        points = torch.lerp(low[:, None], x[:, None], places[None, :, None])
        mean: Tensor = slopes(points.flatten(0, 1)).unflatten(0, (6, count)).mean(1)
        return mean * (x - low)[:, None]

    truth, found = by_midpoints(40_000), integrate_along_lines(slopes, x, low, tolerance=1e-6, max_gradients=most)
    assert found.evaluations <= most
    off = (found.integrals - truth).square().mean().sqrt()
    assert float(off / (by_midpoints(most) - truth).square().mean().sqrt()) < better


def test_errors_report_a_small_budget() -> None:
    model, x, background = network(nn.ReLU), standard_normal(4, 5, seed=1), standard_normal(3, 5, seed=2)
    exact = integrated_gradients(model, x, background)
    few = integrated_gradients(model, x, background, max_gradients=30)
    assert few.evaluations <= 3 * 30
    off = (few.values - exact.values).abs()
    assert float(off.max()) > 1e-5
    assert bool((off <= 6 * few.errors).all())


def test_an_idle_feature_and_one_at_its_baseline_get_nothing() -> None:
    x, background = standard_normal(2, 3), standard_normal(4, 3, seed=1)
    background[:, 1] = x[0, 1]
    for explain in (integrated_gradients, expected_gradients):
        parts = explain(lambda z: (z[:, 0] * z[:, 1]).sin(), x, background)
        assert float(parts.values[0, 0, 1].abs()) < 1e-15
        assert float(parts.values[:, 0, 2].abs().max()) < 1e-15


def test_images_keep_their_shape_for_the_model() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(2, 3, 2), nn.Tanh(), nn.Flatten(), nn.Linear(12, 2)).double()
    x, background = standard_normal(3, 2, 3, 3), standard_normal(2, 2, 3, 3, seed=1)
    parts = integrated_gradients(model, x, background)
    assert parts.values.shape == (3, 2, 18)
    flat = integrated_gradients(lambda z: model(z.unflatten(1, (2, 3, 3))), x.flatten(1), background.flatten(1))
    assert torch.allclose(parts.values, flat.values, atol=1e-14)


def test_draws_are_within_their_errors_of_the_integral() -> None:
    model, x, background = network(nn.Tanh), standard_normal(20, 5, seed=1), standard_normal(10, 5, seed=2)
    exact = integrated_gradients(model, x, background)
    found = expected_gradients(model, x, background, 400, generator=torch.Generator().manual_seed(0))
    assert 0.7 < float(((found.values - exact.values) / found.errors).square().mean().sqrt()) < 1.4
    assert torch.allclose(found.prediction, model(x), atol=1e-12)
    drawn = gradient_moments(ModelGradients(model), x, background, 400, generator=torch.Generator().manual_seed(0))
    plain = (drawn.mean - exact.values).square().mean()
    assert (found.values - exact.values).square().mean() < plain


def test_moments_are_those_of_the_draws() -> None:
    x, background = standard_normal(2, 3), standard_normal(1, 3, seed=1)
    drawn = gradient_moments(
        ModelGradients(lambda z: z.pow(3).sum(1)), x, background, 500, generator=torch.Generator().manual_seed(3)
    )
    source = torch.Generator().manual_seed(3)
    torch.randint(1, (500,), generator=source)
    alpha = torch.rand(500, generator=source, dtype=torch.float64)[:, None, None]
    samples = (x - background) * 3 * (background + alpha * (x - background)).square()
    assert torch.allclose(drawn.mean[:, 0], samples.mean(0))
    assert torch.allclose(drawn.variance[:, 0], samples.var(0))
    sums = samples.sum(-1, keepdim=True)
    with_sum = ((samples - samples.mean(0)) * (sums - sums.mean(0))).sum(0) / 499
    assert torch.allclose(drawn.covariance_with_sum[:, 0], with_sum)


def test_what_is_missing_goes_where_it_is_uncertain() -> None:
    parts, covariance = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([0.0, 1.0, 3.0])
    assert enforce_completeness(parts, covariance, torch.tensor(10.0)).tolist() == [1.0, 3.0, 6.0]
    assert enforce_completeness(parts, torch.zeros(3), torch.tensor(9.0)).tolist() == [2.0, 3.0, 4.0]


def test_one_step_is_the_slope_at_the_input() -> None:
    x = torch.tensor([[2.0, 3.0]], dtype=torch.float64)
    assert gradient_times_input(lambda z: z.square().sum(1), x, ONES)[0, 0].tolist() == [4.0, 12.0]


def test_a_module_is_left_as_it_was() -> None:
    model = nn.Sequential(nn.Linear(5, 2), nn.Dropout(0.5), nn.Dropout(0.5).eval()).double()
    x = standard_normal(3, 5)
    first, second = (integrated_gradients(model, x, torch.zeros_like(x[:1])) for _ in range(2))
    assert torch.equal(first.values, second.values)
    assert [part.training for part in model] == [True, True, False]
    assert model[0].weight.grad is None


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_module_is_evaluated_on_its_device(device: str) -> None:
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    x, background = standard_normal(2, 5).float(), standard_normal(3, 5, seed=1).float()
    model = network(nn.Tanh).float()
    here = integrated_gradients(model, x, background)
    there = integrated_gradients(model.to(device), x, background)
    assert there.values.device == x.device
    assert torch.allclose(there.values, here.values, atol=1e-5)
    own = expected_gradients(model, x.to(device), background.to(device), 10)
    assert own.values.device.type == device
    assert torch.allclose(own.prediction, model(x.to(device)).double())


def test_a_linear_model_has_the_values_of_shapley() -> None:
    w, x, background = standard_normal(4), standard_normal(3, 4, seed=1), standard_normal(5, 4, seed=2)
    shapley = explain_exactly(Interventional(lambda z: (z @ w)[:, None], background), x)
    for explain in (integrated_gradients, expected_gradients):
        parts = explain(lambda z: z @ w, x, background)
        assert torch.allclose(parts.base_values, shapley.base_values)
    assert torch.allclose(integrated_gradients(lambda z: z @ w, x, background).values, shapley.values)


def test_inputs_of_the_wrong_kind_are_rejected() -> None:
    with pytest.raises(ValueError, match=r"floating-point inputs; x is torch\.int64"):
        integrated_gradients(lambda z: z.sum(1), torch.ones(1, 2, dtype=torch.long), ZEROS)
    with pytest.raises(ValueError, match=r"floating-point inputs; background is torch\.int64"):
        gradient_times_input(lambda z: z.sum(1), ONES, torch.zeros(1, 2, dtype=torch.long))
    for wrong in (torch.zeros(1, 3).double(), torch.zeros(0, 2).double(), torch.zeros(1, 2, 1).double()):
        with pytest.raises(ValueError, match="rows of one shape"):
            validate_inputs(ONES, wrong)
    with pytest.raises(ValueError, match="three for standard errors; got num_draws=2"):
        expected_gradients(lambda z: z.sum(1), ONES, ZEROS, 2)
    with pytest.raises(ValueError, match="tolerance=0"):
        integrated_gradients(lambda z: z.sum(1), ONES, ZEROS, tolerance=0.0)


def test_models_of_the_wrong_kind_are_rejected() -> None:
    with pytest.raises(ModelError, match="no gradients"):
        integrated_gradients(lambda z: z.detach().sum(1), ONES, ZEROS)
    with pytest.raises(ModelError, match="computes outside torch"):
        integrated_gradients(lambda z: torch.from_numpy(z.numpy().sum(1)), ONES, ZEROS)
    with pytest.raises(ModelError, match="output 0 by feature 1 is nan"):
        gradient_times_input(lambda z: z[:, 0] + (z[:, 1] * 0).sqrt() * 0, ONES, ZEROS)
    with pytest.raises(ModelError, match="number or a row of numbers"):
        integrated_gradients(lambda z: z[:, None], ONES, ZEROS)
    for explain in (integrated_gradients, expected_gradients):
        with pytest.raises(ModelError, match=r"changes by 1.*account for 0: the model is discontinuous"):
            explain(lambda z: z[:, 0].relu().sign() + 0 * z[:, 1], ONES, ZEROS)
    with pytest.raises(ModelError, match="operations without gradients"):
        integrated_gradients(lambda z: z[:, 0] + z[:, 1].detach(), ONES, ZEROS)
