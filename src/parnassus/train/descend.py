"""The training loop of methods with a single loss."""

from collections.abc import Callable, Generator
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor
from torch.optim import Optimizer

from parnassus.train.run import BatchSource, Run


@runtime_checkable
class HasLoss(Protocol):
    """A model with a loss."""

    @property
    def loss(self) -> Callable[..., Tensor]: ...


def descend(
    run: Run, model: HasLoss, optimizer: Optimizer, batches: BatchSource[Tensor | tuple[Tensor, ...]]
) -> Generator[tuple[int, Tensor]]:
    """Take a gradient step for every batch; yields (step, loss), the loss detached and still on the device."""
    loss_of = torch.compile(model.loss) if run.options.compile else model.loss
    autocast = run.autocast()
    for step, batch in run.steps(batches):
        with autocast:
            loss = loss_of(*batch) if isinstance(batch, tuple) else loss_of(batch)
        run.update(optimizer, loss)
        yield step, loss.detach()
