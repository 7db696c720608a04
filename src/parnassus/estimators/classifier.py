"""A neural-network classifier with scikit-learn's interface."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from parnassus.arrays import ArrayLike
from parnassus.estimators.training import Trained
from parnassus.layers import Standardiser, dense_classifier
from parnassus.losses import softmax


class Classifier(ClassifierMixin, Trained, BaseEstimator):  # type: ignore[misc]  # untyped
    """A multilayer perceptron trained on the cross-entropy (book sec. 1.4); rows may be tables, images or text labels.

    Features are standardised by the training data. Progress is shown while it trains, unless `verbose=False`.

    >>> from sklearn.datasets import load_iris
    >>> from parnassus.estimators import Classifier
    >>> x, y = load_iris(return_X_y=True)
    >>> model = Classifier(hidden=(32,), steps=200, learning_rate=1e-2, verbose=False).fit(x, y)
    >>> bool(model.score(x, y) > 0.9)
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

    def fit(self, X: ArrayLike, y: ArrayLike) -> "Classifier":
        """Train from new random weights; labels may be numbers or text."""
        rows, labels = validate_data(self, X, y, dtype=np.float64, allow_nd=True)
        check_classification_targets(labels)
        self.classes_, indices = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y must have at least two classes; got one class: {self.classes_[0]!r}")
        x = torch.tensor(rows).flatten(1)
        self.scaler_ = Standardiser.fit(x)
        self.network_ = self._train(
            lambda: dense_classifier(x.shape[1], len(self.classes_), hidden=self.hidden),
            self.scaler_.transform(x).float(),
            torch.from_numpy(indices.reshape(-1)),
        )
        return self

    def predict_proba(self, X: ArrayLike) -> NDArray[Any]:
        """The probability of every class for the rows of X, in the order of `classes_`."""
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=np.float64, allow_nd=True, reset=False)
        with torch.no_grad():
            return softmax(self.network_(self.scaler_.transform(torch.tensor(rows).flatten(1)))).numpy()

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The most probable class of each row of X."""
        indices = self.predict_proba(X).argmax(1)
        labels: NDArray[Any] = self.classes_[indices]
        return labels
