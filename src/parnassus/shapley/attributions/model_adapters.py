"""Any predictor as one function of tensors: modules, scikit-learn estimators, plain functions."""

from collections.abc import Callable
from numbers import Real
from typing import TypeAlias

import numpy as np
import torch
from jaxtyping import Float, Num
from torch import Tensor, nn

from parnassus.errors import UserError

Model: TypeAlias = Callable[[Float[Tensor, "rows features"]], Float[Tensor, "rows outputs"]]
"""A function from a batch of inputs to one row of outputs each."""
Rows: TypeAlias = Float[Tensor, "rows features"] | Num[np.ndarray, "rows features"]
"""A table of features, as a tensor or an array."""


class ModelError(UserError, RuntimeError):
    """The error for a model that cannot be explained, with the reason."""


def as_rows(table: object) -> Float[Tensor, "rows features"]:
    """Rows of features as a floating-point tensor."""
    rows = table if isinstance(table, Tensor) else torch.as_tensor(np.asarray(table))
    if rows.ndim != 2 or not len(rows):
        hint = "; for one row x give x[None]" if rows.ndim == 1 else ""
        raise ValueError(f"rows of features are needed; got shape {tuple(rows.shape)}{hint}")
    return rows if rows.is_floating_point() else rows.double()


def as_model(predictor: object) -> Model:
    """A module's output, an estimator's probabilities (or else its predictions), or a function's result.

    Inputs and results may be arrays or tensors. A module runs on the device of its weights, without gradients and in
    evaluation mode.
    """
    if isinstance(predictor, nn.Module):
        return _wrap_module(predictor)
    return _wrap_function(prediction_function(predictor))


def prediction_function(predictor: object) -> Callable[..., object]:
    """An estimator's `predict_proba`, or else its `predict`; a function itself."""
    for name in ("predict_proba", "predict"):
        method: object = getattr(predictor, name, None)  # a pipeline's class has one that the pipeline may lack
        if callable(method):
            return method
    if callable(predictor):
        return predictor
    raise TypeError(
        f"a model must be a module, an estimator or a function of many rows; got {type(predictor).__name__}"
    )


def _wrap_module(module: nn.Module) -> Model:
    evaluate = evaluation_function(module)
    return lambda x: _match_input(evaluate(x), x)


def evaluation_function(module: nn.Module) -> Callable[[Tensor], Tensor]:
    """The module on the device of its weights, without gradients and in evaluation mode; modes are restored."""
    parameter = next(module.parameters(), None)

    @torch.no_grad()
    def evaluate(x: Tensor) -> Tensor:
        training = [part for part in module.modules() if part.training]  # some may be frozen, and must stay so
        for part in training:
            part.training = False
        try:
            output: Tensor = module(x if parameter is None else move_to_weights(x, parameter))
        finally:
            for part in training:
                part.training = True
        return output

    return evaluate


def _wrap_function(function: Callable[..., object]) -> Model:
    needs_arrays = False

    def evaluate(x: Tensor) -> Tensor:
        nonlocal needs_arrays
        if not needs_arrays:
            try:
                return _match_input(function(x), x)
            except (TypeError, AttributeError, ValueError, DeprecationWarning):
                needs_arrays = True
        return _match_input(function(x.cpu().numpy()), x)

    return evaluate


def move_to_weights(x: Tensor, parameter: Tensor) -> Tensor:
    """The inputs with the device and dtype of a weight; integers, such as token ids, remain integers."""
    return x.to(parameter) if x.is_floating_point() else x.to(parameter.device)


def _match_input(output: object, x: Tensor) -> Float[Tensor, "rows outputs"]:
    rows = as_output_rows(output, len(x))
    return rows.to(x) if x.is_floating_point() else rows.to(x.device)


def as_output_rows(output: object, count: int) -> Float[Tensor, "rows outputs"]:
    """One row per input; a NaN is rejected, since it would spread to every value."""
    given = output if isinstance(output, Tensor) else _as_tensor(output)
    if given.ndim not in (1, 2) or len(given) != count or 0 in given.shape[1:]:
        raise ModelError(
            "a model must return a number or a row of numbers for each input; "
            f"got shape {tuple(given.shape)} for {count} input{'s' * (count != 1)}"
        )
    if not bool(given.isfinite().all()):
        bad = int((~given.isfinite().reshape(count, -1).all(1)).nonzero()[0, 0])
        raise ModelError(
            f"a model must return finite numbers, also for mixtures of rows; the model returned {given[bad].tolist()}"
        )
    rows = given[:, None] if given.ndim == 1 else given
    return rows if rows.is_floating_point() else rows.double()


def _as_tensor(output: object) -> Tensor:
    """An array or list as a tensor; strings and other objects are rejected."""
    given = np.asarray(output)
    if given.dtype.kind in "biuf":
        return torch.as_tensor(given)
    first = given.flat[0] if given.size else None
    if isinstance(first, str | bytes):
        raise ModelError(
            f"a model must return numbers, not labels such as {str(first)!r}; use predict_proba or a score"
        )
    if not isinstance(first, Real):
        raise ModelError(f"a model must return numbers; got {type(first).__name__}")
    return torch.as_tensor(given.astype(np.float64))  # an array of Python numbers
