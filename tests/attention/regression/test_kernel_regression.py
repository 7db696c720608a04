"""Kernel regression compared with loops, limits and refits; mean shift."""

import pytest
import torch

from parnassus.attention import NadarayaWatson, mean_shift
from parnassus.attention.regression.kernels import (
    RadialKernel,
    boxcar_kernel,
    constant_kernel,
    epanechnikov_kernel,
    gaussian_kernel,
    triangular_kernel,
)
from parnassus.data.built_in.toy import curve
from parnassus.probability import standard_normal


def make_examples(count: int = 30) -> tuple[torch.Tensor, torch.Tensor]:
    split = curve(count, noise=0.2)
    assert split.y is not None
    return split.x.double(), split.y.double()


@pytest.mark.parametrize("kernel", [gaussian_kernel, boxcar_kernel, triangular_kernel, epanechnikov_kernel])
def test_prediction_is_the_kernel_weighted_mean(kernel: RadialKernel) -> None:
    x, y = make_examples()
    model = NadarayaWatson.fit(x, y, kernel=kernel, bandwidth=2.5)
    for query in (-1.0, 0.3, 2.2):
        weight = torch.stack([kernel((query - key).abs() / 2.5) for key in x[:, 0]])
        expected = (weight * y[:, 0]).sum() / weight.sum()
        torch.testing.assert_close(model.predict(torch.tensor([[query]], dtype=torch.float64))[0, 0], expected)


def test_nearest_example_is_used_outside_the_support() -> None:
    x, y = make_examples()
    far = torch.tensor([[100.0], [-50.0]], dtype=torch.float64)
    nearest = torch.stack([y[x.argmax()], y[x.argmin()]])
    for kernel in (boxcar_kernel, triangular_kernel, epanechnikov_kernel, gaussian_kernel):
        model = NadarayaWatson.fit(x, y, kernel=kernel, bandwidth=0.5)
        torch.testing.assert_close(model.predict(far), nearest)
        torch.testing.assert_close(model.weights(far).sum(1), torch.ones(2, dtype=torch.float64))


def test_constant_kernel_predicts_the_mean() -> None:
    x, y = make_examples()
    torch.testing.assert_close(NadarayaWatson.fit(x, y, kernel=constant_kernel).predict(x), y.mean().expand(30, 1))


@pytest.mark.parametrize("kernel", [gaussian_kernel, boxcar_kernel, constant_kernel])
def test_leave_one_out_matches_refit_without_the_example(kernel: RadialKernel) -> None:
    x, y = make_examples(12)
    others = [index for index in range(12) if index != 5]
    refitted_model = NadarayaWatson.fit(x[others], y[others], kernel=kernel, bandwidth=0.4)
    predictions = NadarayaWatson.fit(x, y, kernel=kernel, bandwidth=0.4).leave_one_out()
    torch.testing.assert_close(predictions[5], refitted_model.predict(x[5:6])[0])


def test_best_bandwidth_has_the_smallest_leave_one_out_error() -> None:
    model = NadarayaWatson.fit(*make_examples(80))
    errors = {bandwidth: model.with_bandwidth(bandwidth).leave_one_out_error() for bandwidth in (0.01, 0.3, 10.0)}
    assert errors[0.3] < min(errors[0.01], errors[10.0])
    assert model.best_bandwidth([0.01, 0.3, 10.0]) == 0.3


def test_fit_classes_predicts_class_probabilities() -> None:
    x = torch.tensor([[0.0], [1.0], [2.0]])
    model = NadarayaWatson.fit_classes(x, torch.tensor([0, 2, 2]), 4, kernel=boxcar_kernel, bandwidth=1.2)
    torch.testing.assert_close(model.predict(torch.tensor([[0.4]])), torch.tensor([[0.5, 0.0, 0.5, 0.0]]))


def test_mean_shift_increases_the_density() -> None:
    points = standard_normal(200, 2)
    start = torch.tensor([[2.0, 2.0], [-3.0, 0.5]], dtype=torch.float64)
    path = mean_shift(start, points, steps=50, bandwidth=0.8)
    assert torch.equal(path[0], start)
    density = torch.stack([(-(q[:, None] - points).square().sum(-1) / 2 / 0.64).exp().mean(1) for q in path])
    assert float(density.diff(dim=0).min()) > -1e-15
    assert float((path[-1] - path[-2]).norm()) < 1e-3


def test_invalid_arguments_raise_value_error() -> None:
    x, y = make_examples(4)
    with pytest.raises(ValueError, match="at least one example with a target each is needed; got 0 and 0"):
        NadarayaWatson.fit(x[:0], y[:0])
    with pytest.raises(ValueError, match="at least two examples; got 1"):
        NadarayaWatson.fit(x[:1], y[:1]).leave_one_out()
    with pytest.raises(ValueError, match="at least one candidate bandwidth"):
        NadarayaWatson.fit(x, y).best_bandwidth([])
    with pytest.raises(ValueError, match="bandwidth must be positive; got bandwidth=-1"):
        NadarayaWatson.fit(x, y, bandwidth=-1.0).predict(x)
    with pytest.raises(ValueError, match="steps must not be negative; got steps=-1"):
        mean_shift(x, x, steps=-1)
