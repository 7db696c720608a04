"""Kernel matrices in blocks: evaluated on several devices, or multiplied without being stored (book sec. 15.1)."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from sys import maxsize
from typing import TypeAlias, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.errors import check_positive

KernelFunction: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""Maps points (n, …) and (m, …) to their kernel (n, m), such as `RBFKernel()` or `network.nngp`."""
Tile: TypeAlias = tuple[slice, slice]
Result = TypeVar("Result")
BLOCK = 2_048


@dataclass(frozen=True, eq=False)
class KernelMatrix:
    """The lazy matrix K(x_i, y_j), of which only a `block` × `block` tile exists at a time; y defaults to x.

    It supports what solvers need of a symmetric matrix: `@`, a row `matrix[i]`, `diagonal()`. With several `devices`,
    each computes a part of the tiles, and results return to the device of x. Without y only tiles on and above the
    diagonal are computed. Not differentiable.

    >>> matrix = KernelMatrix(RBFKernel(), torch.zeros(100, 2))
    >>> matrix.shape
    torch.Size([100, 100])
    """

    kernel: KernelFunction
    x: Float[Tensor, "n *shape"]
    y: Float[Tensor, "m *other"] | None = None
    block: int = BLOCK
    devices: Sequence[torch.device] = ()

    def __post_init__(self) -> None:
        check_positive(block=self.block)
        left, right = (tuple(side.shape[1:]) for side in (self.x, self.right))
        if left != right:
            raise ValueError(f"x and y must have the same features; got shapes {left} and {right}")

    @property
    def right(self) -> Float[Tensor, "m *other"]:
        """The points of the columns, y or x."""
        return self.x if self.y is None else self.y

    @property
    def shape(self) -> torch.Size:
        return torch.Size((len(self.x), len(self.right)))

    @property
    def nbytes(self) -> int:
        """Memory that the full matrix would take, in bytes."""
        return len(self.x) * len(self.right) * self.x.element_size()

    def double(self) -> "KernelMatrix":
        """The matrix from points in float64."""
        return replace(self, x=self.x.double(), y=None if self.y is None else self.y.double())

    def __getitem__(self, row: int) -> Float[Tensor, " m"]:
        with torch.no_grad():
            return self.kernel(self.x[row][None], self.right)[0]

    def __matmul__(self, v: Float[Tensor, "m *outputs"]) -> Float[Tensor, "n *outputs"]:
        """K v, one tile at a time, with memory for one tile and the product on each device."""
        columns = v.reshape(len(v), -1)

        def multiply(device: torch.device, tiles: Sequence[Tile]) -> Tensor:
            local = columns.to(device)
            total = local.new_zeros(len(self.x), local.shape[1])
            for rows, cols in tiles:
                part = self._evaluate(device, rows, cols)
                total[rows] += part @ local[cols]
                if self.y is None and cols.start > rows.start:
                    total[cols] += part.mT @ local[rows]
            return total

        sums = [total.to(v.device) for total in self._run_on_devices(multiply)]
        return torch.stack(sums).sum(0).reshape(len(self.x), *v.shape[1:])

    def diagonal(self) -> Float[Tensor, " n"]:
        """K(x_i, x_i), from small blocks around the diagonal."""
        if self.y is not None:
            raise ValueError("diagonal() needs a kernel of x with itself; got two sets of points")
        with torch.no_grad():
            return torch.cat([self.kernel(part, part).diagonal() for part in self.x.split(64)])

    def to_dense(self) -> Float[Tensor, "n m"]:
        """The full matrix, with at most one more tile in memory per device."""
        _check_memory(self)
        matrix = self.x.new_empty(self.shape)

        def fill(device: torch.device, tiles: Sequence[Tile]) -> None:
            for rows, cols in tiles:
                part = self._evaluate(device, rows, cols)
                matrix[rows, cols] = part
                if self.y is None and cols.start > rows.start:
                    matrix[cols, rows] = part.mT

        self._run_on_devices(fill)
        return matrix

    def _evaluate(self, device: torch.device, rows: slice, cols: slice) -> Tensor:
        return self.kernel(self.x[rows].to(device), self.right[cols].to(device))

    def _run_on_devices(self, task: Callable[[torch.device, Sequence[Tile]], Result]) -> list[Result]:
        """`task(device, tiles)` on each device in parallel."""
        devices = list(self.devices) or [self.x.device]
        tiles = self._tiles()

        def run(index: int) -> Result:
            with torch.no_grad():  # new threads start with gradients enabled
                return task(devices[index], tiles[index :: len(devices)])

        if len(devices) == 1:
            return [run(0)]
        with ThreadPoolExecutor(len(devices)) as threads:
            return list(threads.map(run, range(len(devices))))

    def _tiles(self) -> list[Tile]:
        rows, columns = (range(0, size, self.block) for size in self.shape)
        return [
            (slice(top, top + self.block), slice(start, start + self.block))
            for top in rows
            for start in columns
            if self.y is not None or start >= top
        ]


def evaluate_in_blocks(
    kernel: KernelFunction,
    x: Float[Tensor, "n *shape"],
    y: Float[Tensor, "m *other"] | None = None,
    *,
    block: int = BLOCK,
    devices: Sequence[torch.device] = (),
) -> Float[Tensor, "n m"]:
    """`kernel(x, y)` in blocks on one or more `devices`, with little memory beyond the result."""
    return KernelMatrix(kernel, x, y, block, devices).to_dense()


def free_bytes(device: torch.device) -> int:
    """Free memory on this device in bytes; `sys.maxsize` on hosts without /proc/meminfo."""
    if device.type == "cuda":
        reserved = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(torch.cuda.mem_get_info(device)[0] + reserved)
    meminfo = Path("/proc/meminfo")
    lines = meminfo.read_text().splitlines() if meminfo.exists() else []
    available = (int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
    return 1024 * next(available, maxsize // 1024)


def _check_memory(matrix: KernelMatrix) -> None:
    device = matrix.x.device
    free = free_bytes(device)
    if matrix.nbytes > free:
        rows, columns = matrix.shape
        kind = str(matrix.x.dtype).removeprefix("torch.")
        raise ValueError(
            f"a kernel of {rows} × {columns} values in {kind} takes {matrix.nbytes} bytes "
            f"({matrix.nbytes / 1e9:.1f} GB), and {free / 1e9:.1f} GB are free on {device}: keep it as a KernelMatrix "
            "and solve by ConjugateGradients, use float32, or take fewer rows"
        )
