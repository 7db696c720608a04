"""Gradient attributions: polynomials, kinks, discontinuities, sampling errors, models and inputs that are rejected."""

import pytest
import torch
from torch import Tensor, nn

from parnassus.probability import standard_normal
from parnassus.shapley.attributions.attribution import explain_exactly
from parnassus.shapley.attributions.interventional import InterventionalValue
from parnassus.shapley.attributions.model_adapters import ModelError
from parnassus.shapley.gradients.completeness import enforce_completeness
from parnassus.shapley.gradients.expected_gradients import expected_gradients, gradient_moments
from parnassus.shapley.gradients.integrated_gradients import gradient_times_input, integrated_gradients
from parnassus.shapley.gradients.model_gradients import ModelGradients, check_inputs
from parnassus.shapley.gradients.path_integrals import integrate_along_lines, legendre_rules


def network(activation: type[nn.Module], outputs: int = 2) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(5, 24), activation(), nn.Linear(24, 24), activation(), nn.Linear(24, outputs)
    ).double()


ONES, ZEROS = torch.ones(1, 2, dtype=torch.float64), torch.zeros(1, 2, dtype=torch.float64)


def test_legendre_rules_integrate_polynomials_exactly() -> None:
    nodes, rules = legendre_rules(5)
    for degree in range(10):
        assert float(rules[0] @ nodes**degree) == pytest.approx(1 / (degree + 1), abs=1e-14)
    high = torch.tensor([[0.0, 0, 0, 0], [1.0, 2, 3, 0]], dtype=torch.float64) @ torch.stack(
        [nodes**degree for degree in (0, 1, 2, 3)]
    )
    assert float((rules[2:] @ high.mT).abs().max()) < 1e-13  # a square has nothing of degree 4
    assert float(rules[2] @ nodes**4) == pytest.approx(1 / 70)  # t⁴ has 1/70 of Legendre's P₄(2t − 1)


def test_integrated_gradients_of_polynomials_match_closed_form() -> None:
    attribution = integrated_gradients(lambda z: z[:, 0] * z[:, 1].square(), ONES, ZEROS)
    assert attribution.values[0, 0].tolist() == pytest.approx([1 / 3, 2 / 3])
    two = torch.tensor([[2.0, 3.0]], dtype=torch.float64)
    attribution = integrated_gradients(lambda z: torch.stack([z.prod(1), z.pow(3).sum(1)], 1), two, ZEROS)
    assert attribution.values[0].tolist() == [pytest.approx([3.0, 3.0]), pytest.approx([8.0, 27.0])]
    assert attribution.base_values.tolist() == [[0.0, 0.0]]


def test_infinite_gradient_at_the_baseline_is_integrated() -> None:
    attribution = integrated_gradients(
        lambda z: z.sqrt().sum(1), torch.tensor([[4.0, 9.0]], dtype=torch.float64), ZEROS
    )
    assert attribution.values[0, 0].tolist() == pytest.approx([2.0, 3.0], abs=1e-6)


def test_kinks_are_located_exactly() -> None:
    def piecewise_linear(z: Tensor) -> Tensor:
        return (z[:, 0] - 0.3).relu() - (z[:, 1] - 0.7071).relu() * 2

    attribution = integrated_gradients(piecewise_linear, ONES, ZEROS)
    assert attribution.values[0, 0].tolist() == pytest.approx([0.7, -2 * 0.2929], abs=1e-12)
    assert attribution.evaluations <= 100


@pytest.mark.parametrize("activation", [nn.Tanh, nn.ReLU, nn.GELU])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_network_is_integrated_to_the_tolerance(activation: type[nn.Module], dtype: torch.dtype) -> None:
    model, x, background = (
        network(activation).to(dtype),
        standard_normal(3, 5, seed=1).to(dtype),
        standard_normal(2, 5, seed=2),
    )
    background = background.to(dtype)
    result = integrate_along_lines(ModelGradients(model), x, background, tolerance=1e-6, max_gradients=4_096)
    expected_sum = ModelGradients(model).outputs(x) - ModelGradients(model).outputs(background).mean(0)
    assert float((result.integrals.sum(-1) - expected_sum).abs().max()) < 2e-6
    midpoints = (torch.arange(20_000, dtype=dtype) + 0.5) / 20_000
    expected = torch.zeros(5, dtype=torch.float64)
    for baseline in background:
        expected += (
            ModelGradients(model)(baseline + midpoints[:, None] * (x[0] - baseline))[:, 1].mean(0)
            * (x[0] - baseline).double()
            / 2
        )
    assert torch.allclose(result.integrals[0, 1], expected, atol=1e-5)
    attribution = integrated_gradients(model, x, background)
    assert float((attribution.prediction - model(x).detach().double()).abs().max()) < 1e-12


def test_batches_do_not_change_results(monkeypatch: pytest.MonkeyPatch) -> None:
    x, background = standard_normal(2, 5, seed=1), standard_normal(2, 5, seed=2)
    full = integrated_gradients(network(nn.ReLU), x, background)
    sampled = expected_gradients(network(nn.ReLU), x, background, 50, generator=torch.Generator().manual_seed(0))
    for file in ("path_integrals", "expected_gradients"):
        monkeypatch.setattr(f"parnassus.shapley.gradients.{file}.MAX_GRADIENT_VALUES", 2_000)
    assert torch.allclose(integrated_gradients(network(nn.ReLU), x, background).values, full.values, atol=1e-13)
    resampled = expected_gradients(network(nn.ReLU), x, background, 50, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(resampled.values, sampled.values, atol=1e-13)
    assert torch.allclose(resampled.errors, sampled.errors, rtol=1e-8)


@pytest.mark.parametrize(
    ("width", "budget", "max_error_ratio"), [(6, 1_024, 0.05), (128, 256, 1.5)], ids=["few", "many"]
)
def test_error_is_never_much_larger_than_that_of_the_midpoint_rule(
    width: int, budget: int, max_error_ratio: float
) -> None:
    """Few kinks are located exactly; with many, gradients are spaced evenly."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))
    gradients, x, baseline = (
        ModelGradients(model.double()),
        standard_normal(6, 5, seed=1),
        standard_normal(1, 5, seed=2),
    )

    def midpoint_rule(count: int) -> Tensor:
        places = (torch.arange(count, dtype=torch.float64) + 0.5) / count
        points = torch.lerp(baseline[:, None], x[:, None], places[None, :, None])
        mean: Tensor = gradients(points.flatten(0, 1)).unflatten(0, (6, count)).mean(1)
        return mean * (x - baseline)[:, None]

    truth, result = (
        midpoint_rule(40_000),
        integrate_along_lines(gradients, x, baseline, tolerance=1e-6, max_gradients=budget),
    )
    assert result.evaluations <= budget
    rmse = (result.integrals - truth).square().mean().sqrt()
    assert float(rmse / (midpoint_rule(budget) - truth).square().mean().sqrt()) < max_error_ratio


def test_reported_errors_bound_actual_errors_for_a_small_budget() -> None:
    model, x, background = network(nn.ReLU), standard_normal(4, 5, seed=1), standard_normal(3, 5, seed=2)
    exact = integrated_gradients(model, x, background)
    approximate = integrated_gradients(model, x, background, max_gradients=30)
    assert approximate.evaluations <= 3 * 30
    error = (approximate.values - exact.values).abs()
    assert float(error.max()) > 1e-5
    assert bool((error <= 6 * approximate.errors).all())


def test_unused_features_and_features_at_the_baseline_have_zero_attribution() -> None:
    x, background = standard_normal(2, 3), standard_normal(4, 3, seed=1)
    background[:, 1] = x[0, 1]
    for explain in (integrated_gradients, expected_gradients):
        attribution = explain(lambda z: (z[:, 0] * z[:, 1]).sin(), x, background)
        assert float(attribution.values[0, 0, 1].abs()) < 1e-15
        assert float(attribution.values[:, 0, 2].abs().max()) < 1e-15


def test_model_receives_images_in_their_shape() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(2, 3, 2), nn.Tanh(), nn.Flatten(), nn.Linear(12, 2)).double()
    x, background = standard_normal(3, 2, 3, 3), standard_normal(2, 2, 3, 3, seed=1)
    attribution = integrated_gradients(model, x, background)
    assert attribution.values.shape == (3, 2, 18)
    flat = integrated_gradients(lambda z: model(z.unflatten(1, (2, 3, 3))), x.flatten(1), background.flatten(1))
    assert torch.allclose(attribution.values, flat.values, atol=1e-14)


def test_expected_gradients_agree_with_the_integral_within_their_errors() -> None:
    model, x, background = network(nn.Tanh), standard_normal(20, 5, seed=1), standard_normal(10, 5, seed=2)
    exact = integrated_gradients(model, x, background)
    result = expected_gradients(model, x, background, 400, generator=torch.Generator().manual_seed(0))
    assert 0.7 < float(((result.values - exact.values) / result.errors).square().mean().sqrt()) < 1.4
    assert torch.allclose(result.prediction, model(x), atol=1e-12)
    moments = gradient_moments(ModelGradients(model), x, background, 400, generator=torch.Generator().manual_seed(0))
    unadjusted_mse = (moments.mean - exact.values).square().mean()
    assert (result.values - exact.values).square().mean() < unadjusted_mse


def test_gradient_moments_match_sample_moments() -> None:
    x, background = standard_normal(2, 3), standard_normal(1, 3, seed=1)
    moments = gradient_moments(
        ModelGradients(lambda z: z.pow(3).sum(1)), x, background, 500, generator=torch.Generator().manual_seed(3)
    )
    generator = torch.Generator().manual_seed(3)
    torch.randint(1, (500,), generator=generator)
    alpha = torch.rand(500, generator=generator, dtype=torch.float64)[:, None, None]
    samples = (x - background) * 3 * (background + alpha * (x - background)).square()
    assert torch.allclose(moments.mean[:, 0], samples.mean(0))
    assert torch.allclose(moments.variance[:, 0], samples.var(0))
    sums = samples.sum(-1, keepdim=True)
    covariance = ((samples - samples.mean(0)) * (sums - sums.mean(0))).sum(0) / 499
    assert torch.allclose(moments.covariance_with_sum[:, 0], covariance)


def test_enforce_completeness_distributes_the_residual_by_covariance() -> None:
    attribution, covariance = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([0.0, 1.0, 3.0])
    assert enforce_completeness(attribution, covariance, torch.tensor(10.0)).tolist() == [1.0, 3.0, 6.0]
    assert enforce_completeness(attribution, torch.zeros(3), torch.tensor(9.0)).tolist() == [2.0, 3.0, 4.0]


def test_gradient_times_input_uses_the_gradient_at_the_input() -> None:
    x = torch.tensor([[2.0, 3.0]], dtype=torch.float64)
    assert gradient_times_input(lambda z: z.square().sum(1), x, ONES)[0, 0].tolist() == [4.0, 12.0]


def test_module_state_is_restored() -> None:
    model = nn.Sequential(nn.Linear(5, 2), nn.Dropout(0.5), nn.Dropout(0.5).eval()).double()
    x = standard_normal(3, 5)
    first, second = (integrated_gradients(model, x, torch.zeros_like(x[:1])) for _ in range(2))
    assert torch.equal(first.values, second.values)
    assert [module.training for module in model] == [True, True, False]
    assert model[0].weight.grad is None


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_module_is_evaluated_on_its_device(device: str) -> None:
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    x, background = standard_normal(2, 5).float(), standard_normal(3, 5, seed=1).float()
    model = network(nn.Tanh).float()
    on_cpu = integrated_gradients(model, x, background)
    on_device = integrated_gradients(model.to(device), x, background)
    assert on_device.values.device == x.device
    assert torch.allclose(on_device.values, on_cpu.values, atol=1e-5)
    from_device = expected_gradients(model, x.to(device), background.to(device), 10)
    assert from_device.values.device.type == device
    assert torch.allclose(from_device.prediction, model(x.to(device)).double())


def test_attributions_of_a_linear_model_equal_shapley_values() -> None:
    w, x, background = standard_normal(4), standard_normal(3, 4, seed=1), standard_normal(5, 4, seed=2)
    shapley = explain_exactly(InterventionalValue(lambda z: (z @ w)[:, None], background), x)
    for explain in (integrated_gradients, expected_gradients):
        attribution = explain(lambda z: z @ w, x, background)
        assert torch.allclose(attribution.base_values, shapley.base_values)
    assert torch.allclose(integrated_gradients(lambda z: z @ w, x, background).values, shapley.values)


def test_invalid_inputs_raise_value_error() -> None:
    with pytest.raises(ValueError, match=r"floating-point inputs; x is torch\.int64"):
        integrated_gradients(lambda z: z.sum(1), torch.ones(1, 2, dtype=torch.long), ZEROS)
    with pytest.raises(ValueError, match=r"floating-point inputs; background is torch\.int64"):
        gradient_times_input(lambda z: z.sum(1), ONES, torch.zeros(1, 2, dtype=torch.long))
    for invalid in (torch.zeros(1, 3).double(), torch.zeros(0, 2).double(), torch.zeros(1, 2, 1).double()):
        with pytest.raises(ValueError, match="rows of one shape"):
            check_inputs(ONES, invalid)
    with pytest.raises(ValueError, match="three for standard errors; got num_draws=2"):
        expected_gradients(lambda z: z.sum(1), ONES, ZEROS, 2)
    with pytest.raises(ValueError, match="tolerance=0"):
        integrated_gradients(lambda z: z.sum(1), ONES, ZEROS, tolerance=0.0)


def test_invalid_models_raise_model_error() -> None:
    with pytest.raises(ModelError, match="no gradients"):
        integrated_gradients(lambda z: z.detach().sum(1), ONES, ZEROS)
    with pytest.raises(ModelError, match="computes outside torch"):
        integrated_gradients(lambda z: torch.from_numpy(z.numpy().sum(1)), ONES, ZEROS)
    with pytest.raises(ModelError, match="output 0 with respect to feature 1 is nan"):
        gradient_times_input(lambda z: z[:, 0] + (z[:, 1] * 0).sqrt() * 0, ONES, ZEROS)
    with pytest.raises(ModelError, match="number or a row of numbers"):
        integrated_gradients(lambda z: z[:, None], ONES, ZEROS)
    for explain in (integrated_gradients, expected_gradients):
        with pytest.raises(ModelError, match=r"changes by 1.*account for 0: the model is discontinuous"):
            explain(lambda z: z[:, 0].relu().sign() + 0 * z[:, 1], ONES, ZEROS)
    with pytest.raises(ModelError, match="operations without gradients"):
        integrated_gradients(lambda z: z[:, 0] + z[:, 1].detach(), ONES, ZEROS)
