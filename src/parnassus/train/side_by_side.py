"""Several models trained in one loop on the same batches."""

from collections.abc import Iterator
from typing import Generic, TypeVar, cast

import torch
from torch import Tensor, nn

Model = TypeVar("Model", bound=nn.Module)


class SideBySide(nn.ModuleDict, Generic[Model]):
    """Models by name whose losses are added up for one optimiser.

    No parameter is shared, so each gradient is that of one model's own loss; an elementwise optimiser, such as
    Adam, then trains each as if it were alone.
    """

    def one(self, name: str) -> Model:
        return cast("Model", self[name])

    def every(self) -> Iterator[tuple[str, Model]]:
        """Each model with its name."""
        return ((name, self.one(name)) for name in self)

    def loss(self, *batch: Tensor) -> Tensor:
        """The sum of all losses on this batch."""
        losses: list[Tensor] = [model.loss(*batch) for model in self.values()]  # type: ignore[operator]  # a HasLoss each
        return torch.stack(losses).sum()
