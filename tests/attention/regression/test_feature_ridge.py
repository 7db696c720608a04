"""Ridge regression against scikit-learn, and against its dual."""

import pytest
import torch
from sklearn.kernel_ridge import KernelRidge as Reference
from sklearn.linear_model import Ridge

from parnassus.attention import FeatureRidge, KernelRidge


def test_it_is_the_ridge_of_scikit_learn() -> None:
    torch.manual_seed(0)
    psi, y, new = torch.randn(30, 7).double(), torch.randn(30, 2).double(), torch.randn(5, 7).double()
    reference = Ridge(alpha=30 * 0.1, fit_intercept=False).fit(psi.numpy(), y.numpy())
    ours = FeatureRidge.fit(psi, y, penalty=0.1).predict(new)
    torch.testing.assert_close(ours, torch.from_numpy(reference.predict(new.numpy())))


def test_it_is_the_kernel_ridge_of_scikit_learn() -> None:
    torch.manual_seed(0)
    x, y, new = torch.randn(30, 3).double(), torch.randn(30, 1).double(), torch.randn(5, 3).double()
    reference = Reference(alpha=30 * 0.1, kernel="rbf", gamma=0.5).fit(x.numpy(), y.numpy())
    gram, ahead = (torch.exp(-0.5 * torch.cdist(part, x).square()) for part in (x, new))
    ours = KernelRidge.fit(gram, y, penalty=0.1).predict(ahead)
    torch.testing.assert_close(ours, torch.from_numpy(reference.predict(new.numpy())))


def test_invalid_arguments_raise() -> None:
    with pytest.raises(ValueError, match="a positive penalty are needed; got 3 examples, penalty=0"):
        FeatureRidge.fit(torch.ones(3, 2), torch.ones(3, 1), penalty=0.0)
    with pytest.raises(ValueError, match="must be positive definite"):
        KernelRidge.fit(-torch.eye(3), torch.ones(3, 1), penalty=0.1)
