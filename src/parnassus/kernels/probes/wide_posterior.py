"""An infinitely wide network under the hand: what it believes before and after training (book secs. 15.3, 15.4)."""

from collections.abc import Callable, Mapping
from typing import Annotated

import torch
from torch import Tensor

from parnassus.atlas.marks import probe
from parnassus.kernels.covariance import Kernel, Scaled
from parnassus.kernels.network import Network, fully_connected
from parnassus.kernels.nonlinearity import GELU, Cosine, Erf, Nonlinearity, ReLU
from parnassus.kernels.probes.gp_posterior import FIRST, PLANE, REACH, Targets, fitted, posterior_picture
from parnassus.kernels.wide_kernel import NNGP, NTK
from parnassus.touch import Answer, Curves, Numbers, Pick, Points, Real, Whole

KINDS: Mapping[str, Callable[[Network], Kernel]] = {
    "NNGP: all weights have a prior": NNGP,
    "NTK: trained by descent": NTK,
}
SIGMAS: Mapping[str, Nonlinearity] = {"ReLU": ReLU(), "erf": Erf(), "GELU": GELU(), "cos": Cosine()}


@probe()
@torch.no_grad()
def wide_posterior(
    targets: Annotated[Targets, Points("targets seen: x across, t up", PLANE)] = FIRST,
    *,
    kind: Annotated[int, Pick("kernel", tuple(KINDS))] = 1,
    sigma: Annotated[int, Pick("nonlinearity, σ", tuple(SIGMAS))] = 1,
    depth: Annotated[int, Whole("hidden layers, L", 0, 8)] = 3,
    bias: Annotated[float, Real("variance of the biases", 0.0, 3.0)] = 0.5,
    noise: Annotated[float, Real("noise variance, σ²", 1e-4, 1.0, log=True)] = 0.01,
) -> list[Answer]:
    """What an infinitely wide network makes of a few targets (book secs. 15.3, 15.4).

    Begin with erf and three layers, click targets in and drag them. Then take ReLU without a bias: on a line such a
    network knows two rays and nothing else, and cannot go through the targets. Deeper networks turn more sharply. With
    the NTK, where all layers learn, the mean comes closer to the targets than with the NNGP of the same network.
    """
    network = fully_connected(depth, tuple(SIGMAS.values())[sigma], bias=bias)
    kernel = tuple(KINDS.values())[kind](network)
    line = torch.linspace(-REACH, REACH, 33, dtype=torch.float64)[:, None]
    scale = 1 / float(kernel.diagonal(line).mean())
    scaled = Scaled(kernel, scale)
    fit = fitted(scaled, targets, noise)
    numbers: dict[str, float | str] = {"scale, so that the mean variance here is 1": scale}
    if fit is not None:
        missed = fit.predict(fit.x).mean - fit.t
        numbers |= {
            "log evidence, ln p(t)": float(fit.log_marginal_likelihood()),
            "farthest from a target": float(missed.abs().max()),
            "jitter that the matrix needed": fit.jitter,
        }
    return [posterior_picture(scaled, fit, noise), _correlation(kernel), Numbers("In numbers", numbers)]


def _correlation(kernel: Kernel) -> Curves:
    """How alike the outputs at 1 and elsewhere are."""
    across = torch.linspace(-REACH, REACH, 81, dtype=torch.float64)
    here = torch.ones(1, 1, dtype=torch.float64)
    scale = (kernel.diagonal(across[:, None]) * kernel.diagonal(here)).sqrt()
    alike: Tensor = kernel(across[:, None], here)[:, 0] / scale.clamp(min=1e-12)
    lines = {"K(1, x) / √(K(1, 1) K(x, x))": (across.tolist(), alike.tolist())}
    return Curves("How alike the outputs at 1 and at x are", lines, "x", "cosine", marked=1.0)
