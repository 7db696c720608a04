"""Errors that are shown to the user as one sentence, without a traceback, and checks of arguments."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


class UserError(Exception):
    """An error that the user can correct; the message states what is wrong and what to do."""


class MissingExtraError(UserError, ImportError):
    """An optional dependency is not installed; the message contains the command to install it."""


def check_positive(**values: float) -> None:
    """Raise a ValueError unless every value is positive."""
    for name, value in values.items():
        if not value > 0:
            raise ValueError(f"{name} must be positive; got {name}={value}")


def check_non_negative(**values: float) -> None:
    """Raise a ValueError unless every value is at least 0."""
    for name, value in values.items():
        if not value >= 0:
            raise ValueError(f"{name} must not be negative; got {name}={value}")


def check_at_least_one(**values: float) -> None:
    """Raise a ValueError unless every value is at least 1."""
    for name, value in values.items():
        if not value >= 1:
            raise ValueError(f"{name} must be at least 1; got {name}={value}")


def check_same_shape(**tensors: "Tensor") -> None:
    """Raise a ValueError unless all shapes are equal: (n, 1) and (n,) would broadcast to n × n values."""
    shapes = [(*each.shape,) for each in tensors.values()]
    if len(set(shapes)) > 1:
        names, received = " and ".join(tensors), " and ".join(map(str, shapes))
        raise ValueError(f"{names} must have the same shape; got {received}")


def check_indices(size: int, /, **indices: "Tensor") -> None:
    """Raise a ValueError unless every index is from 0 to size − 1; an empty tensor is valid."""
    for name, values in indices.items():
        if values.numel() and not (int(values.min()) >= 0 and int(values.max()) < size):
            raise ValueError(
                f"{name} must lie between 0 and {size - 1}; got {int(values.min())} to {int(values.max())}"
            )


@contextmanager
def convert_value_errors() -> Iterator[None]:
    """Raise a ValueError as a UserError, for calls of parts that check the settings of the user."""
    try:
        yield
    except ValueError as error:
        raise UserError(str(error)) from error
