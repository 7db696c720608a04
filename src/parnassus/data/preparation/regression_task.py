"""Any data with targets as a regression task: scaled inputs, centred targets, classes as one-hot columns."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.data.errors import DataError
from parnassus.data.loading import check_target
from parnassus.data.preparation.partition import standardise_features
from parnassus.data.splits import Dataset
from parnassus.short_repr import short_repr


@dataclass(frozen=True)
class RegressionTask:
    """Training inputs x with targets t, and held-out inputs with their labels or targets.

    Each image has mean 0 and norm 1; the d columns of a table are standardised and divided by √d. Targets are centred
    one-hot rows, or standardised numbers.

    >>> task = RegressionTask.from_dataset(diabetes(), 100, 50, dtype=torch.float64, device=torch.device("cpu"))
    >>> task.x.shape, task.x_test.shape
    (torch.Size([100, 10]), torch.Size([50, 10]))
    """

    x: Float[Tensor, "n features"]
    t: Float[Tensor, "n outputs"]
    x_test: Float[Tensor, "m features"]
    y_test: Tensor
    """Class indices, or targets in the units of t."""
    offset: Float[Tensor, " outputs"]
    """The mean that was subtracted from one-hot targets."""
    classes: tuple[str, ...]

    __repr__ = short_repr

    @classmethod
    def from_dataset(
        cls, data: Dataset, train: int, test: int, *, dtype: torch.dtype, device: torch.device
    ) -> "RegressionTask":
        """The first `train` and `test` examples of the two splits, with this dtype and device."""
        if data.train.y is None or data.test.y is None or not len(data.test):
            raise DataError(f"{data.name} must have targets and a test split for a regression.")
        check_target(data)
        if len(data.shape) == 3:
            parts = [
                _normalise_images(split.x.to(device, dtype)) for split in (data.train.take(train), data.test.take(test))
            ]
        else:
            scaled = standardise_features(data)
            parts = [
                split.x.to(device, dtype).flatten(1) / scaled.train.x[0].numel() ** 0.5
                for split in (scaled.train.take(train), scaled.test.take(test))
            ]
        y, y_test = data.train.y[:train].to(device), data.test.y[:test].to(device)
        if data.classes:
            t = torch.nn.functional.one_hot(y, len(data.classes)).to(dtype)
            return cls(parts[0], t - t.mean(0), parts[1], y_test, t.mean(0), data.classes)
        t, y_test = (part.to(dtype).reshape(len(part), -1) for part in (y, y_test))
        mean, std = t.mean(0), t.std(0, correction=0).clamp(min=torch.finfo(dtype).tiny)
        return cls(parts[0], (t - mean) / std, parts[1], (y_test - mean) / std, torch.zeros_like(mean), ())

    @property
    def score_name(self) -> str:
        return "accuracy" if self.classes else "R²"

    def score(self, predicted: Float[Tensor, "m outputs"]) -> float:
        """The accuracy on the held-out examples; R² for numeric targets."""
        if self.classes:
            return float(((predicted + self.offset).argmax(1) == self.y_test).double().mean())
        return 1 - float((predicted - self.y_test).square().sum() / (self.y_test - self.y_test.mean(0)).square().sum())


def _normalise_images(x: Tensor) -> Tensor:
    """Scale each image to mean 0 and norm 1."""
    rows = x.flatten(1)
    rows = rows - rows.mean(1, keepdim=True)
    length: Tensor = rows.norm(dim=1, keepdim=True)
    return rows / length.clamp(min=torch.finfo(x.dtype).tiny)
