"""Networks with bounded Lipschitz constants, and fixed-point inversion of residual maps (book sec. 13.1)."""

from collections.abc import Callable, Iterator, Sequence
from math import inf, isfinite, prod, sqrt

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils import parametrize

from parnassus.errors import check_positive
from parnassus.layers.activations import Activation
from parnassus.layers.dense import mlp

MAX_SWISH_DERIVATIVE = 1.0998393194985352
"""The maximum of the derivative of x σ(x), at x = 2.3994."""


def lipschitz_swish(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """The swish x σ(x)/1.0998: smooth, with derivatives between −0.09 and 1, hence 1-Lipschitz (Chen et al. 2019)."""
    return x * x.sigmoid() / MAX_SWISH_DERIVATIVE


class SpectralBound(nn.Module):
    """Rescales weights such that their layer has a Lipschitz constant of at most `bound`; smaller weights are kept.

        Ŵ = W / max(1, ‖W‖ / bound),   ‖W‖ = largest singular value

    A parametrisation of the weight of a layer. The norm is exact: power iteration would underestimate it, and the layer
    might not be a contraction. There is no state, so that a map and its inverse use the same weights. The kernel of a
    convolution is flattened to a matrix outputs × (inputs · taps), and its norm multiplied by √taps: with zero padding
    an input reaches at most `taps` outputs.

    >>> SpectralBound(0.5)(torch.eye(2)).tolist()
    [[0.5, 0.0], [0.0, 0.5]]
    """

    def __init__(self, bound: float) -> None:
        super().__init__()
        check_positive(bound=bound)
        self.bound = bound

    def forward(self, weight: Float[Tensor, "rows columns *taps"]) -> Float[Tensor, "rows columns *taps"]:
        return weight / (spectral_norm(weight) / self.bound).clamp(min=1.0)

    def extra_repr(self) -> str:
        return f"bound={self.bound:.4g}"


def spectral_norm(weight: Float[Tensor, "rows columns *taps"]) -> Float[Tensor, ""]:
    """The spectral norm of a dense layer; for a convolution with zero padding an upper bound."""
    largest: Tensor = torch.linalg.matrix_norm(weight.flatten(1), ord=2)
    return largest * sqrt(prod(weight.shape[2:]))


def constrain_lipschitz(network: nn.Sequential, lipschitz: float, *, first_layer_gain: float = 1.0) -> nn.Sequential:
    """Bound the spectral norms of all layers with weights such that the network is `lipschitz`-Lipschitz.

        Lip(g) ≤ Π_l ‖W_l‖ ≤ lipschitz

    The activations must be 1-Lipschitz: tanh, sin, ReLU, ELU and `lipschitz_swish` are, SiLU and GELU are not. All
    layers have the same bound, except that the first is multiplied and the last divided by `first_layer_gain`: the
    product is the same, but the network can have larger curvature.
    """
    layers = [layer for layer in network if isinstance(getattr(layer, "weight", None), Tensor)]
    if not layers or not lipschitz > 0 or not first_layer_gain > 0:
        raise ValueError(
            "the network must have a layer with a weight, and lipschitz and first_layer_gain must be positive; got "
            f"{len(layers)} layers, lipschitz={lipschitz}, first_layer_gain={first_layer_gain}"
        )
    bounds = [lipschitz ** (1 / len(layers))] * len(layers)
    bounds[0] *= first_layer_gain
    bounds[-1] /= first_layer_gain
    for layer, bound in zip(layers, bounds, strict=True):
        parametrize.register_parametrization(layer, "weight", SpectralBound(bound))
    return network


def contractive_mlp(
    sizes: Sequence[int],
    *,
    lipschitz: float = 0.9,
    first_layer_gain: float = 1.0,
    activation: Activation = lipschitz_swish,
) -> nn.Sequential:
    """A dense network with ‖g(a) − g(b)‖ ≤ lipschitz ‖a − b‖ (book sec. 13.1)."""
    return constrain_lipschitz(mlp(sizes, activation=activation), lipschitz, first_layer_gain=first_layer_gain)


def fixed_point_iterates(
    branch: Callable[[Tensor], Tensor], x: Float[Tensor, "batch *event"]
) -> Iterator[Float[Tensor, "batch *event"]]:
    """The iterates z_0 = x, z_{k+1} = x − g(z_k), which converge to the solution of z + g(z) = x.

    If Lip(g) = L < 1, then ‖z_k − z‖ ≤ Lᵏ ‖z_0 − z‖ (Banach fixed-point theorem).
    """
    z = x
    while True:
        yield z
        z = x - branch(z)


@torch.no_grad()
def invert_residual(
    branch: Callable[[Tensor], Tensor], x: Float[Tensor, "batch *event"], *, max_iterations: int = 300
) -> Float[Tensor, "batch *event"]:
    """Solve z + g(z) = x to machine precision by at most `max_iterations` fixed-point iterations."""
    precision = torch.finfo(x.dtype).eps
    path = fixed_point_iterates(branch, x)
    z = previous = next(path)
    distance = last_distance = inf
    with parametrize.cached():  # computes the bounded weights once
        for _ in range(max_iterations):
            previous, z = z, next(path)
            step = _max_abs(z - previous)
            if not isfinite(step):
                break  # diverged: report the last finite steps
            last_distance, distance = distance, step
            if distance <= 2 * precision * _max_abs(z):
                return z
    if distance <= sqrt(precision) * min(_max_abs(z), _max_abs(previous)):
        return z  # limited by the rounding errors of g
    raise ValueError(
        "the branch of a residual map must be a contraction (Lipschitz constant below 1); the last of "
        f"{max_iterations} iterations has step size {distance:.2g}, {distance / last_distance:.3g} times the one before"
    )


def _max_abs(z: Tensor) -> float:
    return float(z.abs().max()) if z.numel() else 0.0
