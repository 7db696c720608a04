"""A neural-network regressor with scikit-learn's interface."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor, nn

from parnassus.arrays import ArrayLike
from parnassus.estimators.training import Trained
from parnassus.layers import Standardiser, mlp
from parnassus.losses import mean_squared_error


class MLPRegression(nn.Module):
    """A multilayer perceptron with the mean squared error (book eq. 1.12)."""

    def __init__(self, sizes: Sequence[int]) -> None:
        super().__init__()
        self.network = mlp(sizes)

    def forward(self, x: Float[Tensor, "batch features"]) -> Float[Tensor, "batch outputs"]:
        outputs: Tensor = self.network(x)
        return outputs

    def loss(self, x: Float[Tensor, "batch features"], y: Float[Tensor, "batch outputs"]) -> Float[Tensor, ""]:
        return mean_squared_error(self(x), y)


class Regressor(MultiOutputMixin, RegressorMixin, Trained, BaseEstimator):  # type: ignore[misc]  # untyped
    """A multilayer perceptron trained on the squared error (book sec. 1.3); targets may have several columns.

    Features and targets are standardised by the training data.

    >>> import numpy as np
    >>> from parnassus.estimators import Regressor
    >>> x = np.linspace(-2, 2, 100)[:, None]
    >>> model = Regressor(hidden=(32,), steps=300, learning_rate=1e-2, verbose=False).fit(x, x[:, 0] ** 2)
    >>> bool(model.score(x, x[:, 0] ** 2) > 0.9)
    True
    """

    def __init__(
        self,
        hidden: Sequence[int] = (256, 256),
        *,
        steps: int = 1_000,
        batch_size: int = 64,
        learning_rate: float = 1e-3,
        random_state: int = 0,
        device: str = "auto",
        verbose: bool = True,
    ) -> None:
        self.hidden = hidden
        self.steps = steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def fit(self, X: ArrayLike, y: ArrayLike) -> "Regressor":
        """Train from new random weights."""
        rows, targets = validate_data(self, X, y, dtype=np.float64, multi_output=True, y_numeric=True)
        x, t = torch.tensor(rows), torch.tensor(targets, dtype=torch.float64).reshape(len(rows), -1)
        self.scaler_, self.target_scaler_, self._is_vector = Standardiser.fit(x), Standardiser.fit(t), targets.ndim == 1
        sizes = (x.shape[1], *self.hidden, t.shape[1])
        self.network_ = self._train(
            lambda: MLPRegression(sizes), self.scaler_.transform(x).float(), self.target_scaler_.transform(t).float()
        )
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The outputs for the rows of X."""
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        with torch.no_grad():
            outputs = self.network_(self.scaler_.transform(torch.tensor(rows)))
        values = self.target_scaler_.inverse_transform(outputs)
        return (values[:, 0] if self._is_vector else values).numpy()
