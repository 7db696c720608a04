"""K-fold cross-validation (Zhao sec. 3)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor

Indices: TypeAlias = Int[Tensor, " _rows"]


def k_folds(num_examples: int, k: int, *, generator: Generator | None = None) -> list[tuple[Indices, Indices]]:
    """Pairs (training indices, validation indices) of k disjoint random folds, each held out once (Zhao sec. 3).

    Fold sizes differ by at most one. k = num_examples is leave-one-out cross-validation.
    """
    if not 2 <= k <= num_examples:
        raise ValueError(f"k must be between 2 and num_examples; got k={k}, num_examples={num_examples}")
    folds = torch.tensor_split(torch.randperm(num_examples, generator=generator), k)
    return [(torch.cat([*folds[:index], *folds[index + 1 :]]), fold) for index, fold in enumerate(folds)]


@dataclass(frozen=True)
class CrossValidationResult:
    """Training and validation error of each fold, with their means.

    >>> result = CrossValidationResult(torch.tensor([0.1, 0.3]), torch.tensor([0.4, 0.6]))
    >>> result.validation_error
    0.5
    """

    training_errors: Float[Tensor, " k"]
    validation_errors: Float[Tensor, " k"]

    @property
    def training_error(self) -> float:
        return float(self.training_errors.mean())

    @property
    def validation_error(self) -> float:
        """Estimate of the error of a model trained on (k − 1)/k of the data, slightly pessimistic for all data."""
        return float(self.validation_errors.mean())

    @property
    def standard_error(self) -> float:
        """Standard error of the validation error over the folds; slightly too small, as training sets overlap."""
        return float(self.validation_errors.std() / len(self.validation_errors) ** 0.5)


def cross_validate(
    num_examples: int,
    k: int,
    errors: Callable[[Indices, Indices], tuple[float, float]],
    *,
    generator: Generator | None = None,
) -> CrossValidationResult:
    """Training and validation errors of k-fold cross-validation (Zhao sec. 3).

        CV = 1/k Σ_j err(f_{−j}, fold j)

    `errors(train, validation)` fits a new model to the training indices and returns its errors on both sets. All that
    is fitted to data, including input scaling, must be part of it.
    """
    folds = k_folds(num_examples, k, generator=generator)
    results = [errors(train, validation) for train, validation in folds]
    training_errors, validation_errors = torch.tensor(results, dtype=torch.float64).unbind(1)
    return CrossValidationResult(training_errors, validation_errors)
