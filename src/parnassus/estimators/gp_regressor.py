"""Gaussian-process regression with scikit-learn's interface."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from parnassus.arrays import ArrayLike
from parnassus.estimators.kernel_ridge import typical_distance
from parnassus.kernels import GPRegression, RBFKernel, ScaledKernel, learn_hyperparameters
from parnassus.kernels.gaussian_processes.hyperparameters import TrainableKernel


class GPRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]  # untyped
    """Gaussian-process regression whose kernel and noise maximise the marginal likelihood (book sec. 15.1).

    `kernel` is the start of the maximisation, by default a scaled `RBFKernel`; `noise_variance` is σ², in units of the
    variance of the targets, which are standardised. `steps=0` keeps both as they are.

    >>> import numpy as np
    >>> from parnassus.estimators import GPRegressor
    >>> x = np.linspace(0, 6, 20)[:, None]
    >>> model = GPRegressor(steps=50).fit(x, np.sin(x[:, 0]))
    >>> mean, std = model.predict([[1.5], [60.0]], return_std=True)
    >>> bool(std[0] < 0.1 < std[1])
    True
    """

    def __init__(
        self,
        kernel: TrainableKernel | None = None,
        *,
        noise_variance: float = 0.1,
        steps: int = 100,
        num_starts: int = 1,
        random_state: int = 0,
    ) -> None:
        self.kernel = kernel
        self.noise_variance = noise_variance
        self.steps = steps
        self.num_starts = num_starts
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> "GPRegressor":
        """Learn the hyperparameters and condition on all rows."""
        rows, targets = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        x, t = torch.tensor(rows), torch.tensor(targets, dtype=torch.float64)
        self.y_mean_, self.y_std_ = float(t.mean()), float(t.std(correction=0)) or 1.0
        t = (t - self.y_mean_) / self.y_std_
        kernel = ScaledKernel(RBFKernel(typical_distance(x))) if self.kernel is None else self.kernel
        noise = self.noise_variance
        if self.steps:
            generator = torch.Generator().manual_seed(self.random_state)
            learned = learn_hyperparameters(
                kernel, x, t, noise_variance=noise, num_starts=self.num_starts, steps=self.steps, generator=generator
            )
            kernel, noise = learned.kernel, learned.noise_variance
        self.model_ = GPRegression.fit(kernel, x, t, noise_variance=noise)
        self.kernel_, self.noise_variance_ = kernel, noise * self.y_std_**2
        self.log_marginal_likelihood_value_ = float(self.model_.log_marginal_likelihood().detach())
        return self

    def predict(self, X: ArrayLike, *, return_std: bool = False) -> Any:
        """The predictive mean at the rows of X, and with `return_std` the standard deviation of a target there."""
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        prediction = self.model_.predict(torch.tensor(rows))
        mean: NDArray[Any] = self.y_mean_ + self.y_std_ * prediction.mean.numpy()
        return (mean, self.y_std_ * prediction.target_variance.sqrt().numpy()) if return_std else mean
