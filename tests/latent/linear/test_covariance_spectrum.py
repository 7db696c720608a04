"""Randomised SVD compared with exact solvers."""

from functools import partial

import pytest
import torch
from torch import Tensor

from parnassus.latent.linear.covariance_spectrum import spectrum_by_eigh, spectrum_by_randomised_svd, spectrum_by_svd
from parnassus.latent.linear.pca import PCA
from parnassus.latent.linear.projection import principal_angles
from parnassus.probability import standard_normal


def wide_data(dtype: torch.dtype = torch.float64, *, mean: float = 0.3) -> Tensor:
    """60 rows in 500 dimensions along 40 directions with standard deviations from 10 to 0.01."""
    generator = torch.Generator().manual_seed(0)
    axes: Tensor = torch.linalg.qr(torch.randn(500, 40, generator=generator, dtype=torch.float64))[0]
    deviations = torch.logspace(1, -2, 40, dtype=torch.float64)
    return (torch.randn(60, 40, generator=generator, dtype=torch.float64) * deviations @ axes.mT + mean).to(dtype)


@pytest.mark.parametrize(("dtype", "accuracy"), [(torch.float64, 1e-6), (torch.float32, 1e-4)])
def test_randomised_svd_matches_the_leading_eigenpairs(dtype: torch.dtype, accuracy: float) -> None:
    x = wide_data(dtype)
    sketch, exact = spectrum_by_randomised_svd(x, 5, num_iterations=6, oversampling=10), spectrum_by_svd(x)
    assert sketch.eigenvectors.shape == (500, 5)
    torch.testing.assert_close(sketch.eigenvalues, exact.eigenvalues[:5], rtol=accuracy, atol=0)
    assert principal_angles(sketch.eigenvectors, exact.eigenvectors[:, :5]).max() < accuracy**0.5
    torch.testing.assert_close(sketch.remaining_variance, exact.eigenvalues[5:].sum(), rtol=10 * accuracy, atol=0)
    torch.testing.assert_close(sketch.mean, exact.mean, rtol=1e-5, atol=1e-6)


def test_more_iterations_reduce_the_error() -> None:
    x, exact = wide_data(), spectrum_by_svd(wide_data()).eigenvalues[:5]
    errors = [
        float((spectrum_by_randomised_svd(x, 5, num_iterations=r, oversampling=2).eigenvalues / exact - 1).abs().max())
        for r in (0, 1, 3)
    ]
    assert errors[0] > 10 * errors[1] > 100 * errors[2]


def test_randomised_pca_has_the_exact_residual_variance() -> None:
    x = wide_data()
    sketched = PCA.fit(x, 5, solver=partial(spectrum_by_randomised_svd, num_components=8, num_iterations=6))
    exact = PCA.fit(x, 5, solver=spectrum_by_svd)
    torch.testing.assert_close(sketched.residual_variance, exact.residual_variance, rtol=1e-5, atol=0)
    torch.testing.assert_close(sketched.explained_variance_ratio, exact.explained_variance_ratio, rtol=1e-6, atol=0)
    error = (x - sketched.reconstruct(x)).square().sum(1).mean()
    torch.testing.assert_close(error, sketched.residual_variance, rtol=1e-5, atol=0)
    torch.testing.assert_close(
        sketched.truncate(2).residual_variance, exact.truncate(2).residual_variance, rtol=1e-5, atol=0
    )


def test_randomised_svd_is_exact_for_few_features() -> None:
    x = standard_normal(300, 12, seed=1)
    sketch, exact = spectrum_by_randomised_svd(x, 3), spectrum_by_eigh(x)
    torch.testing.assert_close(sketch.eigenvalues, exact.eigenvalues[:3])
    torch.testing.assert_close(sketch.remaining_variance, exact.eigenvalues[3:].sum())


def test_randomised_svd_is_deterministic_for_a_seed() -> None:
    torch.testing.assert_close(
        spectrum_by_randomised_svd(wide_data(), 3).eigenvectors, spectrum_by_randomised_svd(wide_data(), 3).eigenvectors
    )


def test_invalid_arguments_raise() -> None:
    with pytest.raises(ValueError, match="1 ≤ num_components ≤ features; got num_components=0"):
        spectrum_by_randomised_svd(wide_data(), 0)
    with pytest.raises(ValueError, match="must not be negative; got oversampling=-1, num_iterations=2"):
        spectrum_by_randomised_svd(wide_data(), 3, oversampling=-1, num_iterations=2)
    with pytest.raises(ValueError, match=r"finite in torch.float64; some are not"):
        spectrum_by_randomised_svd(wide_data().index_fill(0, torch.tensor(0), float("inf")), 2, oversampling=0)
    with pytest.raises(ValueError, match="between 1 and the 3 eigenvectors computed; got num_components=5"):
        PCA.fit(wide_data(), 5, solver=partial(spectrum_by_randomised_svd, num_components=3))
