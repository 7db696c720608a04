"""Kernels in blocks: worked out on several devices at once, or multiplied without ever being held (book sec. 15.1)."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from sys import maxsize
from typing import TypeAlias, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor

Function: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""Points (n, …) and (m, …) in, their kernel (n, m) out: `RBF()`, `network.nngp`."""
Tile: TypeAlias = tuple[slice, slice]
Done = TypeVar("Done")
BLOCK = 2_048


@dataclass(frozen=True, eq=False)
class KernelMatrix:
    """K(x_i, y_j) for all i and j, of which `block` rows and columns at a time exist; without y, of x with itself.

    What a solver asks of a symmetric matrix, it gives as a tensor does: `@`, one row `matrix[i]`, `diagonal()`. With
    `devices`, each takes its share of the blocks; results come back to where x is. Of x with itself only blocks on and
    above the diagonal are worked out. Nothing here is differentiated.
    """

    kernel: Function
    x: Float[Tensor, "n *shape"]
    y: Float[Tensor, "m *other"] | None = None
    block: int = BLOCK
    devices: Sequence[torch.device] = ()

    def __post_init__(self) -> None:
        if self.block < 1:
            raise ValueError(f"a block needs at least one row; got block={self.block}")
        left, right = (tuple(side.shape[1:]) for side in (self.x, self.right))
        if left != right:
            raise ValueError(f"points on both sides must have the same features; got shapes {left} and {right}")

    @property
    def right(self) -> Float[Tensor, "m *other"]:
        """The points of the columns."""
        return self.x if self.y is None else self.y

    @property
    def shape(self) -> torch.Size:
        return torch.Size((len(self.x), len(self.right)))

    @property
    def bytes(self) -> int:
        """What the whole matrix would take."""
        return len(self.x) * len(self.right) * self.x.element_size()

    def double(self) -> "KernelMatrix":
        """The same matrix from points in float64."""
        return replace(self, x=self.x.double(), y=None if self.y is None else self.y.double())

    def __getitem__(self, row: int) -> Float[Tensor, " m"]:
        with torch.no_grad():
            return self.kernel(self.x[row][None], self.right)[0]

    def __matmul__(self, v: Float[Tensor, "m *outputs"]) -> Float[Tensor, "n *outputs"]:
        """K v, a block at a time; memory for one block and the product on each device."""
        columns = v.reshape(len(v), -1)

        def share(device: torch.device, tiles: Sequence[Tile]) -> Tensor:
            mine = columns.to(device)
            total = mine.new_zeros(len(self.x), mine.shape[1])
            for rows, places in tiles:
                part = self._part(device, rows, places)
                total[rows] += part @ mine[places]
                if self.y is None and places.start > rows.start:
                    total[places] += part.mT @ mine[rows]
            return total

        sums = [total.to(v.device) for total in self._spread(share)]
        return torch.stack(sums).sum(0).reshape(len(self.x), *v.shape[1:])

    def diagonal(self) -> Float[Tensor, " n"]:
        """K(x_i, x_i), from small blocks around the diagonal."""
        if self.y is not None:
            raise ValueError("only the kernel of points with themselves has a diagonal; got two sets of points")
        with torch.no_grad():
            return torch.cat([self.kernel(part, part).diagonal() for part in self.x.split(64)])

    def whole(self) -> Float[Tensor, "n m"]:
        """The matrix itself, if memory holds it; beside it there is never more than one block for each device."""
        _demand_room(self)
        filled = self.x.new_empty(self.shape)

        def share(device: torch.device, tiles: Sequence[Tile]) -> None:
            for rows, places in tiles:
                part = self._part(device, rows, places)
                filled[rows, places] = part
                if self.y is None and places.start > rows.start:
                    filled[places, rows] = part.mT

        self._spread(share)
        return filled

    def _part(self, device: torch.device, rows: slice, places: slice) -> Tensor:
        return self.kernel(self.x[rows].to(device), self.right[places].to(device))

    def _spread(self, share: Callable[[torch.device, Sequence[Tile]], Done]) -> list[Done]:
        """`share(device, tiles)` on each device, side by side."""
        devices = list(self.devices) or [self.x.device]
        tiles = self._tiles()

        def work(number: int) -> Done:
            with torch.no_grad():  # threads begin with gradients switched on
                return share(devices[number], tiles[number :: len(devices)])

        if len(devices) == 1:
            return [work(0)]
        with ThreadPoolExecutor(len(devices)) as threads:
            return list(threads.map(work, range(len(devices))))

    def _tiles(self) -> list[Tile]:
        rows, columns = (range(0, size, self.block) for size in self.shape)
        return [
            (slice(top, top + self.block), slice(start, start + self.block))
            for top in rows
            for start in columns
            if self.y is not None or start >= top
        ]


def blocked(
    kernel: Function,
    x: Float[Tensor, "n *shape"],
    y: Float[Tensor, "m *other"] | None = None,
    *,
    block: int = BLOCK,
    devices: Sequence[torch.device] = (),
) -> Float[Tensor, "n m"]:
    """K(x_i, y_j) in blocks, spread over `devices`: `kernel(x, y)` with little memory beside the result."""
    return KernelMatrix(kernel, x, y, block, devices).whole()


def free_bytes(device: torch.device) -> int:
    """The memory that a new tensor on this device may take; of a host that does not say, no limit is known."""
    if device.type == "cuda":
        reserved = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(torch.cuda.mem_get_info(device)[0] + reserved)
    told = Path("/proc/meminfo")
    lines = told.read_text().splitlines() if told.exists() else []
    available = (int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
    return 1024 * next(available, maxsize // 1024)


def _demand_room(matrix: KernelMatrix) -> None:
    device = matrix.x.device
    free = free_bytes(device)
    if matrix.bytes > free:
        rows, columns = matrix.shape
        kind = str(matrix.x.dtype).removeprefix("torch.")
        raise ValueError(
            f"a kernel of {rows} × {columns} numbers in {kind} takes {matrix.bytes} bytes "
            f"({matrix.bytes / 1e9:.1f} GB), and {free / 1e9:.1f} GB are free on {device}: keep it as a KernelMatrix, "
            "of which one block is there at a time, and solve by ConjugateGradients; or compute in float32 for half "
            "of it, or take fewer rows"
        )
