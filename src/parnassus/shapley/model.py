"""Anything that predicts, as one function of tensors: modules, estimators of scikit-learn, plain functions."""

from collections.abc import Callable
from numbers import Real
from typing import TypeAlias

import numpy as np
import torch
from jaxtyping import Float, Num
from torch import Tensor, nn

Model: TypeAlias = Callable[[Float[Tensor, "rows features"]], Float[Tensor, "rows outputs"]]
"""Many inputs in, one row of outputs for each."""
Rows: TypeAlias = Float[Tensor, "rows features"] | Num[np.ndarray, "rows features"]
"""A table of features, as a tensor or as an array."""


def as_rows(table: object) -> Float[Tensor, "rows features"]:
    """Rows as a tensor; one alone, that is no table, gets a sentence."""
    rows = table if isinstance(table, Tensor) else torch.as_tensor(np.asarray(table))
    if rows.ndim != 2 or not len(rows):
        alone = "; for one row x give x[None]" if rows.ndim == 1 else ""
        raise ValueError(f"rows of features are needed; got shape {tuple(rows.shape)}{alone}")
    return rows if rows.is_floating_point() else rows.double()


def as_model(predictor: object) -> Model:
    """What a module gives, an estimator's probabilities (or else its predictions), or what a function returns.

    Arrays and tensors will do; a module is asked where its weights are, without gradients and as in evaluation.
    """
    return _asked_module(predictor) if isinstance(predictor, nn.Module) else _asked(function_of(predictor))


def function_of(predictor: object) -> Callable[..., object]:
    """An estimator's probabilities, or else its predictions; a function itself."""
    for name in ("predict_proba", "predict"):
        method: object = getattr(predictor, name, None)  # a pipeline's class has one that the pipeline may lack
        if callable(method):
            return method
    if callable(predictor):
        return predictor
    raise TypeError(f"a model is a module, an estimator or a function of many rows; got {type(predictor).__name__}")


def _asked_module(module: nn.Module) -> Model:
    ask = in_evaluation(module)
    return lambda x: _answered(ask(x), x)


def in_evaluation(module: nn.Module) -> Callable[[Tensor], Tensor]:
    """A module asked where its weights are, without gradients and as in evaluation, and left as it was."""
    parameter = next(module.parameters(), None)

    @torch.no_grad()
    def ask(x: Tensor) -> Tensor:
        learning = [part for part in module.modules() if part.training]  # some may be frozen, and must stay so
        for part in learning:
            part.training = False
        try:
            answer: Tensor = module(x if parameter is None else placed(x, parameter))
        finally:
            for part in learning:
                part.training = True
        return answer

    return ask


def _asked(function: Callable[..., object]) -> Model:
    arrays = False

    def ask(x: Tensor) -> Tensor:
        nonlocal arrays
        if not arrays:
            try:
                return _answered(function(x), x)
            except (TypeError, AttributeError, ValueError, DeprecationWarning):
                arrays = True  # then it wants numpy's
        return _answered(function(x.cpu().numpy()), x)

    return ask


def placed(x: Tensor, parameter: Tensor) -> Tensor:
    """Where the weights are and as exact as they are; whole numbers, such as the ids of tokens, stay whole."""
    return x.to(parameter) if x.is_floating_point() else x.to(parameter.device)


def _answered(answer: object, x: Tensor) -> Float[Tensor, "rows outputs"]:
    rows = answer_rows(answer, len(x))
    return rows.to(x) if x.is_floating_point() else rows.to(x.device)


def answer_rows(answer: object, count: int) -> Float[Tensor, "rows outputs"]:
    """One row for each input; a NaN is refused, for it would be in every value."""
    given = answer if isinstance(answer, Tensor) else _numbers(answer)
    if given.ndim not in (1, 2) or len(given) != count or 0 in given.shape[1:]:
        raise ModelError(
            "a model must give a number or a row of them for each input; "
            f"got shape {tuple(given.shape)} for {count} input{'s' * (count != 1)}"
        )
    if not bool(given.isfinite().all()):
        bad = int((~given.isfinite().reshape(count, -1).all(1)).nonzero()[0, 0])
        raise ModelError(
            f"the model returned {given[bad].tolist()}: it must give finite numbers, for mixtures of rows too"
        )
    rows = given[:, None] if given.ndim == 1 else given
    return rows if rows.is_floating_point() else rows.double()


def _numbers(answer: object) -> Tensor:
    """An array or list as a tensor; words, and what is no number either, get a sentence."""
    given = np.asarray(answer)
    if given.dtype.kind in "biuf":
        return torch.as_tensor(given)
    first = given.flat[0] if given.size else None
    if isinstance(first, str | bytes):
        raise ModelError(f"the model answers with words such as {str(first)!r}; give numbers: predict_proba, a score")
    if not isinstance(first, Real):
        raise ModelError(f"a model must give numbers; got {type(first).__name__}")
    return torch.as_tensor(given.astype(np.float64))  # numbers of Python, one by one


class ModelError(RuntimeError):
    """A model that cannot be explained, in a sentence."""
