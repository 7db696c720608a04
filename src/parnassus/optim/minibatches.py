"""Which examples a stochastic gradient sees: policies that deal row numbers into mini-batches (book sec. 1.3).

Each policy yields index tensors for `epochs` passes. `count` examples in batches of `batch` make ⌈count / batch⌉
batches a pass; the last one is short when the division leaves a rest, and each of its examples then weighs
batch / rest times as much as another in the average of batch gradients.
"""

from collections.abc import Iterator
from math import ceil

import torch
from jaxtyping import Int
from torch import Generator, Tensor


def in_order(count: int, batch: int, *, epochs: int = 1) -> Iterator[Int[Tensor, " rows"]]:
    """The rows as they lie, again and again: what a loader without shuffling does (book sec. 1.4)."""
    _check(count, batch)
    for _ in range(epochs):
        yield from torch.split(torch.arange(count), batch)


def partition_once(
    count: int, batch: int, *, epochs: int = 1, generator: Generator | None = None
) -> Iterator[Int[Tensor, " rows"]]:
    """One random partition at the very beginning, dealt alike in every epoch (book sec. 1.3)."""
    _check(count, batch)
    batches = torch.split(torch.randperm(count, generator=generator), batch)
    for _ in range(epochs):
        yield from batches


def reshuffle(
    count: int, batch: int, *, epochs: int = 1, generator: Generator | None = None
) -> Iterator[Int[Tensor, " rows"]]:
    """A fresh random partition each epoch: what torch calls `shuffle=True`."""
    _check(count, batch)
    for _ in range(epochs):
        yield from torch.split(torch.randperm(count, generator=generator), batch)


def with_replacement(
    count: int, batch: int, *, epochs: int = 1, generator: Generator | None = None
) -> Iterator[Int[Tensor, " rows"]]:
    """Every row of every batch drawn anew from all: full and independent batches, but no promise to see every row."""
    _check(count, batch)
    for _ in range(epochs * ceil(count / batch)):
        yield torch.randint(count, (batch,), generator=generator)


def _check(count: int, batch: int) -> None:
    if not 1 <= batch <= count:
        raise ValueError(f"batch must lie between 1 and count; got batch={batch}, count={count}")
