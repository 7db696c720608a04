"""Folds are a partition; cross-validation averages the errors of the folds."""

import pytest
import torch
from torch import Tensor

from parnassus.optim import cross_validate, k_folds


@pytest.mark.parametrize(("count", "k"), [(10, 5), (11, 4), (7, 7), (2, 2), (100, 3)])
def test_every_example_is_in_exactly_one_validation_fold(count: int, k: int) -> None:
    folds = k_folds(count, k, generator=torch.Generator().manual_seed(0))
    all_validation = torch.cat([validation for _, validation in folds])
    assert len(folds) == k
    assert all_validation.sort().values.tolist() == list(range(count))
    sizes = [len(validation) for _, validation in folds]
    assert max(sizes) - min(sizes) <= 1
    for train, validation in folds:
        assert torch.cat([train, validation]).sort().values.tolist() == list(range(count))


def test_folds_depend_on_the_generator() -> None:
    first, repeated, other = (k_folds(20, 4, generator=torch.Generator().manual_seed(seed)) for seed in (1, 1, 2))
    assert first[0][1].equal(repeated[0][1])
    assert not first[0][1].equal(other[0][1])


def test_both_errors_are_averaged() -> None:
    def errors(train: Tensor, validation: Tensor) -> tuple[float, float]:
        return float(train.sum()), float(validation.sum())

    result = cross_validate(12, 3, errors)
    assert result.validation_error == pytest.approx(66 / 3)
    assert result.training_error == pytest.approx(2 * 66 / 3)
    assert result.standard_error == pytest.approx(float(result.validation_errors.std()) / 3**0.5)


@pytest.mark.parametrize(("count", "k"), [(5, 1), (5, 6), (5, 0)])
def test_invalid_number_of_folds_raises_value_error(count: int, k: int) -> None:
    with pytest.raises(ValueError, match=f"k must be between 2 and num_examples; got k={k}, num_examples={count}"):
        k_folds(count, k)
