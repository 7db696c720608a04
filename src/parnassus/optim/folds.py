"""K-fold cross-validation: every example is validated once, by a model that did not see it (Zhao sec. 3)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor

Rows: TypeAlias = Int[Tensor, " _rows"]


def k_folds(count: int, k: int, *, generator: Generator | None = None) -> list[tuple[Rows, Rows]]:
    """Pairs (training rows, validation rows) of k disjoint folds in random order, each held out once (Zhao sec. 3).

    Sizes differ by at most one. k = count leaves one example out at a time.
    """
    if not 2 <= k <= count:
        raise ValueError(f"k must lie between 2 and the number of examples; got k={k}, count={count}")
    parts = torch.tensor_split(torch.randperm(count, generator=generator), k)
    return [(torch.cat([*parts[:index], *parts[index + 1 :]]), held) for index, held in enumerate(parts)]


@dataclass(frozen=True)
class CrossValidation:
    """The errors of k rounds, on the rows trained on and on the fold held out."""

    training: Float[Tensor, " k"]
    validation: Float[Tensor, " k"]

    @property
    def training_error(self) -> float:
        return float(self.training.mean())

    @property
    def validation_error(self) -> float:
        """Estimates the error of the same recipe trained on (k − 1)/k of the data, so it is a little pessimistic."""
        return float(self.validation.mean())

    @property
    def standard_error(self) -> float:
        """Of the validation error over the folds; too small by a little, as the training sets overlap."""
        return float(self.validation.std() / len(self.validation) ** 0.5)


def cross_validate(
    count: int,
    k: int,
    errors: Callable[[Rows, Rows], tuple[float, float]],
    *,
    generator: Generator | None = None,
) -> CrossValidation:
    """Both errors averaged over k rounds (Zhao sec. 3).

        CV = 1/k Σ_j err(f_{−j}, fold j)

    `errors(train, validation)` fits a fresh model to the first rows and returns its error on the first and on the
    second. Whatever is learned from data, a scaling of the inputs included, belongs inside it.
    """
    rounds = [errors(train, held) for train, held in k_folds(count, k, generator=generator)]
    training, validation = torch.tensor(rounds, dtype=torch.float64).unbind(1)
    return CrossValidation(training, validation)
