"""Points in the plane: from a file, or newly sampled at every step."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from parnassus.data.errors import DataError
from parnassus.data.loading import open_data
from parnassus.data.seeds import mix
from parnassus.data.splits import Dataset, Split


def open_points(name: str) -> Dataset:
    """A toy data set or a file with two values per example; a table of two columns has no target."""
    data = open_data(name)
    train, test = _both_columns(data.train), _both_columns(data.test)
    if data.columns and train.x.shape[1:] != data.shape:  # the target column becomes a coordinate
        data = replace(data, columns=(*data.columns, data.target), target="")
    data = replace(data, train=train, test=test)
    if data.shape != (2,):
        raise DataError(f"{name} must be points in the plane; its examples have shape {data.shape}.")
    return data


@dataclass(frozen=True)
class SampledPoints:
    """Batches of newly sampled points at every step, a pure function of (seed, step); there is no overfitting."""

    generator: Callable[..., Split]
    size: int
    steps: int
    device: torch.device

    def __len__(self) -> int:
        return self.steps

    def at(self, step: int, seed: int, rank: int, world_size: int) -> Tensor:
        return self.generator(max(1, self.size // world_size), seed=mix(seed, step, rank)).x.to(self.device)


def _both_columns(split: Split) -> Split:
    if split.x.shape[1:] != (1,) or split.y is None or not split.y.is_floating_point():
        return split
    return Split(torch.cat([split.x, split.y.view(-1, 1)], dim=1))
