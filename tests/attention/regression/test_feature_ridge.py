"""Feature and kernel ridge regression compared with scikit-learn."""

import pytest
import torch
from sklearn.kernel_ridge import KernelRidge as SklearnKernelRidge
from sklearn.linear_model import Ridge

from parnassus.attention import FeatureRidge, KernelRidge


def test_feature_ridge_matches_scikit_learn() -> None:
    torch.manual_seed(0)
    psi, y, new = torch.randn(30, 7).double(), torch.randn(30, 2).double(), torch.randn(5, 7).double()
    reference = Ridge(alpha=30 * 0.1, fit_intercept=False).fit(psi.numpy(), y.numpy())
    actual = FeatureRidge.fit(psi, y, penalty=0.1).predict(new)
    torch.testing.assert_close(actual, torch.from_numpy(reference.predict(new.numpy())))


def test_kernel_ridge_matches_scikit_learn() -> None:
    torch.manual_seed(0)
    x, y, new = torch.randn(30, 3).double(), torch.randn(30, 1).double(), torch.randn(5, 3).double()
    reference = SklearnKernelRidge(alpha=30 * 0.1, kernel="rbf", gamma=0.5).fit(x.numpy(), y.numpy())
    gram, cross_gram = (torch.exp(-0.5 * torch.cdist(part, x).square()) for part in (x, new))
    actual = KernelRidge.fit(gram, y, penalty=0.1).predict(cross_gram)
    torch.testing.assert_close(actual, torch.from_numpy(reference.predict(new.numpy())))


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match="a positive penalty are needed; got 3 examples, penalty=0"):
        FeatureRidge.fit(torch.ones(3, 2), torch.ones(3, 1), penalty=0.0)
    with pytest.raises(ValueError, match="must be positive definite"):
        KernelRidge.fit(-torch.eye(3), torch.ones(3, 1), penalty=0.1)
