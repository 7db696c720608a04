"""A network description with its finite module, NNGP kernel and tangent kernel (book secs. 15.3, 15.4)."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import prod, sqrt
from typing import NamedTuple, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor, nn

from parnassus.arrays import accepts_arrays
from parnassus.errors import check_non_negative
from parnassus.kernels.infinite_width.kernel_state import KernelState
from parnassus.kernels.infinite_width.layer import Activation, CompositeLayer, Dense, Layer, Shape
from parnassus.kernels.infinite_width.nonlinearity import Nonlinearity, normaliser

BLOCK = 256
"""Rows and columns of a kernel computed together on a CPU, chosen for its cache."""
DEVICE_BLOCK = 8_192
"""Rows and columns computed together on an accelerator: 256 MiB per block in single precision."""

Tile: TypeAlias = tuple[int, int]
"""The first row and the first column of a block."""


class Kernels(NamedTuple):
    """Σ(x, x'), the covariance of the outputs at random weights, and Θ(x, x'), the tangent kernel."""

    nngp: Float[Tensor, "left right"]
    ntk: Float[Tensor, "left right"]


@dataclass(frozen=True)
class Network:
    """A chain of layers: `network.module(shape)` at finite width, `network.kernels(x)` at infinite width."""

    layers: tuple[Layer, ...]

    def __post_init__(self) -> None:
        if not self.layers:
            raise ValueError("a network needs at least one layer")
        for layer in self.layers:
            if isinstance(layer, type) or not isinstance(layer, Layer):
                raise ValueError(f"layers must be layers of a network; got {layer!r}: {_layer_advice(layer)}")

    @property
    def mixes_positions(self) -> bool:
        return any(layer.mixes_positions for layer in self.layers)

    @property
    def needs_variances(self) -> bool:
        return any(layer.needs_variances for layer in self.layers)

    def trainable_layers(self) -> Iterator[nn.Module]:
        """The layers with trainable parameters (variances), including those inside branches."""
        for layer in self.layers:
            if isinstance(layer, nn.Module):
                yield layer
            elif isinstance(layer, CompositeLayer):
                yield from layer.trainable_layers()

    def kernel(self, state: KernelState) -> KernelState:
        """Apply all layers in turn, so that a network can be used as a layer."""
        for layer in self.layers:
            state = layer.kernel(state)
        return state

    def module(self, shape: Shape, width: int = 512, *, outputs: int = 1) -> nn.Sequential:
        """A module with random weights: `width` units or channels per layer with weights, `outputs` in the last."""
        return self.build(shape, width, outputs)[0]

    def build(self, shape: Shape, width: int, outputs: int) -> tuple[nn.Sequential, Shape]:
        """The module and its output shape."""
        if width < 1 or outputs < 1:
            raise ValueError(f"width and outputs must be positive; got width={width}, outputs={outputs}")
        last = max((number for number, layer in enumerate(self.layers) if layer.has_weights), default=-1)
        parts: list[nn.Module] = []
        for number, layer in enumerate(self.layers):
            part, shape = layer.module(shape, outputs if number == last else width)
            parts.append(part)
        return nn.Sequential(*parts), shape

    @accepts_arrays
    def kernels(self, x: Float[Tensor, "n *shape"], y: Float[Tensor, "m *other"] | None = None) -> Kernels:
        """Both kernels between the rows of x and of y; without y, of x with itself."""
        nngp, ntk = self._evaluate(x, y, tangent=True)
        assert ntk is not None
        return Kernels(nngp, ntk)

    @accepts_arrays
    def nngp(self, x: Float[Tensor, "n *shape"], y: Float[Tensor, "m *other"] | None = None) -> Float[Tensor, "n m"]:
        """The NNGP kernel alone, in about half the time."""
        return self._evaluate(x, y, tangent=False)[0]

    def _evaluate(self, x: Tensor, y: Tensor | None, *, tangent: bool) -> tuple[Tensor, Tensor | None]:
        symmetric = y is None
        y = x if y is None else y
        nngp = x.new_empty(len(x), len(y))
        ntk = torch.empty_like(nngp) if tangent else None
        block, mixes, within = self._block(x), self.mixes_positions, self._needs_within_images()

        def fill(tile: Tile) -> None:
            top, start = tile
            rows, columns = slice(top, top + block), slice(start, start + block)
            left = x[rows]
            right = left if symmetric and start == top else y[columns]
            state = self.kernel(
                KernelState.from_inputs(left, right, tangent=tangent, all_positions=mixes, within_images=within)
            )
            if state.position_axes:
                raise ValueError("outputs must be vectors; got images: end with Flatten or GlobalAveragePooling")
            for whole, part in ((nngp, state.nngp), (ntk, state.ntk)):
                if whole is not None and part is not None:
                    whole[rows, columns] = part
                    if symmetric and start > top:
                        whole[columns, rows] = part.mT

        tops = range(0, len(x), block)
        tiles = [(top, start) for top in tops for start in range(top if symmetric else 0, len(y), block)]
        parameters = (parameter for layer in self.trainable_layers() for parameter in layer.parameters())
        graph = torch.is_grad_enabled() and any(part.requires_grad for part in (x, y, *parameters))
        if x.is_cpu and not graph:
            _fill_in_parallel(fill, tiles)
        else:
            for tile in tiles:
                fill(tile)
        return nngp, ntk

    def _needs_within_images(self) -> bool:
        """Whether covariances within images are needed: variances are used after positions were mixed."""
        mixing = [number for number, layer in enumerate(self.layers) if layer.mixes_positions]
        return bool(mixing) and any(layer.needs_variances for layer in self.layers[mixing[0] :])

    def _block(self, x: Tensor) -> int:
        """Rows per block, such that a block with all its positions is as large as one of `BLOCK` vectors."""
        positions = prod(x.shape[2:]) ** (2 if self.mixes_positions else 1)
        side = BLOCK if x.is_cpu else DEVICE_BLOCK
        return max(1, int(side / sqrt(positions)))


def _layer_advice(given: object) -> str:
    if isinstance(given, type):
        return f"create one with {given.__name__}(…)"
    if isinstance(given, Nonlinearity):
        return f"wrap it as Activation({type(given).__name__}())"
    return "use those of parnassus.kernels, such as Dense() and Activation(ReLU())"


def _fill_in_parallel(fill: Callable[[Tile], None], tiles: Sequence[Tile]) -> None:
    """Compute one tile per core, which avoids synchronising all cores after every operation."""
    cores, inference = torch.get_num_threads(), torch.is_inference_mode_enabled()
    if cores == 1 or len(tiles) == 1:
        for tile in tiles:
            fill(tile)
        return

    def fill_single_threaded(tile: Tile) -> None:
        torch.set_num_threads(1)  # for this worker
        with torch.inference_mode(inference), torch.set_grad_enabled(False):
            fill(tile)

    try:
        with ThreadPoolExecutor(cores) as pool:
            list(pool.map(fill_single_threaded, tiles))  # list, so that errors are raised here
    finally:
        torch.set_num_threads(cores)  # inherited by threads started later


def fully_connected(depth: int, nonlinearity: Nonlinearity, *, bias: float = 0.0) -> Network:
    """The book's network of L = `depth` hidden layers, all weights from N(0, 1).

        f^l = W^l g^{l−1},   g^l = √(c_σ / d_l) σ(f^l),   g⁰ = x,   f = W^{L+1} g^L        (book eqs. 15.28-15.32)

    The variance of every bias is `bias`; the book has none.
    """
    check_non_negative(depth=depth)
    gain = normaliser(nonlinearity)
    layers: list[Layer] = [Dense(bias=bias, divide=False)]
    for _ in range(depth):
        layers += [Activation(nonlinearity), Dense(gain, bias)]
    return Network(tuple(layers))
