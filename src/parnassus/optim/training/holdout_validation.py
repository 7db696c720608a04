"""Hold-out validation: split off a validation set and select hyperparameters on it (book sec. 1.3)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Generic, TypeVar

import torch
from jaxtyping import Int
from torch import Generator, Tensor

Candidate = TypeVar("Candidate")


def holdout_indices(
    num_examples: int, fraction: float, *, generator: Generator | None = None
) -> tuple[Int[Tensor, " train"], Int[Tensor, " validation"]]:
    """Random split into training and validation indices, with this fraction of all examples held out."""
    num_validation = round(fraction * num_examples)
    if not 0 < num_validation < num_examples:
        raise ValueError(
            "both parts must be nonempty; "
            f"got num_examples={num_examples}, fraction={fraction}, that is {num_validation} held out"
        )
    indices = torch.randperm(num_examples, generator=generator)
    return indices[num_validation:], indices[:num_validation]


@dataclass(frozen=True)
class SearchResult(Generic[Candidate]):
    """The candidates of a hyperparameter search and their validation losses, in the same order.

    >>> SearchResult([0.1, 0.01, 0.001], [0.9, 0.4, 0.7]).best
    0.01
    """

    candidates: Sequence[Candidate]
    losses: Sequence[float]

    @property
    def best(self) -> Candidate:
        """The candidate with the smallest validation loss; NaN losses are ignored."""
        _, index = min((loss, index) for index, loss in enumerate(self.losses) if not isnan(loss))
        return self.candidates[index]


def validation_search(
    candidates: Sequence[Candidate], validation_loss: Callable[[Candidate], float]
) -> SearchResult[Candidate]:
    """Evaluate the validation loss of every candidate (book sec. 1.3).

    `validation_loss(candidate)` trains a new model and returns its loss on the validation set.
    """
    if not candidates:
        raise ValueError("need at least one candidate; got none")
    losses = [validation_loss(candidate) for candidate in candidates]
    if all(isnan(loss) for loss in losses):
        raise ValueError(f"the validation loss of every candidate is NaN; got candidates={list(candidates)}")
    return SearchResult(candidates, losses)
