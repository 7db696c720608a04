"""A Gaussian process under the hand: click targets and see what is then known everywhere (book sec. 15.1)."""

from collections.abc import Callable, Mapping
from math import sqrt
from typing import Annotated, TypeAlias

import torch
from torch import Tensor

from parnassus.atlas.marks import probe
from parnassus.kernels.covariance import RBF, FeatureKernel, Kernel, Linear, OrnsteinUhlenbeck, Sum
from parnassus.kernels.gp_regression import GPRegression
from parnassus.kernels.process import GaussianProcess
from parnassus.touch import Answer, Curves, Numbers, Path, Pick, Plane, Points, Real

REACH, TALL, FINE = 4.0, 3.0, 480  # half a side of the plane across and up, and places along each
PLANE = Plane((-REACH, REACH), (-TALL, TALL), torch.zeros(0, 2), across_name="x", up_name="t")
Targets: TypeAlias = tuple[tuple[float, float], ...]
"""Pairs (x, t), as they were clicked."""
FIRST: Targets = ((-3.2, 0.9), (1.6, 1.1), (-1.0, -1.2), (3.1, -0.6), (0.2, 1.6))


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
    targets: Annotated[Targets, Points("targets seen: x across, t up", PLANE)] = FIRST,
    kind: Annotated[int, Pick("kernel", tuple(KERNELS))] = 0,
    length: Annotated[float, Real("length scale, s", 0.1, 5.0, log=True)] = 0.8,
    noise: Annotated[float, Real("noise variance, σ²", 1e-4, 1.0, log=True)] = 0.01,
) -> list[Answer]:
    """What targets say about a curve, near by and far away (book sec. 15.1).

    Click a target in and drag it: its word carries about a length scale. Far from all targets the bands go back to what
    was known before, which is all there is when you clear them. Then raise the noise: the mean need not go through
    the targets any more. Which length is right? Look for the one with the largest evidence.
    """
    name = tuple(KERNELS)[kind]
    kernel, fit = KERNELS[name](length), fitted(KERNELS[name](length), targets, noise)
    about = "± one standard deviation of a noisy target. Beyond two or three, the kernel did not expect it."
    return [
        posterior_picture(kernel, fit, noise),
        _evidence(KERNELS[name], fit, length),
        Numbers("In numbers", _numbers(fit), about=about),
    ]


def fitted(kernel: Kernel, targets: Targets, noise: float) -> GPRegression | None:
    """The posterior; without targets there is the prior only."""
    points = torch.tensor(targets, dtype=torch.float64)
    return GPRegression.fit(kernel, points[:, :1], points[:, 1], noise=noise) if targets else None


def posterior_picture(kernel: Kernel, fit: GPRegression | None, noise: float) -> Path:
    """The mean over the bands of curve and target, and three curves drawn; of the prior where nothing was seen."""
    across = torch.linspace(-REACH, REACH, FINE, dtype=torch.float64)
    up = torch.linspace(-TALL, TALL, FINE, dtype=torch.float64)
    coarse, source = across[::6], torch.Generator().manual_seed(0)
    if fit is None:
        mean, variance = torch.zeros_like(across), kernel.diagonal(across[:, None])
        drawn = GaussianProcess(kernel).sample(coarse[:, None], 3, generator=source).values
    else:
        mean, variance, _ = fit.predict(across[:, None])
        drawn = fit.posterior(coarse[:, None]).sample(3, generator=source)
    away = (up[:, None] - mean).abs()
    bands = [(away > 2 * spread.sqrt()).double() / 2 for spread in (variance, variance + noise)]
    return Path(
        "What is known of the curve",
        {"mean": _line(across[::3], mean[::3])},
        across.float(),
        up.float(),
        sum(bands, torch.zeros_like(away)).float(),
        about="Shaded: two deviations around the mean, darker for the curve, lighter for a new noisy target. Thin "
        "lines are curves drawn from what is known; orange dots are the targets.",
        threads=[_line(coarse, path) for path in drawn],
        dots=None if fit is None else torch.cat([fit.x, fit.t[:, None]], 1).float(),
    )


def _numbers(fit: GPRegression | None) -> dict[str, float | str]:
    if fit is None:
        return {"targets seen": 0.0}
    others = fit.leave_one_out()
    mean, variance = float(others.mean[-1]), float(others.target_variance[-1])
    return {
        "targets seen": float(len(fit.t)),
        "log evidence, ln p(t)": float(fit.log_marginal_likelihood()),
        "what the others say of the last": f"{mean:.2f} ± {sqrt(variance):.2f}",
        "deviations from it to the last": abs(float(fit.t[-1]) - mean) / sqrt(variance),
        "jitter that the matrix needed": fit.jitter,
    }


def _line(across: Tensor, heights: Tensor) -> Tensor:
    return torch.stack([across, heights.clamp(-TALL, TALL)], 1).float()  # along the edge where it leaves the plane


def _evidence(kernel: Callable[[float], Kernel], fit: GPRegression | None, length: float) -> Curves:
    lengths = torch.logspace(-1, 0.7, 17, dtype=torch.float64).tolist()
    fits = [None if fit is None else GPRegression.fit(kernel(each), fit.x, fit.t, noise=fit.noise) for each in lengths]
    heights = [0.0 if each is None else float(each.log_marginal_likelihood()) for each in fits]
    return Curves(
        "Evidence over length scales", {"ln p(t)": (lengths, heights)}, "length scale, s", "log evidence", marked=length
    )
