"""Mini-batches: indices, frequencies and sizes."""

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor

from parnassus.optim import batches_with_replacement, fixed_partition_batches, sequential_batches, shuffled_batches

SAMPLERS: list[Callable[..., Iterator[Tensor]]] = [sequential_batches, fixed_partition_batches, shuffled_batches]


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize(("count", "batch", "last"), [(12, 4, 4), (13, 4, 1), (5, 5, 5)])
def test_epoch_is_a_partition(sampler: Callable[..., Iterator[Tensor]], count: int, batch: int, last: int) -> None:
    batches = list(sampler(count, batch, epochs=1))
    assert torch.cat(batches).sort().values.tolist() == list(range(count))
    assert [len(rows) for rows in batches[:-1]] == [batch] * (len(batches) - 1)
    assert len(batches[-1]) == last


def test_same_generator_gives_the_same_batches() -> None:
    for sampler in (fixed_partition_batches, shuffled_batches, batches_with_replacement):
        first, second = (
            torch.cat(list(sampler(50, 8, epochs=2, generator=torch.Generator().manual_seed(3)))) for _ in range(2)
        )
        assert torch.equal(first, second)


def test_sampling_with_replacement_is_uniform() -> None:
    rows = torch.cat(list(batches_with_replacement(10, 10, epochs=2_000, generator=torch.Generator().manual_seed(0))))
    counts = torch.bincount(rows, minlength=10).double()
    chi_squared = ((counts - 2_000).square() / 2_000).sum()
    assert float(chi_squared) < 27.9  # 99.9 % of χ² with 9 degrees of freedom


@pytest.mark.parametrize("batch", [0, 6])
def test_invalid_batch_size_raises_value_error(batch: int) -> None:
    with pytest.raises(ValueError, match=f"got batch_size={batch}, num_examples=5"):
        next(shuffled_batches(5, batch))
