"""Evaluation mode for the duration of a block."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from torch import Tensor, nn


@contextmanager
def evaluation_mode(model: Callable[..., Tensor]) -> Iterator[None]:
    """A module in evaluation mode within the block; afterwards each of its modules has its previous mode.

    Functions have no mode and are left as they are.
    """
    modes = [(module, module.training) for module in model.modules()] if isinstance(model, nn.Module) else []
    for module, _ in modes:
        module.training = False
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training
