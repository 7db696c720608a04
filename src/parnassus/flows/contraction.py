"""Networks that contract: Lipschitz constants held below 1, and the fixed points that this gives (book sec. 13.1)."""

from collections.abc import Callable, Iterator, Sequence
from math import inf, isfinite, prod, sqrt

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils import parametrize

from parnassus.layers.activations import Activation
from parnassus.layers.dense import mlp

STEEPEST_SWISH = 1.0998393194985352
"""The largest slope of x σ(x), reached at x = 2.3994."""


def lipschitz_swish(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """The swish x σ(x) over 1.0998: smooth, with slopes from −0.09 to 1, so it never expands (Chen et al. 2019)."""
    return x * x.sigmoid() / STEEPEST_SWISH


class SpectralBound(nn.Module):
    """Weights shrunk until their layer has a Lipschitz constant of at most `bound`; smaller ones stay as they are.

        Ŵ = W / max(1, ‖W‖ / bound),   ‖W‖ = largest singular value

    It is the parametrisation of a layer's weight. The norm is exact, where power iteration would find a number that
    is too small and promise a contraction that is none; nothing is remembered between calls, so that a map and its
    inverse see the same weights. The kernel of a convolution is flattened to a matrix of outputs × (inputs · taps),
    and its norm multiplied by √taps: no input reaches more than `taps` outputs, if the padding is with zeros.
    """

    def __init__(self, bound: float) -> None:
        super().__init__()
        if not bound > 0:
            raise ValueError(f"a Lipschitz bound must be positive; got bound={bound}")
        self.bound = bound

    def forward(self, weight: Float[Tensor, "rows columns *taps"]) -> Float[Tensor, "rows columns *taps"]:
        return weight / (spectral_norm(weight) / self.bound).clamp(min=1.0)

    def extra_repr(self) -> str:
        return f"at most {self.bound:.4g}"


def spectral_norm(weight: Float[Tensor, "rows columns *taps"]) -> Float[Tensor, ""]:
    """The largest singular value of a dense layer; for a convolution with zero padding an upper bound of it."""
    largest: Tensor = torch.linalg.matrix_norm(weight.flatten(1), ord=2)
    return largest * sqrt(prod(weight.shape[2:]))


def contract(network: nn.Sequential, lipschitz: float, *, stretch: float = 1.0) -> nn.Sequential:
    """The network with every layer that has a weight held to a bound, so that together they do not exceed `lipschitz`.

        Lip(g) ≤ Π_l ‖W_l‖ ≤ lipschitz

    It holds if the nonlinearities between do not expand: tanh, sin, ReLU, ELU and `lipschitz_swish` do not, SiLU and
    GELU do. All layers have the same share, but what the first may `stretch` more, the last must shrink again: that
    keeps the constant and lets the network bend more sharply.
    """
    layers = [layer for layer in network if isinstance(getattr(layer, "weight", None), Tensor)]
    if not layers or not lipschitz > 0 or not stretch > 0:
        raise ValueError(
            "need a layer with a weight, a positive Lipschitz constant and a positive stretch; got "
            f"{len(layers)} layers, lipschitz={lipschitz}, stretch={stretch}"
        )
    bounds = [lipschitz ** (1 / len(layers))] * len(layers)
    bounds[0] *= stretch
    bounds[-1] /= stretch
    for layer, bound in zip(layers, bounds, strict=True):
        parametrize.register_parametrization(layer, "weight", SpectralBound(bound))
    return network


def contractive_mlp(
    sizes: Sequence[int], *, lipschitz: float = 0.9, stretch: float = 1.0, activation: Activation = lipschitz_swish
) -> nn.Sequential:
    """A dense network with ‖g(a) − g(b)‖ ≤ lipschitz ‖a − b‖ for all inputs (book sec. 13.1)."""
    return contract(mlp(sizes, activation=activation), lipschitz, stretch=stretch)


def fixed_point_path(
    branch: Callable[[Tensor], Tensor], x: Float[Tensor, "batch *event"]
) -> Iterator[Float[Tensor, "batch *event"]]:
    """z_0 = x, z_{k+1} = x − g(z_k): towards the z with z + g(z) = x, for ever.

    If Lip(g) = L < 1, then ‖z_k − z‖ ≤ Lᵏ ‖z_0 − z‖ (Banach's fixed point).
    """
    z = x
    while True:
        yield z
        z = x - branch(z)


@torch.no_grad()
def solve_residual(
    branch: Callable[[Tensor], Tensor], x: Float[Tensor, "batch *event"], *, most: int = 300
) -> Float[Tensor, "batch *event"]:
    """The z with z + g(z) = x, to the precision of its numbers, by at most `most` fixed-point iterations."""
    precision = torch.finfo(x.dtype).eps
    path = fixed_point_path(branch, x)
    z = previous = next(path)
    moved = before = inf
    with parametrize.cached():  # weights are bounded once, not at every iteration
        for _ in range(most):
            previous, z = z, next(path)
            distance = _largest(z - previous)
            if not isfinite(distance):
                break  # it ran away: say by which steps
            before, moved = moved, distance
            if moved <= 2 * precision * _largest(z):
                return z
    if moved <= sqrt(precision) * min(_largest(z), _largest(previous)):
        return z  # rounding keeps it moving: g is evaluated to no better
    raise ValueError(
        "a residual map is undone only if its branch contracts (Lipschitz constant below 1); at the end "
        f"of {most} iterations a step still moves by {moved:.2g}, {moved / before:.3g} times the step before"
    )


def _largest(z: Tensor) -> float:
    return float(z.abs().max()) if z.numel() else 0.0
