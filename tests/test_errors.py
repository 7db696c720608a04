"""Checks of arguments."""

from collections.abc import Callable

import pytest
import torch

from parnassus.errors import check_at_least_one, check_indices, check_non_negative, check_positive


@pytest.mark.parametrize(
    ("check", "valid", "invalid", "message"),
    [
        (check_positive, 1e-9, 0, "b must be positive; got b=0"),
        (check_non_negative, 0, -1, "b must not be negative; got b=-1"),
        (check_at_least_one, 1, 0, "b must be at least 1; got b=0"),
    ],
)
def test_first_invalid_value_is_named(check: Callable[..., None], valid: float, invalid: float, message: str) -> None:
    check(a=valid, b=valid)
    with pytest.raises(ValueError, match=message):
        check(a=valid, b=invalid)
    with pytest.raises(ValueError, match="got b=nan"):
        check(a=valid, b=float("nan"))


@pytest.mark.parametrize("invalid", [-1, 3])
def test_first_tensor_with_an_invalid_index_is_named(invalid: int) -> None:
    check_indices(3, a=torch.arange(3), b=torch.zeros(0, dtype=torch.int64))
    with pytest.raises(ValueError, match=f"b must lie between 0 and 2; got {min(invalid, 1)} to {max(invalid, 1)}"):
        check_indices(3, a=torch.arange(3), b=torch.tensor([[1, invalid]]))
