"""A variational autoencoder with scikit-learn's interface."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from parnassus.arrays import ArrayLike
from parnassus.estimators.training import Trained, temporary_seed
from parnassus.latent import GaussianDecoder, mlp_decoder, mlp_encoder
from parnassus.latent.variational import vae
from parnassus.layers import Standardiser


class VAE(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Trained, BaseEstimator):  # type: ignore[misc]  # untyped
    """A variational autoencoder of rows, with a Gaussian decoder of learned standard deviation (book sec. 6.3).

    `transform` gives the posterior means of the codes, `inverse_transform` decodes them. Features are standardised by
    the training data. For images as arrays of several axes, flatten them: `images.reshape(len(images), -1)`.

    >>> from sklearn.datasets import load_digits
    >>> from parnassus.estimators import VAE
    >>> x = load_digits().data
    >>> model = VAE(latent_dim=2, hidden=32, steps=50, verbose=False).fit(x)
    >>> model.transform(x).shape, model.sample(3).shape
    ((1797, 2), (3, 64))
    """

    def __init__(
        self,
        latent_dim: int = 2,
        *,
        hidden: int = 256,
        steps: int = 2_000,
        batch_size: int = 128,
        learning_rate: float = 1e-3,
        random_state: int = 0,
        device: str = "auto",
        verbose: bool = True,
    ) -> None:
        self.latent_dim = latent_dim
        self.hidden = hidden
        self.steps = steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def fit(self, X: ArrayLike, y: object = None) -> "VAE":  # noqa: ARG002 - scikit-learn's convention
        """Train from new random weights."""
        x = torch.tensor(validate_data(self, X, dtype=np.float64))
        self.scaler_ = Standardiser.fit(x)
        shape = (x.shape[1],)
        self.network_ = self._train(
            lambda: vae.VAE(
                mlp_encoder(shape, 2 * self.latent_dim, width=self.hidden),
                GaussianDecoder(mlp_decoder(self.latent_dim, shape, width=self.hidden)),
                self.latent_dim,
            ),
            self.scaler_.transform(x).float(),
        )
        return self

    def transform(self, X: ArrayLike) -> NDArray[Any]:
        """The posterior mean of the code of each row of X."""
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        with torch.no_grad():
            codes = self.network_.encode(self.scaler_.transform(torch.tensor(rows)))
        return codes.numpy().astype(rows.dtype, copy=False)

    def inverse_transform(self, X: ArrayLike) -> NDArray[Any]:
        """The mean of p(x|z) for the codes in the rows of X."""
        check_is_fitted(self)
        with torch.no_grad():
            return self.scaler_.inverse_transform(self.network_.decode(torch.tensor(np.asarray(X)))).numpy()

    def sample(self, count: int = 1, *, random_state: int | None = None) -> NDArray[Any]:
        """New rows: codes from the prior, rows from the decoder."""
        check_is_fitted(self)
        with temporary_seed(random_state):
            return self.scaler_.inverse_transform(self.network_.sample(count)).numpy()

    def score(self, X: ArrayLike, y: object = None) -> float:  # noqa: ARG002 - scikit-learn's convention
        """An importance-sampling estimate of the mean log-likelihood of the rows of X, in their units."""
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        with temporary_seed(self.random_state):
            log_prob = self.network_.log_prob(self.scaler_.transform(torch.tensor(rows)))
        return float(log_prob.mean() - self.scaler_.std.log().sum())

    @property
    def _n_features_out(self) -> int:
        return self.latent_dim
