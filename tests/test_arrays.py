"""The gate of public entry points: conversion by the jaxtyping annotations, and sentences for what does not fit."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn

from parnassus.arrays import accepts_arrays, as_tensor


class DataFrame:
    """The protocol of pandas: `to_numpy` and `__array__`."""

    def __init__(self, rows: Any, dtype: Any = None) -> None:
        self.rows, self.dtype = rows, dtype

    def to_numpy(self) -> NDArray[Any]:
        return np.asarray(self.rows, dtype=self.dtype)

    def __array__(self, dtype: Any = None, copy: Any = None) -> NDArray[Any]:
        return np.asarray(self.rows, dtype=dtype or self.dtype)


@accepts_arrays
def fit(
    x: Float[Tensor, "count features"], y: Float[Tensor, " count"] | None = None, *, labels: Int[Tensor, " count"]
) -> tuple[Tensor, Tensor | None, Tensor]:
    """Returns its arguments."""
    return x, y, labels


@dataclass(frozen=True)
class Fitted:
    name: str
    scale: Tensor

    @accepts_arrays
    def predict(self, x: Float[Tensor, "count *event"]) -> Tensor:
        return x * self.scale


LABELS = torch.tensor([0, 1])


@pytest.mark.parametrize(
    ("x", "dtype"),
    [
        (np.array([[1.0], [2.0]]), torch.float64),
        (np.array([[1.0], [2.0]], np.float32), torch.float32),
        (np.array([[1.0], [2.0]], ">f4"), torch.float32),
        (np.array([[1], [2]]), torch.float32),
        (np.array([[1], [2]], np.uint16), torch.float32),
        (np.array([[True], [True]]) * np.array([[1], [2]], np.uint8), torch.float32),
        ([[1], [2]], torch.float32),
        ([[1.0], [2.0]], torch.float32),
        ((torch.tensor([1]), torch.tensor([2])), torch.float32),
        (torch.tensor([[1], [2]], dtype=torch.int16), torch.float32),
        (torch.tensor([[1.0], [2.0]], dtype=torch.float16), torch.float16),
        (np.array([[9.0, 1.0], [9.0, 2.0]])[::-1, ::-1][::-1, :1], torch.float64),
        (DataFrame([[1.0], [2.0]]), torch.float64),
        (DataFrame([[1], [2.0]], object), torch.float64),
    ],
)
def test_numbers_become_tensors(x: Any, dtype: torch.dtype) -> None:
    converted, _, labels = fit(x, labels=np.array([0, 1], np.uint8))  # type: ignore[arg-type]  # static types name tensors
    assert converted.dtype == dtype
    assert converted.tolist() == [[1.0], [2.0]]
    assert labels.dtype == torch.int64


def test_suitable_tensors_are_passed_on_unchanged() -> None:
    x, y = torch.zeros(2, 1), torch.ones(2)
    assert all(one is other for one, other in zip(fit(x, y, labels=LABELS), (x, y, LABELS), strict=True))


def test_arguments_get_the_widest_precision_among_them() -> None:
    x, y, _ = fit(np.zeros((2, 1)), torch.zeros(2), labels=LABELS)  # type: ignore[arg-type]
    assert x.dtype == torch.float64
    assert y is not None
    assert y.dtype == torch.float64


def test_read_only_arrays_are_copied_and_inputs_not_changed() -> None:
    array = np.zeros((2, 1))
    array.flags.writeable = False
    fit(array, labels=LABELS)[0].add_(1)  # type: ignore[arg-type]
    assert array.tolist() == [[0.0], [0.0]]


def test_methods_convert_to_the_precision_of_the_fit() -> None:
    """Lists reach a float64 fit without passing through float32."""
    exact = Fitted("a", torch.tensor(1.0, dtype=torch.float64)).predict([[0.1]])  # type: ignore[arg-type]
    assert (exact.dtype, float(exact)) == (torch.float64, 0.1)
    assert Fitted("a", torch.tensor(1.0)).predict(np.zeros((2, 3, 4))).dtype == torch.float32  # type: ignore[arg-type]


def test_module_methods_convert_to_the_precision_of_the_parameters() -> None:
    class Model(nn.Linear):
        @accepts_arrays
        def predict(self, x: Float[Tensor, "count features"]) -> Tensor:
            outputs: Tensor = self(x)
            return outputs

    assert Model(2, 1).double().predict([[1, 2]]).dtype == torch.float64  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ([1.0, 2.0], r"x must have the axes \(count, features\); got shape \(2,\): use x\[:, None\] for a single"),
        (np.zeros((2, 3, 4)), r"got shape \(2, 3, 4\): use x.reshape\(len\(x\), -1\) to flatten every example"),
        (np.zeros((2, 3, 1)), r"got shape \(2, 3, 1\): use x\[..., 0\] to drop the last axis"),
        ([["a"], ["b"]], "x must hold numbers; got .*'a'.* of type str: encode text and dates as numbers first"),
        (DataFrame([["a", 1], ["b", 2]], object), "x must hold numbers; got 'a' of type str"),
        (np.array([["2020-01-01"]], "datetime64[D]"), "x must hold numbers; got .* of type date"),
        ([[1.0], [2.0, 3.0]], "x must be an array of numbers, with rows of equal length"),
        (np.zeros((2, 1)) + 1j, "x must hold numbers; got .* of type complex"),
    ],
)
def test_what_does_not_fit_raises_value_error(x: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit(x, labels=LABELS)


def test_sparse_arrays_raise_value_error() -> None:
    from scipy.sparse import csr_matrix

    with pytest.raises(ValueError, match=r"x must be dense; got csr_matrix: convert it with .toarray\(\)"):
        as_tensor(csr_matrix(np.eye(2)))


def test_labels_are_integers() -> None:
    assert fit(torch.zeros(2, 1), labels=np.array([0.0, 1.0]))[2].tolist() == [0, 1]  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"labels must be integers; got 0.5: number the classes 0, 1, 2, …"):
        fit(torch.zeros(2, 1), labels=np.array([0.5, 1.0]))  # type: ignore[arg-type]
    with pytest.raises(
        ValueError, match=r"labels must have the axes \(count\); got shape \(2, 1\): use labels\[..., 0\]"
    ):
        fit(torch.zeros(2, 1), labels=LABELS[:, None])


def test_a_function_without_tensors_cannot_be_decorated() -> None:
    with pytest.raises(TypeError, match="has no argument that jaxtyping annotates"):
        accepts_arrays(lambda x: x)
