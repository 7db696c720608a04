"""Kernel ridge regression with scikit-learn's interface."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from parnassus.arrays import ArrayLike
from parnassus.attention.regression import feature_ridge
from parnassus.kernels import RBFKernel

KernelFunction: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""Maps points (n, features) and (m, features) to the matrix (n, m)."""


class KernelRidge(MultiOutputMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]  # untyped
    """Kernel ridge regression: f(x) = ȳ + Σ_i α_i k(x_i, x), α = (K + nλ I)⁻¹ (y − ȳ) (Diehl sec. 4.1).

    `kernel` is any of `parnassus.kernels`, by default an `RBFKernel` whose length scale is the root mean square
    distance of two rows; `penalty` is λ.

    >>> import numpy as np
    >>> from parnassus.estimators import KernelRidge
    >>> x = np.linspace(0, 6, 40)[:, None]
    >>> model = KernelRidge(penalty=1e-6).fit(x, np.sin(x[:, 0]))
    >>> bool(model.score(x, np.sin(x[:, 0])) > 0.99)
    True
    """

    def __init__(self, kernel: KernelFunction | None = None, *, penalty: float = 1e-3) -> None:
        self.kernel = kernel
        self.penalty = penalty

    def fit(self, X: ArrayLike, y: ArrayLike) -> "KernelRidge":
        """Solve for the coefficients of all rows."""
        rows, targets = validate_data(self, X, y, dtype=np.float64, multi_output=True, y_numeric=True)
        self.X_fit_ = torch.tensor(rows)
        self.kernel_ = RBFKernel(typical_distance(self.X_fit_)) if self.kernel is None else self.kernel
        outputs = torch.tensor(targets, dtype=torch.float64).reshape(len(rows), -1)
        self.intercept_, self._is_vector = outputs.mean(0), targets.ndim == 1
        with torch.no_grad():
            gram = self.kernel_(self.X_fit_, self.X_fit_)
        self.model_ = feature_ridge.KernelRidge.fit(gram, outputs - self.intercept_, penalty=self.penalty)
        self.dual_coef_ = self.model_.alpha.numpy()
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The values of f at the rows of X."""
        check_is_fitted(self)
        rows = torch.tensor(validate_data(self, X, dtype=np.float64, reset=False))
        with torch.no_grad():
            outputs = self.intercept_ + self.model_.predict(self.kernel_(rows, self.X_fit_))
        return (outputs[:, 0] if self._is_vector else outputs).numpy()


def typical_distance(x: Tensor) -> float:
    """The root mean square distance of two rows, or 1 if they are equal."""
    distance = float((2 * x.var(0, correction=0).sum()).sqrt())
    return distance if distance > 0 else 1.0
