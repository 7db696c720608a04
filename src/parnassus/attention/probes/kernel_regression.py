"""Interactive kernel regression with a choice of kernel and bandwidth (book sec. 10.1.3, Zhao sec. 11)."""

from typing import Annotated

import torch
from torch import Tensor

from parnassus.atlas.decorators import probe
from parnassus.attention.regression.kernel_regression import NadarayaWatson
from parnassus.attention.regression.kernels import (
    RadialKernel,
    boxcar_kernel,
    constant_kernel,
    epanechnikov_kernel,
    gaussian_kernel,
    triangular_kernel,
)
from parnassus.data.built_in.toy import curve
from parnassus.widgets import Answer, Bars, Curves, FloatSlider, IntSlider, Numbers, Select, Trajectories

KERNELS: dict[str, RadialKernel] = {
    "Gaussian": gaussian_kernel,
    "Epanechnikov": epanechnikov_kernel,
    "triangular": triangular_kernel,
    "boxcar": boxcar_kernel,
    "constant": constant_kernel,
}
GRID = torch.linspace(0, 5, 201, dtype=torch.float64)[:, None]
X_AXIS, Y_AXIS = torch.linspace(0, 5, 61, dtype=torch.float64), torch.linspace(-2, 8, 61, dtype=torch.float64)
STD = 0.5  # standard deviation of the Gaussian around each value in the plane
MAX_BARS = 12  # examples with the largest weights


def _truth(x: Tensor) -> Tensor:
    return 2 * x.sin() + x


@probe()
@torch.no_grad()
def kernel_regression_fit(
    query: Annotated[float, FloatSlider("query q", 0.0, 5.0)] = 2.0,
    kernel: Annotated[int, Select("kernel", tuple(KERNELS))] = 0,
    bandwidth: Annotated[float, FloatSlider("bandwidth h", 0.02, 10.0, log=True)] = 0.3,
    noise: Annotated[float, FloatSlider("standard deviation of the noise", 0.0, 2.0)] = 0.5,
    count: Annotated[int, IntSlider("number of examples", 5, 150)] = 60,
) -> list[Answer]:
    """Nadaraya-Watson regression of a curve from noisy examples (book sec. 10.1.3).

    A small bandwidth interpolates the examples; a larger one smooths, a very large one gives a flat fit. Compare with
    the bandwidth chosen by leave-one-out error. The boxcar fit is discontinuous, the constant kernel predicts the mean;
    if no example lies within the support of the kernel, the nearest one is used.
    """
    examples = curve(count, _truth, noise=noise, low=0.0, high=5.0)
    assert examples.y is not None
    x, order = examples.x.double().sort(0)
    y = examples.y.double()[order[:, 0]]
    fitted = NadarayaWatson.fit(x, y, kernel=list(KERNELS.values())[kernel], bandwidth=bandwidth)
    point = torch.tensor([[query]], dtype=torch.float64)
    weights = fitted.weights(point)[0]
    best = fitted.best_bandwidth(torch.logspace(-1.5, 1, 12).tolist())
    numbers: dict[str, float | str] = {
        "f(q)": float(fitted.predict(point)),
        "true value": float(_truth(point)),
        "effective number of examples, 1 / Σ α²": float(1 / weights.square().sum()),
        "mean squared error of the fit": float((fitted.predict(GRID) - _truth(GRID)).square().mean()),
        "leave-one-out error": fitted.leave_one_out_error(),
        "bandwidth with the smallest leave-one-out error": best,
        "leave-one-out error at that bandwidth": fitted.with_bandwidth(best).leave_one_out_error(),
    }
    return [_plane(fitted, point), _lines(fitted, query, best), _weights(x, weights), Numbers("Statistics", numbers)]


def _plane(fitted: NadarayaWatson, point: Tensor) -> Trajectories:
    """The examples, the fit, the query and the weighted mixture of values at each x."""
    densities = (-(Y_AXIS[:, None] - fitted.value[:, 0]).square() / (2 * STD**2)).exp()
    mixture = densities @ fitted.weights(X_AXIS[:, None]).mT
    prediction = fitted.predict(point)
    ends = torch.stack([Y_AXIS[0], Y_AXIS[-1]])[:, None]
    return Trajectories(
        "Examples, fit and query",
        {"query q": torch.cat([point.expand(2, 1), ends], 1), "f(q)": torch.cat([point, prediction], 1)},
        X_AXIS,
        Y_AXIS,
        mixture,
        about="Contours: the weighted mixture of values at each x, smoothed; the thin line is its mean f.",
        thin_lines=[torch.cat([GRID, fitted.predict(GRID)], 1)],
        points=torch.cat([fitted.key, fitted.value], 1),
    )


def _lines(fitted: NadarayaWatson, query: float, best: float) -> Curves:
    x = GRID[:, 0].tolist()
    lines = {
        "f": (x, fitted.predict(GRID)[:, 0].tolist()),
        "true curve": (x, _truth(GRID)[:, 0].tolist()),
        "f at the bandwidth chosen by leave-one-out error": (
            x,
            fitted.with_bandwidth(best).predict(GRID)[:, 0].tolist(),
        ),
    }
    return Curves("Fit and true curve", lines, x_label="x", y_label="y", marked=query)


def _weights(x: Tensor, weights: Tensor) -> Bars:
    """The examples with the largest weights, in order of x."""
    chosen = weights.topk(min(MAX_BARS, len(weights))).indices.sort().values
    names = [f"x = {float(value):.2f}" for value in x[chosen, 0]]
    return Bars(
        "Weights of the query",
        names,
        weights[chosen].float(),
        marked=int(weights[chosen].argmax()),
        about="The examples with the largest weights; all weights sum to 1.",
    )
