"""Any data with targets as a regression: inputs scaled alike, targets of mean 0, classes as one-hot columns."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.data.errors import DataError
from parnassus.data.partition import standardise_features
from parnassus.data.splits import Dataset


@dataclass(frozen=True)
class RegressionTask:
    """Training rows x with targets t, and held-out rows with theirs.

    Pictures have mean 0 and length 1 each; columns of tables are standardised and divided by the root of their number.
    Targets are one-hot rows minus their mean, or standardised numbers.
    """

    x: Float[Tensor, "n features"]
    t: Float[Tensor, "n outputs"]
    unseen: Float[Tensor, "m features"]
    truth: Tensor
    """Of the unseen: class numbers, or targets in the units of t."""
    offset: Float[Tensor, " outputs"]
    """What was taken from one-hot targets."""
    classes: tuple[str, ...]

    @classmethod
    def of(cls, data: Dataset, train: int, test: int, *, kind: torch.dtype, device: torch.device) -> "RegressionTask":
        """The first `train` and `test` examples of the two parts, in this precision on this device."""
        if data.train.y is None or data.test.y is None or not len(data.test):
            raise DataError(f"{data.name} has no targets or no test part, which a regression needs.")
        if len(data.shape) == 3:
            parts = [_pictures(split.x.to(device, kind)) for split in (data.train.take(train), data.test.take(test))]
        else:
            scaled = standardise_features(data)
            parts = [
                split.x.to(device, kind).flatten(1) / scaled.train.x[0].numel() ** 0.5
                for split in (scaled.train.take(train), scaled.test.take(test))
            ]
        y, truth = data.train.y[:train].to(device), data.test.y[:test].to(device)
        if data.classes:
            t = torch.nn.functional.one_hot(y, len(data.classes)).to(kind)
            return cls(parts[0], t - t.mean(0), parts[1], truth, t.mean(0), data.classes)
        t, truth = (part.to(kind).reshape(len(part), -1) for part in (y, truth))
        mean, std = t.mean(0), t.std(0, correction=0).clamp(min=torch.finfo(kind).tiny)
        return cls(parts[0], (t - mean) / std, parts[1], (truth - mean) / std, torch.zeros_like(mean), ())

    @property
    def scored_as(self) -> str:
        return "share named rightly" if self.classes else "share of variance explained, R²"

    def score(self, predicted: Float[Tensor, "m outputs"]) -> float:
        """The accuracy on the held-out examples; R² for numeric targets."""
        if self.classes:
            return float(((predicted + self.offset).argmax(1) == self.truth).double().mean())
        return 1 - float((predicted - self.truth).square().sum() / (self.truth - self.truth.mean(0)).square().sum())


def _pictures(x: Tensor) -> Tensor:
    """Scale each image to mean 0 and norm 1."""
    rows = x.flatten(1)
    rows = rows - rows.mean(1, keepdim=True)
    length: Tensor = rows.norm(dim=1, keepdim=True)
    return rows / length.clamp(min=torch.finfo(x.dtype).tiny)
