"""Mini-batch sampling: index tensors in fixed, shuffled or random order (book sec. 1.3).

Each function yields ⌈num_examples / batch_size⌉ index tensors per epoch. The last batch of an epoch may be shorter;
in an unweighted mean over batch gradients each of its examples then has a larger weight.
"""

from collections.abc import Iterator
from math import ceil

import torch
from jaxtyping import Int
from torch import Generator, Tensor


def sequential_batches(num_examples: int, batch_size: int, *, epochs: int = 1) -> Iterator[Int[Tensor, " rows"]]:
    """Batches in the order of the data, as a loader without shuffling (book sec. 1.4)."""
    _check_sizes(num_examples, batch_size)
    for _ in range(epochs):
        yield from torch.split(torch.arange(num_examples), batch_size)


def fixed_partition_batches(
    num_examples: int, batch_size: int, *, epochs: int = 1, generator: Generator | None = None
) -> Iterator[Int[Tensor, " rows"]]:
    """One random partition, used in every epoch (book sec. 1.3)."""
    _check_sizes(num_examples, batch_size)
    batches = torch.split(torch.randperm(num_examples, generator=generator), batch_size)
    for _ in range(epochs):
        yield from batches


def shuffled_batches(
    num_examples: int, batch_size: int, *, epochs: int = 1, generator: Generator | None = None
) -> Iterator[Int[Tensor, " rows"]]:
    """A new random partition each epoch, as `shuffle=True` of torch."""
    _check_sizes(num_examples, batch_size)
    for _ in range(epochs):
        yield from torch.split(torch.randperm(num_examples, generator=generator), batch_size)


def batches_with_replacement(
    num_examples: int, batch_size: int, *, epochs: int = 1, generator: Generator | None = None
) -> Iterator[Int[Tensor, " rows"]]:
    """Independent batches sampled with replacement; an epoch may miss some examples."""
    _check_sizes(num_examples, batch_size)
    for _ in range(epochs * ceil(num_examples / batch_size)):
        yield torch.randint(num_examples, (batch_size,), generator=generator)


def _check_sizes(num_examples: int, batch_size: int) -> None:
    if not 1 <= batch_size <= num_examples:
        raise ValueError(
            f"batch_size must be between 1 and num_examples; got batch_size={batch_size}, num_examples={num_examples}"
        )
