"""One description of a network: its finite module, its NNGP kernel and its tangent kernel (book secs. 15.3, 15.4)."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import prod, sqrt
from typing import NamedTuple, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor, nn

from parnassus.kernels.layer import Activation, Dense, Holder, Layer, Shape
from parnassus.kernels.nonlinearity import Nonlinearity, normaliser
from parnassus.kernels.pair import Pair

BLOCK = 256
"""Rows and columns of a kernel that are worked out together: what a processor's cache holds."""
DEVICE_BLOCK = 8_192
"""The same on an accelerator, which wants long arrays: 256 MiB each in single precision."""

Tile: TypeAlias = tuple[int, int]
"""The first row and the first column of a block."""


class Kernels(NamedTuple):
    """Σ(x, x'), the covariance of the outputs at random weights, and Θ(x, x'), the tangent kernel."""

    nngp: Float[Tensor, "left right"]
    ntk: Float[Tensor, "left right"]


@dataclass(frozen=True)
class Network:
    """A chain of layers. `network.module(shape)` is it at finite width, `network.kernels(x)` at infinite width."""

    layers: tuple[Layer, ...]

    def __post_init__(self) -> None:
        if not self.layers:
            raise ValueError("a network needs at least one layer")

    @property
    def mixes_places(self) -> bool:
        return any(layer.mixes_places for layer in self.layers)

    @property
    def needs_variances(self) -> bool:
        return any(layer.needs_variances for layer in self.layers)

    def learned(self) -> Iterator[nn.Module]:
        """The layers that have parameters, here and in its branches: variances, to be learned."""
        for layer in self.layers:
            if isinstance(layer, nn.Module):
                yield layer
            elif isinstance(layer, Holder):
                yield from layer.learned()

    def kernel(self, pair: Pair) -> Pair:
        """All layers, one after the other; so a network is a layer itself."""
        for layer in self.layers:
            pair = layer.kernel(pair)
        return pair

    def module(self, shape: Shape, width: int = 512, *, outputs: int = 1) -> nn.Sequential:
        """Random weights; each layer that has weights has `width` units or channels, the last of them `outputs`."""
        return self.built(shape, width, outputs)[0]

    def built(self, shape: Shape, width: int, outputs: int) -> tuple[nn.Sequential, Shape]:
        """The module, and the shape of what it gives."""
        if width < 1 or outputs < 1:
            raise ValueError(f"there must be units; got width={width}, outputs={outputs}")
        last = max((number for number, layer in enumerate(self.layers) if layer.has_weights), default=-1)
        parts: list[nn.Module] = []
        for number, layer in enumerate(self.layers):
            part, shape = layer.module(shape, outputs if number == last else width)
            parts.append(part)
        return nn.Sequential(*parts), shape

    def kernels(self, x: Float[Tensor, "n *shape"], y: Float[Tensor, "m *other"] | None = None) -> Kernels:
        """Both kernels between the rows of x and of y; without y, of x with itself."""
        nngp, ntk = self._filled(x, y, tangent=True)
        assert ntk is not None
        return Kernels(nngp, ntk)

    def nngp(self, x: Float[Tensor, "n *shape"], y: Float[Tensor, "m *other"] | None = None) -> Float[Tensor, "n m"]:
        """The covariance alone, which takes about half the time."""
        return self._filled(x, y, tangent=False)[0]

    def _filled(self, x: Tensor, y: Tensor | None, *, tangent: bool) -> tuple[Tensor, Tensor | None]:
        own = y is None
        y = x if y is None else y
        nngp = x.new_empty(len(x), len(y))
        ntk = torch.empty_like(nngp) if tangent else None
        block, mixes, within = self._block(x), self.mixes_places, self._looks_within()

        def fill(tile: Tile) -> None:
            top, start = tile
            rows, columns = slice(top, top + block), slice(start, start + block)
            left = x[rows]
            right = left if own and start == top else y[columns]
            pair = self.kernel(Pair.of_inputs(left, right, tangent=tangent, every_place=mixes, within=within))
            if pair.places:
                raise ValueError("the outputs must be vectors; got images: end with Flatten or GlobalAveragePooling")
            for whole, part in ((nngp, pair.nngp), (ntk, pair.ntk)):
                if whole is not None and part is not None:
                    whole[rows, columns] = part
                    if own and start > top:
                        whole[columns, rows] = part.mT

        tops = range(0, len(x), block)
        tiles = [(top, start) for top in tops for start in range(top if own else 0, len(y), block)]
        learned = (parameter for layer in self.learned() for parameter in layer.parameters())
        graph = torch.is_grad_enabled() and any(part.requires_grad for part in (x, y, *learned))
        if x.is_cpu and not graph:
            _on_every_core(fill, tiles)
        else:
            for tile in tiles:
                fill(tile)
        return nngp, ntk

    def _looks_within(self) -> bool:
        """Whether places of one image are to be compared: variances are needed once places were mixed."""
        mixing = [number for number, layer in enumerate(self.layers) if layer.mixes_places]
        return bool(mixing) and any(layer.needs_variances for layer in self.layers[mixing[0] :])

    def _block(self, x: Tensor) -> int:
        """So many rows that a block of pairs of examples and places is as large as `BLOCK` rows of vectors."""
        places = prod(x.shape[2:]) ** (2 if self.mixes_places else 1)
        side = BLOCK if x.is_cpu else DEVICE_BLOCK
        return max(1, int(side / sqrt(places)))


def _on_every_core(fill: Callable[[Tile], None], tiles: Sequence[Tile]) -> None:
    """A tile to a core, not every operation on a tile to all cores, which would wait for one another each time."""
    cores, inference = torch.get_num_threads(), torch.is_inference_mode_enabled()
    if cores == 1 or len(tiles) == 1:
        for tile in tiles:
            fill(tile)
        return

    def alone(tile: Tile) -> None:
        torch.set_num_threads(1)  # of this worker
        with torch.inference_mode(inference), torch.set_grad_enabled(False):
            fill(tile)

    try:
        with ThreadPoolExecutor(cores) as pool:
            list(pool.map(alone, tiles))  # so that errors are raised here
    finally:
        torch.set_num_threads(cores)  # which threads of later begin with


def fully_connected(depth: int, nonlinearity: Nonlinearity, *, bias: float = 0.0) -> Network:
    """The book's network of L = `depth` hidden layers, all weights from N(0, 1).

        f^l = W^l g^{l−1},   g^l = √(c_σ / d_l) σ(f^l),   g⁰ = x,   f = W^{L+1} g^L        (book eqs. 15.28-15.32)

    The variance of every bias is `bias`; the book has none.
    """
    if depth < 0:
        raise ValueError(f"depth must not be negative; got depth={depth}")
    gain = normaliser(nonlinearity)
    layers: list[Layer] = [Dense(bias=bias, divide=False)]
    for _ in range(depth):
        layers += [Activation(nonlinearity), Dense(gain, bias)]
    return Network(tuple(layers))
