"""Points in the plane: from a file, or newly sampled at every step."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import torch
from torch import Tensor

from parnassus.data.built_in.densities import moons_log_prob
from parnassus.data.built_in.toy import moons
from parnassus.data.errors import DataError
from parnassus.data.loading import open_data, toy_dataset
from parnassus.data.preparation.partition import standardise_features
from parnassus.data.seeds import derive_seed
from parnassus.data.splits import Dataset, Split
from parnassus.short_repr import short_repr

LogDensity: TypeAlias = Callable[[Tensor], Tensor]
"""Maps points, one per row, to the logarithm of their density."""


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


def points_and_log_density(name: str) -> tuple[Dataset, LogDensity | None]:
    """Points in the plane, and the logarithm of their density where it is known.

    The moons are 60,000 points in their own units, to which the density applies; other points are standardised.
    """
    if name == "moons":
        return toy_dataset("moons", moons, train=50_000, test=10_000), moons_log_prob
    return standardise_features(open_points(name)), None


@dataclass(frozen=True)
class SampledPoints:
    """Batches of newly sampled points at every step, a pure function of (seed, step), which excludes overfitting.

    >>> batches = SampledPoints(lambda count, seed: Split(torch.zeros(count, 2)), 64, 10, torch.device("cpu"))
    >>> len(batches)
    10
    """

    generator: Callable[..., Split]
    size: int
    steps: int
    device: torch.device

    __repr__ = short_repr

    def __len__(self) -> int:
        return self.steps

    def at(self, step: int, seed: int, rank: int, world_size: int) -> Tensor:
        return self.generator(max(1, self.size // world_size), seed=derive_seed(seed, step, rank)).x.to(self.device)


def _both_columns(split: Split) -> Split:
    if split.x.shape[1:] != (1,) or split.y is None or not split.y.is_floating_point():
        return split
    return Split(torch.cat([split.x, split.y.view(-1, 1)], dim=1))
