"""Tensors in memory, and batches of them that are pure functions of (seed, step).

The data are tensors on the device, so a batch costs one slice of a permutation and one indexing operation. The
permutation of an epoch depends on (seed, epoch) only, so a resumed run uses the same batches as an uninterrupted one.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import torch
from jaxtyping import Int, Shaped
from torch import Tensor

from parnassus.data.errors import DataError
from parnassus.data.preparation.table_preparation import TablePreparation
from parnassus.data.seeds import derive_seed
from parnassus.errors import check_non_negative
from parnassus.short_repr import short_repr

Batch = TypeVar("Batch")
Mapped = TypeVar("Mapped")
Pair = tuple[Tensor, Tensor]


class Batches(Generic[Batch]):
    """`steps` batches of `size` rows out of `rows`; every epoch is a new permutation.

    `select` maps row numbers to a batch. A size larger than the data selects all rows. The smaller last batch of an
    epoch is dropped, unless `partial`.

    >>> batches = Batches(lambda rows: rows, 10, size=4, steps=3)
    >>> [len(batch) for batch in batches]
    [4, 4, 4]
    """

    def __init__(
        self,
        select: Callable[[Int[Tensor, " size"]], Batch],
        rows: int,
        *,
        size: int,
        steps: int,
        shuffle: bool = True,
        partial: bool = False,
        device: torch.device | None = None,
    ) -> None:
        if rows < 1:
            raise ValueError(f"batches need at least one row; got rows={rows}")
        if size < 1 or steps < 0:
            raise ValueError(f"size must be positive and steps not negative; got size={size}, steps={steps}")
        self.rows, self.size, self.steps = rows, min(size, rows), steps
        self.steps_per_epoch = -(-rows // self.size) if partial else rows // self.size
        self._requested_size, self._partial = size, partial
        self._select, self._shuffle, self._device = select, shuffle, device
        self._cached: tuple[tuple[int, int], Tensor] | None = None

    def __len__(self) -> int:
        return self.steps

    def __repr__(self) -> str:
        return f"Batches({self.steps} batches of {self.size} of {self.rows} rows)"

    def __iter__(self) -> Iterator[Batch]:
        return (self.at(step) for step in range(self.steps))

    def at(self, step: int, seed: int = 0, rank: int = 0, world_size: int = 1) -> Batch:
        """The batch of a step; each of `world_size` processes gets a contiguous part, in order of rank."""
        check_non_negative(step=step)
        epoch, index = divmod(step, self.steps_per_epoch)
        start = index * self.size
        stop = min(start + self.size, self.rows)
        if world_size > 1:
            start, stop = self._slice_of_rank(start, stop, rank, world_size)
        return self._select(self._order(seed, epoch)[start:stop])

    def map(self, function: Callable[[Batch], Mapped]) -> "Batches[Mapped]":
        """The same batches with a function applied to each, such as `batches.map(torch.bernoulli)`.

        Random numbers in `function` are reproducible too, because a run seeds the generator before each batch.
        """
        select = self._select
        return Batches(
            lambda rows: function(select(rows)),
            self.rows,
            size=self._requested_size,
            steps=self.steps,
            shuffle=self._shuffle,
            partial=self._partial,
            device=self._device,
        )

    def _slice_of_rank(self, start: int, stop: int, rank: int, world_size: int) -> tuple[int, int]:
        if self._requested_size % world_size:
            raise ValueError(
                f"size must be a multiple of world_size; got size={self._requested_size}, world_size={world_size}"
            )
        if stop - start < world_size:
            raise ValueError(
                f"a batch must have at least one row per process; got rows={stop - start}, world_size={world_size}"
            )
        if not 0 <= rank < world_size:
            raise ValueError(f"rank must be from 0 to world_size - 1; got rank={rank}, world_size={world_size}")
        count = stop - start  # a smaller batch need not be divisible: the parts differ by at most one row
        return start + rank * count // world_size, start + (rank + 1) * count // world_size

    def _order(self, seed: int, epoch: int) -> Tensor:
        key = (seed, epoch if self._shuffle else 0)
        if self._cached is None or self._cached[0] != key:
            order = permutation(self.rows, seed, epoch) if self._shuffle else torch.arange(self.rows)
            self._cached = (key, order.to(self._device))
        return self._cached[1]


@dataclass(frozen=True, eq=False)
class Split:
    """Examples `x`, one per row, with their targets `y`, if any.

    >>> split = Split(torch.arange(6.0).view(3, 2), torch.tensor([0, 1, 0]))
    >>> split.take(2).y.tolist()
    [0, 1]
    """

    x: Shaped[Tensor, "rows ..."]
    y: Tensor | None = None

    __repr__ = short_repr

    def __post_init__(self) -> None:
        if self.y is not None and len(self.y) != len(self.x):
            raise ValueError(f"x and y must have the same number of rows; got {len(self.x)} and {len(self.y)}")

    def __len__(self) -> int:
        return len(self.x)

    def to(self, device: torch.device | str) -> "Split":
        return Split(self.x.to(device), None if self.y is None else self.y.to(device))

    def take(self, count: int) -> "Split":
        """The first `count` rows."""
        return Split(self.x[:count], None if self.y is None else self.y[:count])

    def batches(self, size: int, steps: int, *, shuffle: bool = True, partial: bool = False) -> Batches[Tensor]:
        """Batches of x without targets."""
        x = self.x
        return Batches(
            lambda rows: x.index_select(0, rows),
            len(x),
            size=size,
            steps=steps,
            shuffle=shuffle,
            partial=partial,
            device=x.device,
        )

    def pairs(self, size: int, steps: int, *, shuffle: bool = True, partial: bool = False) -> Batches[Pair]:
        """Batches of (x, y)."""
        x, y = self.x, self.y
        if y is None:
            raise ValueError("pairs need labels; this split has none (y is None)")
        return Batches(
            lambda rows: (x.index_select(0, rows), y.index_select(0, rows)),
            len(x),
            size=size,
            steps=steps,
            shuffle=shuffle,
            partial=partial,
            device=x.device,
        )


@dataclass(frozen=True, eq=False)
class Dataset:
    """A named train and test split, the names of its classes, and its origin.

    A table also has the names of its feature columns and of its target column; one that was read from a CSV file, the
    preparation that turns its cells into features.

    >>> digits = load_digits()
    >>> digits.shape, len(digits.train), digits.classes[:3]
    ((1, 8, 8), 1437, ('0', '1', '2'))
    """

    name: str
    train: Split
    test: Split
    classes: tuple[str, ...] = ()
    about: str = ""
    columns: tuple[str, ...] = ()
    target: str = ""
    table: TablePreparation | None = None

    __repr__ = short_repr

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one example."""
        return tuple(self.train.x.shape[1:])

    def to(self, device: torch.device | str) -> "Dataset":
        return replace(self, train=self.train.to(device), test=self.test.to(device))

    def map(self, transform: Callable[[Tensor], Tensor]) -> "Dataset":
        """The data set with all examples transformed; labels are kept."""
        train, test = (replace(split, x=transform(split.x)) for split in (self.train, self.test))
        return replace(self, train=train, test=test)


def permutation(rows: int, seed: int, epoch: int) -> Int[Tensor, " rows"]:
    """The order of the rows in an epoch: a pure function of (seed, epoch), sampled on the CPU on every device."""
    return torch.randperm(rows, generator=torch.Generator().manual_seed(derive_seed(derive_seed(seed) + epoch)))


def first_of_each_class(labels: Int[Tensor, " rows"], count: int) -> Int[Tensor, " chosen"]:
    """Row numbers, in order, of the first `count` rows of every class."""
    one_hot = torch.nn.functional.one_hot(labels)
    rank = (one_hot.cumsum(0) * one_hot).sum(1)  # 1 for the first row of its class, 2 for the second, …
    if int(one_hot.sum(0).min()) < count:
        raise DataError(f"every class must have at least {count} rows; one has {int(one_hot.sum(0).min())}.")
    return (rank <= count).nonzero()[:, 0]
