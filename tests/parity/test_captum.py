"""Gradient-based attributions against captum for the same networks, inputs and baselines."""

import warnings

import pytest
import torch
from torch import Tensor, nn

from parnassus.probability import standard_normal
from parnassus.shapley import deep_lift, expected_gradients, gradient_times_input, integrated_gradients

attr = pytest.importorskip("captum.attr")


def dense(activation: type[nn.Module]) -> nn.Sequential:
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Linear(8, 32), activation(), nn.Linear(32, 32), activation(), nn.Linear(32, 3))
    return layers.double().requires_grad_(False)


def convolutional(activation: type[nn.Module]) -> nn.Sequential:
    torch.manual_seed(0)
    return (
        nn.Sequential(
            nn.Conv2d(1, 4, 3),
            activation(),
            nn.Conv2d(4, 4, 1),
            nn.MaxPool2d(2),
            nn.Conv2d(4, 6, 2),
            activation(),
            nn.Flatten(),
            nn.Linear(24, 3),
        )
        .double()
        .requires_grad_(False)
    )


CASES = [
    pytest.param(dense, (8,), id="dense"),
    pytest.param(convolutional, (1, 8, 8), id="convolutional"),
]


def captum_attributions(explainer: object, x: Tensor, baseline: Tensor, **options: object) -> Tensor:
    """Attributions of shape (rows, outputs, features), with one call per output."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # captum warns about its hooks
        values = [explainer.attribute(x, baseline, target=output, **options) for output in range(3)]  # type: ignore[attr-defined]
    return torch.stack(values, 1).flatten(2).detach()


@pytest.mark.parametrize(("make_network", "shape"), CASES)
def test_integrated_gradients_match_captum_for_a_smooth_network(make_network: object, shape: tuple[int, ...]) -> None:
    model = make_network(nn.Softplus)  # type: ignore[operator]
    x, baseline = standard_normal(4, *shape), standard_normal(1, *shape, seed=1)
    if len(shape) > 1:
        model[3] = nn.AvgPool2d(2)  # max pooling is not smooth
    reference = captum_attributions(attr.IntegratedGradients(model), x, baseline, n_steps=64, method="gausslegendre")
    torch.testing.assert_close(integrated_gradients(model, x, baseline).values, reference, atol=1e-8, rtol=0)


@pytest.mark.parametrize(("make_network", "shape"), CASES)
def test_integrated_gradients_of_a_relu_network_are_the_limit_of_captum_and_complete(
    make_network: object, shape: tuple[int, ...]
) -> None:
    model = make_network(nn.ReLU)  # type: ignore[operator]
    x, baseline = standard_normal(2, *shape), standard_normal(1, *shape, seed=1)
    actual = integrated_gradients(model, x, baseline)
    explainer = attr.IntegratedGradients(model)
    few, many = (
        captum_attributions(explainer, x, baseline, n_steps=steps, method="riemann_middle") for steps in (50, 5_000)
    )
    completeness_errors = [
        (model(baseline) + attributions.sum(-1) - model(x)).abs().max() for attributions in (few, many)
    ]
    assert float((actual.prediction - model(x)).abs().max()) < 1e-12
    assert float(completeness_errors[0]) > 1e-4  # with captum's default number of steps
    assert float((actual.values - many).abs().max()) < 10 * float(completeness_errors[1]) + 1e-5
    assert float((actual.values - many).abs().max()) < float((few - many).abs().max()) / 5


def test_expected_gradients_match_gradient_shap_in_the_mean() -> None:
    model, x, background = dense(nn.Softplus), standard_normal(2, 8), standard_normal(6, 8, seed=1)
    torch.manual_seed(0)
    reference = captum_attributions(attr.GradientShap(model), x, background, n_samples=4_000, stdevs=0.0)
    exact = integrated_gradients(model, x, background)
    actual = expected_gradients(model, x, background, 4_000, generator=torch.Generator().manual_seed(0))
    error = actual.errors.amax()
    assert float((reference - exact.values).abs().max()) < 8 * float(error)
    assert float((actual.values - exact.values).abs().max()) < 5 * float(error)
    completeness_error = (reference.sum(-1) - (model(x) - model(background).mean(0))).abs().max()
    assert float(completeness_error) > 1e-4  # GradientShap is complete only in the mean
    assert float((actual.prediction - model(x)).abs().max()) < 1e-12


@pytest.mark.parametrize("activation", [nn.ReLU, nn.Tanh, nn.Sigmoid, nn.ELU, nn.Softplus])
@pytest.mark.parametrize(("make_network", "shape"), CASES)
def test_deep_lift_matches_captum(make_network: object, shape: tuple[int, ...], activation: type[nn.Module]) -> None:
    model = make_network(activation)  # type: ignore[operator]
    x, baseline = standard_normal(4, *shape), standard_normal(1, *shape, seed=1)
    torch.testing.assert_close(
        deep_lift(model, x, baseline).values, captum_attributions(attr.DeepLift(model), x, baseline), atol=1e-10, rtol=0
    )


def test_deep_lift_over_a_background_matches_deep_lift_shap() -> None:
    model, x, background = dense(nn.ReLU), standard_normal(3, 8), standard_normal(5, 8, seed=1)
    reference = captum_attributions(attr.DeepLiftShap(model), x, background)
    torch.testing.assert_close(deep_lift(model, x, background).values, reference, atol=1e-10, rtol=0)


def test_gradient_times_input_matches_captum() -> None:
    model, x = dense(nn.Tanh), standard_normal(3, 8)
    reference = [attr.InputXGradient(model).attribute(x.clone().requires_grad_(), target=output) for output in range(3)]
    actual = gradient_times_input(model, x, torch.zeros(1, 8, dtype=torch.float64))
    torch.testing.assert_close(actual, torch.stack(reference, 1).detach(), atol=1e-12, rtol=0)


def test_functional_relu_is_supported_where_captum_is_not_complete() -> None:
    """Captum handles modules only: with a functional ReLU its attributions are not complete."""
    layers = dense(nn.Identity)

    class FunctionalReLU(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = layers[0], layers[4]

        def forward(self, z: Tensor) -> Tensor:
            output: Tensor = self.last(self.first(z).relu())
            return output

    model, x, baseline = FunctionalReLU(), standard_normal(3, 8), standard_normal(1, 8, seed=1)
    reference = captum_attributions(attr.DeepLift(model), x, baseline)
    assert float((reference.sum(-1) - (model(x) - model(baseline))).abs().max()) > 0.01
    assert float((deep_lift(model, x, baseline).prediction - model(x)).abs().max()) < 1e-12


def test_max_pooling_after_a_nonlinearity_is_supported_where_captum_is_not_complete() -> None:
    """Captum then has two hooks on one tensor and loses the multipliers of the second."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Tanh(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 3))
    model.double().requires_grad_(False)
    x, baseline = standard_normal(2, 1, 8, 8), standard_normal(1, 1, 8, 8, seed=1)
    reference = captum_attributions(attr.DeepLift(model), x, baseline)
    assert float((reference.sum(-1) - (model(x) - model(baseline))).abs().max()) > 0.01
    assert float((deep_lift(model, x, baseline).prediction - model(x)).abs().max()) < 1e-12
