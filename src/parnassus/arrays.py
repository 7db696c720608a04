"""Arrays at public entry points: NumPy arrays, lists, data frames and integer tensors become tensors.

    @classmethod
    @accepts_arrays
    def fit(cls, x: Float[Tensor, "count features"], labels: Int[Tensor, " count"]) -> "Estimator": ...

The jaxtyping annotations are the contract: they determine the dtype of every argument and its number of axes.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import wraps
from inspect import signature
from itertools import chain
from types import UnionType
from typing import (
    Any,
    NamedTuple,
    ParamSpec,
    Protocol,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
    runtime_checkable,
)

import numpy as np
import torch
from jaxtyping import AbstractArray, Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn


@runtime_checkable
class SupportsArray(Protocol):
    """NumPy's array protocol: tensors, arrays, and the data frames of pandas and polars."""

    def __array__(self, *arguments: Any, **keywords: Any) -> NDArray[Any]: ...  # NumPy's own signature


ArrayLike: TypeAlias = SupportsArray | Sequence[Any] | float
"""What an entry point accepts: a tensor, an array, a data frame, (nested) lists of numbers, or a number."""

_FLOATS, _INTEGERS = (getattr(kind[Tensor, ""], "dtypes") for kind in (Float, Int))  # noqa: B009 - for mypy a Tensor
Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class _Axes(NamedTuple):
    """The contract of one argument."""

    is_float: bool
    is_integer: bool
    names: tuple[str, ...]
    is_variadic: bool
    """Whether an axis such as `*event` stands for any number of axes."""


def accepts_arrays(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Convert the arguments of a function or method that jaxtyping annotates as tensors.

    All floating-point arguments get one dtype: that of the tensors of `self`, else the widest among the arguments.
    Arguments that were not tensors are moved to the device of `self`. Tensors that fit are passed on unchanged.
    """
    expected = _read_annotations(function)
    names = tuple(signature(function).parameters)

    @wraps(function)
    def convert_and_call(*arguments: Parameters.args, **keywords: Parameters.kwargs) -> Result:
        given = {**dict(zip(names, arguments, strict=False)), **keywords}
        like = _reference_tensor(arguments[0]) if names[:1] == ("self",) else None
        converted = _convert(expected, given, like)
        if not converted:
            return function(*arguments, **keywords)
        positional = [converted.get(name, value) for name, value in zip(names, arguments, strict=False)]
        positional.extend(arguments[len(names) :])
        return function(*positional, **{name: converted.get(name, value) for name, value in keywords.items()})  # type: ignore[arg-type]  # the same parameters

    return convert_and_call


def as_tensor(x: ArrayLike, name: str = "x") -> Tensor:
    """Numbers as a tensor, in their own precision; lists of Python's floats are float64."""
    if isinstance(x, Tensor):
        return x
    if isinstance(x, Sequence) and not isinstance(x, str) and len(x) and all(isinstance(each, Tensor) for each in x):
        return torch.stack(list(x))
    array = _as_numpy(x, name)
    if array.dtype.kind not in "biuf":
        example = next(iter(array.reshape(-1)[:1].tolist()), "")
        raise ValueError(
            f"{name} must hold numbers; got {example!r} of type {type(example).__name__}: encode text and dates as "
            "numbers first"
        )
    if array.dtype.kind == "u" and array.dtype.itemsize > 1:
        array = array.astype(np.int64)
    elif array.dtype.kind == "f":
        array = array.astype({2: np.float16, 4: np.float32}.get(array.dtype.itemsize, np.float64), copy=False)
    array = np.ascontiguousarray(array, array.dtype.newbyteorder("=")).reshape(array.shape)
    return torch.from_numpy(array if array.flags.writeable else array.copy())


def _as_numpy(x: ArrayLike, name: str) -> NDArray[Any]:
    if hasattr(x, "toarray"):
        raise ValueError(f"{name} must be dense; got {type(x).__name__}: convert it with .toarray()")
    to_numpy = getattr(x, "to_numpy", None)  # of pandas and polars: also for columns that may have missing values
    try:
        array = np.asarray(x if to_numpy is None else to_numpy())
        return array.astype(np.float64) if array.dtype == object and not _has_text(array.flat) else array
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be an array of numbers, with rows of equal length; got {error}") from error


def _has_text(values: Iterable[object]) -> bool:
    return any(not isinstance(value, float | int | np.number | np.bool_) for value in values)


def _read_annotations(function: Callable[..., object]) -> dict[str, _Axes]:
    """The arguments annotated as `Float[Tensor, …]` and the like, also with `| None`."""
    found: dict[str, _Axes] = {}
    for name, parameter in signature(function).parameters.items():
        annotation = parameter.annotation
        if get_origin(annotation) in (Union, UnionType):
            options = [each for each in get_args(annotation) if each is not type(None)]
            annotation = options[0] if len(options) == 1 else None
        if isinstance(annotation, type) and issubclass(annotation, AbstractArray):
            found[name] = _axes_of(annotation)
    if not found:
        raise TypeError(f"{function.__qualname__} has no argument that jaxtyping annotates as a tensor")
    return found


def _axes_of(annotation: Any) -> _Axes:
    names = tuple(annotation.dim_str.split())
    kept = tuple(name for name in names if not name.startswith(("*", "...")))
    is_float, is_integer = (annotation.dtypes == dtypes for dtypes in (_FLOATS, _INTEGERS))
    return _Axes(is_float, is_integer, kept, len(kept) < len(names))


def _convert(expected: Mapping[str, _Axes], given: Mapping[str, Any], like: Tensor | None) -> dict[str, Tensor]:
    """The arguments that have to be replaced."""
    tensors = {name: as_tensor(given[name], name) for name in expected if given.get(name) is not None}
    for name, tensor in tensors.items():
        _check_axes(name, tensor, expected[name])
    arrays = [name for name in tensors if expected[name].is_float and isinstance(given[name], SupportsArray)]
    dtype = _common_dtype([tensors[name] for name in arrays], like)
    converted = {}
    for name, tensor in tensors.items():
        result = tensor
        if expected[name].is_float:
            result = tensor.to(dtype)
        elif expected[name].is_integer:
            result = _as_integers(name, tensor)
        if like is not None and tensor is not given[name]:
            result = result.to(like.device)
        if result is not given[name]:
            converted[name] = result
    return converted


def _common_dtype(tensors: Sequence[Tensor], like: Tensor | None) -> torch.dtype:
    if like is not None:
        return like.dtype
    dtypes = [tensor.dtype for tensor in tensors if tensor.is_floating_point()]
    common = dtypes[0] if dtypes else torch.get_default_dtype()
    for dtype in dtypes[1:]:
        common = torch.promote_types(common, dtype)
    return common


def _as_integers(name: str, x: Tensor) -> Tensor:
    if x.is_floating_point():
        fractional = x[x != x.round()]
        if fractional.numel() or not bool(x.isfinite().all()):
            value = float(fractional.flatten()[0]) if fractional.numel() else float("inf")
            raise ValueError(f"{name} must be integers; got {value:g}: number the classes 0, 1, 2, …")
    return x.long()


def _check_axes(name: str, x: Tensor, axes: _Axes) -> None:
    count = len(axes.names)
    if x.dim() == count or (axes.is_variadic and x.dim() > count):
        return
    wanted = f"the axes ({', '.join(axes.names)}{', …' if axes.is_variadic else ''})" if count else "no axes"
    if count == 2 and x.dim() == 1:
        fix = f"use {name}[:, None] for a single feature, {name}[None, :] for a single example"
    elif x.dim() == count + 1 and x.shape[-1] == 1:
        fix = f"use {name}[..., 0] to drop the last axis"
    elif count == 2 and x.dim() > 2:
        fix = f"use {name}.reshape(len({name}), -1) to flatten every example"
    else:
        fix = f"reshape {name}"
    raise ValueError(f"{name} must have {wanted}; got shape {tuple(x.shape)}: {fix}")


def _reference_tensor(owner: object) -> Tensor | None:
    """The first floating-point tensor of a module or of a fitted dataclass."""
    tensors: Iterable[object] = ()
    if isinstance(owner, nn.Module):
        tensors = chain(owner.parameters(), owner.buffers())
    elif is_dataclass(owner):
        tensors = (getattr(owner, each.name) for each in fields(owner))
    return next((each for each in tensors if isinstance(each, Tensor) and each.is_floating_point()), None)
