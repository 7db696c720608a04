"""How many inputs a model is asked about at once: as many as keep what it writes on the way within bounds.

The inputs alone do not tell: an image of 784 numbers is 25,000 behind a convolution with 32 channels. So before a model
is asked about many inputs it is asked about one and about two, and what torch writes meanwhile is counted: the
difference is what an input needs, whatever the weights are.
"""

from collections.abc import Callable, Iterator

import torch
from jaxtyping import Num
from torch import Tensor
from torch.overrides import TorchFunctionMode

from parnassus.shapley.model import Model

ROWS, BYTES = 2**14, 2**26
"""Inputs at once, and what they may need, where it is a processor that computes: about what its cache can hold."""
ACCELERATED = 64
"""So many times as much where it is an accelerator."""
UNSEEN = 8
"""What a model is taken to need at least, in sizes of its input: what it does outside torch is not seen."""
WIDE = 64
"""What it is taken to need, in the same unit, as long as so much would be no problem: then it is not asked."""


def together(ask: Callable[[int], object], count: int, *, size: int, device: torch.device) -> int:
    """How many of `count` inputs of `size` bytes to ask about at once; ask(n) asks about some n of them."""
    times = 1 if device.type == "cpu" else ACCELERATED
    rows, room = ROWS * times, BYTES * times
    if min(count, rows) * WIDE * size <= room:
        return rows
    return max(1, min(rows, room // max(UNSEEN * size, written_by(ask))))


def at_once(model: Model, x: Num[Tensor, "inputs *shape"], count: int) -> int:
    """How many of `count` inputs like the first of x to ask a model about at once."""
    size = x[:1].numel() * x.element_size()
    return together(lambda n: model(x[:1].expand(n, *x.shape[1:]).clone()), count, size=size, device=x.device)


def in_parts(model: Model, most: int) -> Model:
    """The same model asked about at most `most` inputs at once: for one that needs more than can be seen."""
    if most < 1:
        raise ValueError(f"a model must be asked about some inputs at once; got most={most}")
    return lambda x: torch.cat([model(some) for some in x.split(most)])


def portions(rows: int, count: int, most: int) -> Iterator[tuple[slice, slice]]:
    """Slices of rows and of what is asked of each, together at most about `most`: several rows, or parts of one."""
    several = max(1, most // max(1, count))
    for row in range(0, rows, several):
        for start in range(0, count, most):
            yield slice(row, row + several), slice(start, start + most)


def written_by(ask: Callable[[int], object]) -> int:
    """Bytes of all tensors that are made for one input: views, and what is made for any number, do not count."""
    written: list[int] = []
    for count in (1, 2):
        with Written() as seen:
            ask(count)
        written.append(seen.bytes)
    return max(0, written[1] - written[0])


class Written(TorchFunctionMode):
    """While it is on, the bytes of what torch's functions return are counted, unless they lie in what was given."""

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
        old = {_place(each) for each in tensors_in([*args, *(kwargs or {}).values()])}
        new = {_place(each): each for each in tensors_in(result)}
        self.bytes += sum(each.untyped_storage().nbytes() for place, each in new.items() if place not in old)
        return result


def tensors_in(arguments: object) -> Iterator[Tensor]:
    """All tensors among arguments and in lists of them."""
    if isinstance(arguments, Tensor):
        yield arguments
    elif isinstance(arguments, list | tuple):
        for each in arguments:
            yield from tensors_in(each)


def _place(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()
