"""Posterior of a Gaussian process for targets placed by clicking (book sec. 15.1)."""

from collections.abc import Callable, Mapping
from math import sqrt
from typing import Annotated, TypeAlias

import torch
from torch import Tensor

from parnassus.atlas.decorators import probe
from parnassus.kernels.gaussian_processes.covariance import (
    FeatureKernel,
    Kernel,
    LinearKernel,
    OrnsteinUhlenbeckKernel,
    RBFKernel,
    SumKernel,
)
from parnassus.kernels.gaussian_processes.gp_regression import GPRegression
from parnassus.kernels.gaussian_processes.process import GaussianProcess
from parnassus.widgets import Answer, Curves, FloatSlider, Numbers, Plane, PointsPicker, Select, Trajectories

HALF_WIDTH, HALF_HEIGHT, NUM_GRID_POINTS = 4.0, 3.0, 480  # half widths of the plane, and grid points along each axis
PLANE = Plane((-HALF_WIDTH, HALF_WIDTH), (-HALF_HEIGHT, HALF_HEIGHT), torch.zeros(0, 2), x_label="x", y_label="t")
Targets: TypeAlias = tuple[tuple[float, float], ...]
"""Pairs (x, t), in the order they were placed."""
FIRST: Targets = ((-3.2, 0.9), (1.6, 1.1), (-1.0, -1.2), (3.1, -0.6), (0.2, 1.6))


def _parabola(x: Tensor) -> Tensor:
    """1, x, x²: three features."""
    return torch.cat([torch.ones_like(x), x, x.square() / 2], 1)


KERNELS: Mapping[str, Callable[[float], Kernel]] = {
    "RBF: smooth": RBFKernel,
    "Ornstein-Uhlenbeck: rough": OrnsteinUhlenbeckKernel,
    "linear: straight, through 0": lambda _: LinearKernel(),
    "1, x, x²: parabolas": lambda _: FeatureKernel(_parabola),
    "linear + RBF": lambda length: SumKernel(LinearKernel(), RBFKernel(length)),
}
"""Kernels by name, as functions of a length scale (ignored by some)."""


@probe()
@torch.no_grad()
def gp_posterior(
    targets: Annotated[Targets, PointsPicker("targets (x, t)", PLANE)] = FIRST,
    kind: Annotated[int, Select("kernel", tuple(KERNELS))] = 0,
    length: Annotated[float, FloatSlider("length scale, s", 0.1, 5.0, log=True)] = 0.8,
    noise: Annotated[float, FloatSlider("noise variance, σ²", 1e-4, 1.0, log=True)] = 0.01,
) -> list[Answer]:
    """Posterior mean and bands of a Gaussian process given a few targets (book sec. 15.1).

    Click to add a target and drag it: its influence extends about one length scale. Far from all targets the bands
    return to the prior. With more noise the mean no longer passes through the targets. The evidence curve shows which
    length scale fits best.
    """
    name = tuple(KERNELS)[kind]
    kernel, fit = KERNELS[name](length), fit_posterior(KERNELS[name](length), targets, noise)
    about = "Predictions are ± one standard deviation of a noisy target; deviations above 2 or 3 indicate a misfit."
    return [
        plot_posterior(kernel, fit, noise),
        _plot_evidence(KERNELS[name], fit, length),
        Numbers("Statistics", _statistics(fit), about=about),
    ]


def fit_posterior(kernel: Kernel, targets: Targets, noise: float) -> GPRegression | None:
    """The posterior, or None without targets."""
    points = torch.tensor(targets, dtype=torch.float64)
    return GPRegression.fit(kernel, points[:, :1], points[:, 1], noise_variance=noise) if targets else None


def plot_posterior(kernel: Kernel, fit: GPRegression | None, noise: float) -> Trajectories:
    """Mean, bands of curve and target, and three sampled curves of the posterior (the prior without targets)."""
    across = torch.linspace(-HALF_WIDTH, HALF_WIDTH, NUM_GRID_POINTS, dtype=torch.float64)
    up = torch.linspace(-HALF_HEIGHT, HALF_HEIGHT, NUM_GRID_POINTS, dtype=torch.float64)
    coarse, generator = across[::6], torch.Generator().manual_seed(0)
    if fit is None:
        mean, variance = torch.zeros_like(across), kernel.diagonal(across[:, None])
        samples = GaussianProcess(kernel).sample(coarse[:, None], 3, generator=generator).values
    else:
        mean, variance, _ = fit.predict(across[:, None])
        samples = fit.posterior(coarse[:, None]).sample(3, generator=generator)
    distance = (up[:, None] - mean).abs()
    bands = [(distance > 2 * spread.sqrt()).double() / 2 for spread in (variance, variance + noise)]
    return Trajectories(
        "Posterior of the curve",
        {"mean": _line(across[::3], mean[::3])},
        across.float(),
        up.float(),
        sum(bands, torch.zeros_like(distance)).float(),
        about="Bands: ± two standard deviations of the curve (dark) and of a noisy target (light). Thin lines: samples "
        "of the posterior. Orange dots: targets.",
        thin_lines=[_line(coarse, path) for path in samples],
        points=None if fit is None else torch.cat([fit.x, fit.t[:, None]], 1).float(),
    )


def _statistics(fit: GPRegression | None) -> dict[str, float | str]:
    if fit is None:
        return {"targets": 0.0}
    others = fit.leave_one_out()
    mean, variance = float(others.mean[-1]), float(others.target_variance[-1])
    return {
        "targets": float(len(fit.t)),
        "log evidence, ln p(t)": float(fit.log_marginal_likelihood()),
        "leave-one-out prediction of the last target": f"{mean:.2f} ± {sqrt(variance):.2f}",
        "its deviation in standard deviations": abs(float(fit.t[-1]) - mean) / sqrt(variance),
        "jitter added to the matrix": fit.jitter,
    }


def _line(across: Tensor, heights: Tensor) -> Tensor:
    return torch.stack([across, heights.clamp(-HALF_HEIGHT, HALF_HEIGHT)], 1).float()  # clipped to the plane


def _plot_evidence(kernel: Callable[[float], Kernel], fit: GPRegression | None, length: float) -> Curves:
    lengths = torch.logspace(-1, 0.7, 17, dtype=torch.float64).tolist()
    fits = [
        None if fit is None else GPRegression.fit(kernel(each), fit.x, fit.t, noise_variance=fit.noise_variance)
        for each in lengths
    ]
    heights = [0.0 if each is None else float(each.log_marginal_likelihood()) for each in fits]
    return Curves(
        "Evidence over length scales", {"ln p(t)": (lengths, heights)}, "length scale, s", "log evidence", marked=length
    )
