"""Batch sizes for model evaluations, from the memory that the model needs per input.

The size of an input does not determine it: an image of 784 values becomes 25,000 after a convolution with 32 channels.
Before many inputs are evaluated, the model is run on one and on two, and the bytes that torch allocates are counted;
the difference is the memory per input, independent of the weights.
"""

from collections.abc import Callable, Iterator

import torch
from jaxtyping import Num
from torch import Tensor
from torch.overrides import TorchFunctionMode

from parnassus.errors import check_positive
from parnassus.shapley.attributions.model_adapters import Model

MAX_BATCH_SIZE, MAX_BATCH_BYTES = 2**14, 2**26
"""Limits of a batch on a CPU: number of inputs, and their bytes, about the size of a cache."""
ACCELERATOR_FACTOR = 64
"""Factor of both limits on an accelerator."""
MIN_INPUT_FACTOR = 8
"""Lower bound of the memory per input, in sizes of an input; computations outside torch are not counted."""
UNMEASURED_INPUT_FACTOR = 64
"""Memory per input, in sizes of an input, that is assumed without measuring as long as it fits."""


def batch_size_for(run: Callable[[int], object], count: int, *, input_bytes: int, device: torch.device) -> int:
    """Batch size for `count` inputs of `input_bytes` each; `run(n)` evaluates the model on some n of them."""
    factor = 1 if device.type == "cpu" else ACCELERATOR_FACTOR
    max_size, max_bytes = MAX_BATCH_SIZE * factor, MAX_BATCH_BYTES * factor
    if min(count, max_size) * UNMEASURED_INPUT_FACTOR * input_bytes <= max_bytes:
        return max_size
    return max(1, min(max_size, max_bytes // max(MIN_INPUT_FACTOR * input_bytes, bytes_per_input(run))))


def max_batch_size(model: Model, x: Num[Tensor, "inputs *shape"], count: int) -> int:
    """Batch size for `count` inputs like the first of x."""
    input_bytes = x[:1].numel() * x.element_size()
    return batch_size_for(
        lambda n: model(x[:1].expand(n, *x.shape[1:]).clone()), count, input_bytes=input_bytes, device=x.device
    )


def limit_batch_size(model: Model, batch_size: int) -> Model:
    """The model, evaluated on at most `batch_size` inputs at a time."""
    check_positive(batch_size=batch_size)
    return lambda x: torch.cat([model(batch) for batch in x.split(batch_size)])


def batch_slices(rows: int, count: int, batch_size: int) -> Iterator[tuple[slice, slice]]:
    """Slices of rows and of the `count` items of each row, about `batch_size` in total: several rows or part of one."""
    rows_per_batch = max(1, batch_size // max(1, count))
    for row in range(0, rows, rows_per_batch):
        for start in range(0, count, batch_size):
            yield slice(row, row + rows_per_batch), slice(start, start + batch_size)


def bytes_per_input(run: Callable[[int], object]) -> int:
    """Bytes of all tensors created per input; views and tensors independent of the batch size are excluded."""
    allocated: list[int] = []
    for count in (1, 2):
        with AllocationCounter() as counter:
            run(count)
        allocated.append(counter.bytes)
    return max(0, allocated[1] - allocated[0])


class AllocationCounter(TorchFunctionMode):
    """While active, counts the bytes of the results of torch functions, except storage shared with their arguments."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0

    def __torch_function__(
        self,
        func: Callable[..., object],
        types: object,
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        result = func(*args, **(kwargs or {}))
        old = {_storage_address(each) for each in tensors_in([*args, *(kwargs or {}).values()])}
        new = {_storage_address(each): each for each in tensors_in(result)}
        self.bytes += sum(each.untyped_storage().nbytes() for address, each in new.items() if address not in old)
        return result


def tensors_in(arguments: object) -> Iterator[Tensor]:
    """All tensors among arguments and in (nested) lists and tuples of them."""
    if isinstance(arguments, Tensor):
        yield arguments
    elif isinstance(arguments, list | tuple):
        for each in arguments:
            yield from tensors_in(each)


def _storage_address(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()
