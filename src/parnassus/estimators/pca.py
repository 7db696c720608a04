"""Principal component analysis with scikit-learn's interface."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from parnassus.arrays import ArrayLike
from parnassus.latent.linear import pca
from parnassus.latent.linear.covariance_spectrum import spectrum_by_svd
from parnassus.latent.linear.probabilistic_pca import PPCA
from parnassus.probability import normal_log_density


class PCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]  # untyped
    """Principal components: `parnassus.latent.PCA` with the names and conventions of scikit-learn (book sec. 4.3).

    `n_components` is by default the smaller of the numbers of rows and columns. `explained_variance_` divides by the
    number of rows minus one, as scikit-learn does; the rows of `components_` are the components.

    >>> from sklearn.datasets import load_iris
    >>> from parnassus.estimators import PCA
    >>> pca = PCA(n_components=2).fit(load_iris().data)
    >>> pca.explained_variance_ratio_.round(2).tolist()
    [0.92, 0.05]
    >>> pca.inverse_transform(pca.transform(load_iris().data)).shape
    (150, 4)
    """

    def __init__(self, n_components: int | None = None) -> None:
        self.n_components = n_components

    def fit(self, X: ArrayLike, y: object = None) -> "PCA":  # noqa: ARG002 - scikit-learn's convention
        """Fit the rows of X."""
        rows = validate_data(self, X, dtype=[np.float64, np.float32], ensure_min_samples=2)
        count = min(rows.shape) if self.n_components is None else self.n_components
        if not 1 <= count <= min(rows.shape):
            raise ValueError(f"n_components must lie between 1 and min{rows.shape}; got n_components={count}")
        self.model_ = pca.PCA.fit(torch.from_numpy(rows.copy()), count, solver=spectrum_by_svd)
        self.n_components_ = count
        self.mean_, self.components_ = self.model_.mean.numpy(), self.model_.components.mT.numpy()
        self.explained_variance_ = self.model_.explained_variance.numpy() * len(rows) / (len(rows) - 1)
        self.explained_variance_ratio_ = self.model_.explained_variance_ratio.numpy()
        self.singular_values_ = np.sqrt(self.explained_variance_ * (len(rows) - 1))
        return self

    def transform(self, X: ArrayLike) -> NDArray[Any]:
        """Coordinates of the rows of X along the components."""
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        return self.model_.transform(torch.tensor(rows)).numpy().astype(rows.dtype, copy=False)

    def inverse_transform(self, X: ArrayLike) -> NDArray[Any]:
        """Rows from their coordinates; with fewer components than columns, projections."""
        check_is_fitted(self)
        return self.model_.inverse_transform(torch.tensor(np.asarray(X))).numpy()

    def score(self, X: ArrayLike, y: object = None) -> float:  # noqa: ARG002 - scikit-learn's convention
        """The mean log-likelihood of the rows of X under probabilistic PCA (book sec. 5.1)."""
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        x = torch.tensor(rows)
        if self.n_components_ < x.shape[1]:
            return float(PPCA.from_pca(self.model_).log_prob(x).mean())
        codes = self.model_.transform(x)  # all components: a Gaussian with the covariance of the training data
        return float(normal_log_density(codes, mean=0.0, variance=self.model_.explained_variance).sum(1).mean())

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components_)
