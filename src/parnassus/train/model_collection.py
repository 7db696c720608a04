"""Several models trained in one loop on the same batches."""

from collections.abc import Iterator
from typing import Generic, TypeVar, cast

import torch
from torch import Tensor, nn

Model = TypeVar("Model", bound=nn.Module)


class ModelCollection(nn.ModuleDict, Generic[Model]):
    """Models by name whose losses are added for one optimiser.

    No parameter is shared, so each gradient is that of one model's loss; an elementwise optimiser, such as Adam,
    trains each model as if it were trained separately.

    >>> models = ModelCollection({"small": nn.Linear(2, 1), "large": nn.Linear(2, 8)})
    >>> [name for name, _ in models.named_models()]
    ['small', 'large']
    """

    def model(self, name: str) -> Model:
        return cast("Model", self[name])

    def named_models(self) -> Iterator[tuple[str, Model]]:
        """Each model with its name."""
        return ((name, self.model(name)) for name in self)

    def loss(self, *batch: Tensor) -> Tensor:
        """The sum of all losses on this batch."""
        losses: list[Tensor] = [model.loss(*batch) for model in self.values()]  # type: ignore[operator]  # a HasLoss each
        return torch.stack(losses).sum()
