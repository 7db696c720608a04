"""PCA compared with scikit-learn and known values."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from sklearn import decomposition
from torch import Tensor

from parnassus.latent.linear.covariance_spectrum import Spectrum, spectrum_by_eigh, spectrum_by_svd
from parnassus.latent.linear.pca import PCA


def random_data(rows: int, features: int) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    mixing = torch.randn(features, features, generator=generator, dtype=torch.float64)
    return torch.randn(rows, features, generator=generator, dtype=torch.float64) @ mixing + 7


SOLVERS = [spectrum_by_eigh, spectrum_by_svd]


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(("rows", "features"), [(50, 6), (5, 9)])
def test_fit_matches_scikit_learn(solver: Callable[[Tensor], Spectrum], rows: int, features: int) -> None:
    x = random_data(rows, features)
    pca = PCA.fit(x, 3, solver=solver)
    reference = decomposition.PCA(3, svd_solver="full").fit(x.numpy())
    signs = np.sign(np.sum(pca.components.numpy().T * reference.components_, 1))
    np.testing.assert_allclose(pca.components.numpy().T * signs[:, None], reference.components_, atol=1e-9)
    np.testing.assert_allclose(pca.transform(x).numpy() * signs, reference.transform(x.numpy()), atol=1e-8)
    np.testing.assert_allclose(
        pca.explained_variance.numpy() * rows / (rows - 1), reference.explained_variance_, rtol=1e-9
    )
    np.testing.assert_allclose(pca.explained_variance_ratio.numpy(), reference.explained_variance_ratio_, rtol=1e-9)


def test_points_on_a_line_are_reconstructed_exactly() -> None:
    x = torch.tensor([[0.0, 1.0], [3.0, 5.0], [6.0, 9.0]], dtype=torch.float64)
    pca = PCA.fit(x, 1)
    torch.testing.assert_close(pca.components[:, 0], torch.tensor([0.6, 0.8], dtype=torch.float64))
    torch.testing.assert_close(pca.transform(x)[:, 0], torch.tensor([-5.0, 0.0, 5.0], dtype=torch.float64))
    torch.testing.assert_close(pca.reconstruct(x), x)
    assert abs(float(pca.residual_variance)) < 1e-12


def test_all_components_reconstruct_exactly() -> None:
    x = random_data(40, 5)
    torch.testing.assert_close(PCA.fit(x, 5).reconstruct(x), x)


def test_float32_data_are_fitted_in_float64() -> None:
    """Uncentred sums in float32 would lose the covariance."""
    x = random_data(200, 4)
    exact, single = PCA.fit(x, 2), PCA.fit(x.float(), 2)
    assert single.components.dtype == torch.float32
    torch.testing.assert_close(single.components.double(), exact.components, atol=1e-5, rtol=0)


def test_svd_solver_resolves_small_variances() -> None:
    """A standard deviation of 1e-9 next to 1: λ = 1e-18 is below the precision of a covariance matrix."""
    generator = torch.Generator().manual_seed(0)
    scales = torch.tensor([1.0, 1e-9], dtype=torch.float64)
    x = torch.randn(100, 2, generator=generator, dtype=torch.float64) * scales
    rotation = torch.tensor([[0.6, 0.8], [-0.8, 0.6]], dtype=torch.float64)
    eigenvalues, _ = spectrum_by_svd(x @ rotation).pairs
    torch.testing.assert_close(eigenvalues[1].sqrt(), x[:, 1].std(correction=0), rtol=0.05, atol=0)


@pytest.mark.parametrize("latent", [0, 7])
def test_invalid_number_of_components_raises_value_error(latent: int) -> None:
    with pytest.raises(
        ValueError, match=f"between 1 and the number of features; got num_components={latent}, features=6"
    ):
        PCA.fit(random_data(20, 6), latent)


def test_truncate_matches_a_fit_with_fewer_components() -> None:
    x = random_data(50, 6)
    truncated, fitted = PCA.fit(x, 6).truncate(2), PCA.fit(x, 2)
    torch.testing.assert_close(truncated.components, fitted.components)
    torch.testing.assert_close(truncated.explained_variance_ratio, fitted.explained_variance_ratio)
    torch.testing.assert_close(truncated.residual_variance, fitted.residual_variance)
    with pytest.raises(ValueError, match="between 1 and the 2 fitted; got num_components=3"):
        truncated.truncate(3)


@pytest.mark.parametrize("latent", [6, 4])
def test_reconstruction_errors_match_truncated_fits(latent: int) -> None:
    """Includes truncated fits; errors are never negative."""
    pca, unseen = PCA.fit(random_data(50, 6), latent), random_data(80, 6)[50:]
    errors = pca.reconstruction_errors(unseen)
    assert errors.shape == (30, latent)
    for size in range(1, latent + 1):
        expected = (unseen - pca.truncate(size).reconstruct(unseen)).square().sum(1)
        torch.testing.assert_close(errors[:, size - 1], expected, atol=1e-10, rtol=1e-8)
    assert float(errors.min()) >= 0
