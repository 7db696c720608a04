"""Our attributions by gradients against captum's: the same networks, inputs and baselines."""

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


def theirs(explainer: object, x: Tensor, low: Tensor, **options: object) -> Tensor:
    """(rows, outputs, features), a call for each output."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # captum warns of the hooks that it sets
        each = [explainer.attribute(x, low, target=output, **options) for output in range(3)]  # type: ignore[attr-defined]
    return torch.stack(each, 1).flatten(2).detach()


@pytest.mark.parametrize(("make", "shape"), CASES)
def test_integrated_gradients_of_a_smooth_network(make: object, shape: tuple[int, ...]) -> None:
    model = make(nn.Softplus)  # type: ignore[operator]
    x, low = standard_normal(4, *shape), standard_normal(1, *shape, seed=1)
    if len(shape) > 1:
        model[3] = nn.AvgPool2d(2)  # a maximum has kinks
    found = theirs(attr.IntegratedGradients(model), x, low, n_steps=64, method="gausslegendre")
    torch.testing.assert_close(integrated_gradients(model, x, low).values, found, atol=1e-8, rtol=0)


@pytest.mark.parametrize(("make", "shape"), CASES)
def test_across_kinks_theirs_comes_near_with_many_steps_and_ours_sums_up(make: object, shape: tuple[int, ...]) -> None:
    model = make(nn.ReLU)  # type: ignore[operator]
    x, low = standard_normal(2, *shape), standard_normal(1, *shape, seed=1)
    ours = integrated_gradients(model, x, low)
    explainer = attr.IntegratedGradients(model)
    few, many = (theirs(explainer, x, low, n_steps=steps, method="riemann_middle") for steps in (50, 5_000))
    gaps = [(model(low) + each.sum(-1) - model(x)).abs().max() for each in (few, many)]
    assert float((ours.prediction - model(x)).abs().max()) < 1e-12
    assert float(gaps[0]) > 1e-4  # at their default number of steps
    assert float((ours.values - many).abs().max()) < 10 * float(gaps[1]) + 1e-5
    assert float((ours.values - many).abs().max()) < float((few - many).abs().max()) / 5


def test_expected_gradients_have_the_mean_of_gradient_shap() -> None:
    model, x, background = dense(nn.Softplus), standard_normal(2, 8), standard_normal(6, 8, seed=1)
    torch.manual_seed(0)
    found = theirs(attr.GradientShap(model), x, background, n_samples=4_000, stdevs=0.0)
    exact = integrated_gradients(model, x, background)
    ours = expected_gradients(model, x, background, 4_000, generator=torch.Generator().manual_seed(0))
    error = ours.errors.amax()
    assert float((found - exact.values).abs().max()) < 8 * float(error)
    assert float((ours.values - exact.values).abs().max()) < 5 * float(error)
    gap = (found.sum(-1) - (model(x) - model(background).mean(0))).abs().max()
    assert float(gap) > 1e-4  # theirs sum up in the mean only
    assert float((ours.prediction - model(x)).abs().max()) < 1e-12


@pytest.mark.parametrize("activation", [nn.ReLU, nn.Tanh, nn.Sigmoid, nn.ELU, nn.Softplus])
@pytest.mark.parametrize(("make", "shape"), CASES)
def test_deep_lift(make: object, shape: tuple[int, ...], activation: type[nn.Module]) -> None:
    model = make(activation)  # type: ignore[operator]
    x, low = standard_normal(4, *shape), standard_normal(1, *shape, seed=1)
    torch.testing.assert_close(
        deep_lift(model, x, low).values, theirs(attr.DeepLift(model), x, low), atol=1e-10, rtol=0
    )


def test_deep_shap_is_the_mean_over_the_background() -> None:
    model, x, background = dense(nn.ReLU), standard_normal(3, 8), standard_normal(5, 8, seed=1)
    found = theirs(attr.DeepLiftShap(model), x, background)
    torch.testing.assert_close(deep_lift(model, x, background).values, found, atol=1e-10, rtol=0)


def test_gradient_times_input() -> None:
    model, x = dense(nn.Tanh), standard_normal(3, 8)
    each = [attr.InputXGradient(model).attribute(x.clone().requires_grad_(), target=output) for output in range(3)]
    ours = gradient_times_input(model, x, torch.zeros(1, 8, dtype=torch.float64))
    torch.testing.assert_close(ours, torch.stack(each, 1).detach(), atol=1e-12, rtol=0)


def test_functions_that_theirs_does_not_see() -> None:
    """Captum finds modules; a ReLU called as a function passes with its plain slope, and the parts do not sum up."""
    layers = dense(nn.Identity)

    class Written(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = layers[0], layers[4]

        def forward(self, z: Tensor) -> Tensor:
            answer: Tensor = self.last(self.first(z).relu())
            return answer

    model, x, low = Written(), standard_normal(3, 8), standard_normal(1, 8, seed=1)
    found = theirs(attr.DeepLift(model), x, low)
    assert float((found.sum(-1) - (model(x) - model(low))).abs().max()) > 0.01
    assert float((deep_lift(model, x, low).prediction - model(x)).abs().max()) < 1e-12


def test_a_maximum_right_after_a_nonlinearity_is_too_much_for_theirs() -> None:
    """Two of captum's hooks then sit on one tensor, and the second one's multipliers get lost."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Tanh(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 3))
    model.double().requires_grad_(False)
    x, low = standard_normal(2, 1, 8, 8), standard_normal(1, 1, 8, 8, seed=1)
    found = theirs(attr.DeepLift(model), x, low)
    assert float((found.sum(-1) - (model(x) - model(low))).abs().max()) > 0.01
    assert float((deep_lift(model, x, low).prediction - model(x)).abs().max()) < 1e-12
