"""Choosing a hyper-parameter on data that training never sees (book sec. 1.3)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Generic, TypeVar

import torch
from jaxtyping import Int
from torch import Generator, Tensor

Candidate = TypeVar("Candidate")


def hold_out(
    count: int, share: float, *, generator: Generator | None = None
) -> tuple[Int[Tensor, " train"], Int[Tensor, " validation"]]:
    """Row numbers for training and for validation, chosen at random; every row is in exactly one of the two."""
    held = round(share * count)
    if not 0 < held < count:
        raise ValueError(f"both parts must have rows; got count={count}, share={share}, which holds out {held}")
    rows = torch.randperm(count, generator=generator)
    return rows[held:], rows[:held]


@dataclass(frozen=True)
class Search(Generic[Candidate]):
    """The candidates of a search and the validation loss of each, in the same order."""

    candidates: Sequence[Candidate]
    losses: Sequence[float]

    @property
    def best(self) -> Candidate:
        """The candidate of least validation loss; a training that ended in NaN cannot win."""
        _, index = min((loss, index) for index, loss in enumerate(self.losses) if not isnan(loss))
        return self.candidates[index]


def validation_search(
    candidates: Sequence[Candidate], validation_loss: Callable[[Candidate], float]
) -> Search[Candidate]:
    """Train once per candidate of a preset list and keep what validation says (book sec. 1.3).

    `validation_loss(candidate)` trains a fresh model and returns its loss on the held-out rows.
    """
    if not candidates:
        raise ValueError("a search needs at least one candidate; got none")
    losses = [validation_loss(candidate) for candidate in candidates]
    if all(isnan(loss) for loss in losses):
        raise ValueError(f"every candidate ended in NaN; got candidates={list(candidates)}")
    return Search(candidates, losses)
