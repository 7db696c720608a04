"""A Gaussian process under the hand: place a target and see what is then known everywhere (book sec. 15.1)."""

from collections.abc import Callable, Mapping
from math import sqrt
from typing import Annotated

import torch
from torch import Tensor

from parnassus.atlas.marks import probe
from parnassus.kernels.covariance import RBF, FeatureKernel, Kernel, Linear, OrnsteinUhlenbeck, Sum
from parnassus.kernels.gp_regression import GPRegression
from parnassus.touch import Answer, Curves, Numbers, Path, Pick, Plane, Point, Real, Whole

REACH, TALL, FINE = 4.0, 3.0, 480  # half a side of the plane across and up, and places along each
SEEN = torch.tensor(
    [[-3.2, 0.9], [1.6, 1.1], [-1.0, -1.2], [3.1, -0.6], [-2.1, 0.2], [0.9, 0.4], [2.4, 0.7], [-0.2, -0.6]],
    dtype=torch.float64,
)
"""Targets that may be seen beside the one under the pointer, in this order."""
PLANE = Plane((-REACH, REACH), (-TALL, TALL), SEEN.float(), across_name="x", up_name="t")


def _parabola(x: Tensor) -> Tensor:
    """1, x, x²: three features."""
    return torch.cat([torch.ones_like(x), x, x.square() / 2], 1)


KERNELS: Mapping[str, Callable[[float], Kernel]] = {
    "RBF: smooth": RBF,
    "Ornstein-Uhlenbeck: rough": OrnsteinUhlenbeck,
    "linear: straight, through 0": lambda _: Linear(),
    "1, x, x²: parabolas": lambda _: FeatureKernel(_parabola),
    "linear + RBF": lambda length: Sum(Linear(), RBF(length)),
}
"""A kernel for each name, given a length scale, which some do not have."""


@probe()
@torch.no_grad()
def gp_posterior(
    place: Annotated[tuple[float, float], Point("a target seen: x across, t up", PLANE)] = (0.2, 1.6),
    others: Annotated[int, Whole("how many of the dots are seen too", 0, len(SEEN))] = 4,
    kind: Annotated[int, Pick("kernel", tuple(KERNELS))] = 0,
    length: Annotated[float, Real("length scale, s", 0.1, 5.0, log=True)] = 0.8,
    noise: Annotated[float, Real("noise variance, σ²", 1e-4, 1.0, log=True)] = 0.01,
) -> list[Answer]:
    """What one more target says about a curve, near by and far away (book sec. 15.1).

    Move the target and watch how far its word carries: about a length scale. Far from all targets the bands go back to
    what was known before. Then raise the noise: the mean need not go through the targets any more. Which length is
    right? Look for the one with the largest evidence.
    """
    name = tuple(KERNELS)[kind]
    points = torch.cat([torch.tensor([place], dtype=torch.float64), SEEN[:others]])
    x, t = points[:, :1], points[:, 1]
    fit = GPRegression.fit(KERNELS[name](length), x, t, noise=noise)
    beside = fit.leave_one_out()
    numbers: dict[str, float | str] = {
        "log evidence, ln p(t)": float(fit.log_marginal_likelihood()),
        "what the dots alone say here": f"{float(beside.mean[0]):.2f} ± {sqrt(float(beside.target_variance[0])):.2f}",
        "deviations from it to this target": float((t[0] - beside.mean[0]).abs() / beside.target_variance[0].sqrt()),
        "jitter that the matrix needed": fit.jitter,
    }
    about = "± one standard deviation of a noisy target. Beyond two or three, the kernel did not expect it."
    return [
        posterior_picture(fit, points),
        _evidence(KERNELS[name], fit, length),
        Numbers("In numbers", numbers, about=about),
    ]


def posterior_picture(fit: GPRegression, points: Tensor) -> Path:
    """The mean over the bands of curve and target, and three curves drawn from the posterior."""
    across = torch.linspace(-REACH, REACH, FINE, dtype=torch.float64)
    up = torch.linspace(-TALL, TALL, FINE, dtype=torch.float64)
    mean, variance, target_variance = fit.predict(across[:, None])
    away = (up[:, None] - mean).abs()
    bands = [(away > 2 * spread.sqrt()).double() / 2 for spread in (variance, target_variance)]
    coarse = across[::6]
    drawn = fit.posterior(coarse[:, None]).sample(3, generator=torch.Generator().manual_seed(0))
    return Path(
        "What is known of the curve",
        {"mean": _line(across[::3], mean[::3])},
        across.float(),
        up.float(),
        sum(bands, torch.zeros_like(away)).float(),
        about="Shaded: two deviations around the mean, darker for the curve, lighter for a new noisy target. Thin "
        "lines are curves drawn from the posterior; orange dots are seen, blue ones are not.",
        threads=[_line(coarse, path) for path in drawn],
        dots=points.float(),
    )


def _line(across: Tensor, heights: Tensor) -> Tensor:
    return torch.stack([across, heights.clamp(-TALL, TALL)], 1).float()  # along the edge where it leaves the plane


def _evidence(kernel: Callable[[float], Kernel], fit: GPRegression, length: float) -> Curves:
    lengths = torch.logspace(-1, 0.7, 17, dtype=torch.float64).tolist()
    heights = [
        float(GPRegression.fit(kernel(each), fit.x, fit.t, noise=fit.noise).log_marginal_likelihood())
        for each in lengths
    ]
    return Curves(
        "Evidence over length scales", {"ln p(t)": (lengths, heights)}, "length scale, s", "log evidence", marked=length
    )
