"""Posterior of an infinitely wide network for targets placed by clicking (book secs. 15.3, 15.4)."""

from collections.abc import Callable, Mapping
from typing import Annotated

import torch
from torch import Tensor

from parnassus.atlas.decorators import probe
from parnassus.kernels.gaussian_processes.covariance import Kernel, ScaledKernel
from parnassus.kernels.infinite_width.network import Network, fully_connected
from parnassus.kernels.infinite_width.nngp_and_ntk import NNGP, NTK
from parnassus.kernels.infinite_width.nonlinearity import GELU, Cosine, Erf, Nonlinearity, ReLU
from parnassus.kernels.probes.gp_posterior import FIRST, HALF_WIDTH, PLANE, Targets, fit_posterior, plot_posterior
from parnassus.widgets import Answer, Curves, FloatSlider, IntSlider, Numbers, PointsPicker, Select

KINDS: Mapping[str, Callable[[Network], Kernel]] = {
    "NNGP: Bayesian network": NNGP,
    "NTK: gradient descent": NTK,
}
SIGMAS: Mapping[str, Nonlinearity] = {"ReLU": ReLU(), "erf": Erf(), "GELU": GELU(), "cos": Cosine()}


@probe()
@torch.no_grad()
def infinite_width_posterior(
    targets: Annotated[Targets, PointsPicker("targets (x, t)", PLANE)] = FIRST,
    *,
    kind: Annotated[int, Select("kernel", tuple(KINDS))] = 1,
    sigma: Annotated[int, Select("nonlinearity, σ", tuple(SIGMAS))] = 1,
    depth: Annotated[int, IntSlider("hidden layers, L", 0, 8)] = 3,
    bias: Annotated[float, FloatSlider("variance of the biases", 0.0, 3.0)] = 0.5,
    noise: Annotated[float, FloatSlider("noise variance, σ²", 1e-4, 1.0, log=True)] = 0.01,
) -> list[Answer]:
    """NNGP and NTK regression with a few targets (book secs. 15.3, 15.4).

    Start with erf and three layers; click to add targets and drag them. ReLU without a bias gives only two rays on a
    line and cannot interpolate the targets. Deeper networks bend more sharply. With the NTK the mean fits the targets
    more closely than with the NNGP of the same network.
    """
    network = fully_connected(depth, tuple(SIGMAS.values())[sigma], bias_variance=bias)
    kernel = tuple(KINDS.values())[kind](network)
    line = torch.linspace(-HALF_WIDTH, HALF_WIDTH, 33, dtype=torch.float64)[:, None]
    scale = 1 / float(kernel.diagonal(line).mean())
    scaled = ScaledKernel(kernel, scale)
    fit = fit_posterior(scaled, targets, noise)
    numbers: dict[str, float | str] = {"scale factor for a mean variance of 1": scale}
    if fit is not None:
        errors = fit.predict(fit.x).mean - fit.t
        numbers |= {
            "log evidence, ln p(t)": float(fit.log_marginal_likelihood()),
            "largest error at a target": float(errors.abs().max()),
            "jitter added to the matrix": fit.jitter,
        }
    return [plot_posterior(scaled, fit, noise), _plot_correlation(kernel), Numbers("Statistics", numbers)]


def _plot_correlation(kernel: Kernel) -> Curves:
    """Correlation of the outputs at 1 and x."""
    across = torch.linspace(-HALF_WIDTH, HALF_WIDTH, 81, dtype=torch.float64)
    here = torch.ones(1, 1, dtype=torch.float64)
    scale = (kernel.diagonal(across[:, None]) * kernel.diagonal(here)).sqrt()
    correlation: Tensor = kernel(across[:, None], here)[:, 0] / scale.clamp(min=1e-12)
    lines = {"K(1, x) / √(K(1, 1) K(x, x))": (across.tolist(), correlation.tolist())}
    return Curves("Correlation of the outputs at 1 and at x", lines, "x", "correlation", marked=1.0)
