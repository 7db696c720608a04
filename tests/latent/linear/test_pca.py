"""PCA against scikit-learn, singular values and hand calculations."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from sklearn import decomposition
from torch import Tensor

from parnassus.latent.linear.covariance_spectrum import Spectrum, spectrum_by_eigh, spectrum_by_svd
from parnassus.latent.linear.pca import PCA


def cloud(rows: int, features: int) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    mix = torch.randn(features, features, generator=generator, dtype=torch.float64)
    return torch.randn(rows, features, generator=generator, dtype=torch.float64) @ mix + 7


SOLVERS = [spectrum_by_eigh, spectrum_by_svd]


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(("rows", "features"), [(50, 6), (5, 9)])
def test_scikit_learn_agrees(solver: Callable[[Tensor], Spectrum], rows: int, features: int) -> None:
    x = cloud(rows, features)
    ours = PCA.fit(x, 3, solver=solver)
    theirs = decomposition.PCA(3, svd_solver="full").fit(x.numpy())
    signs = np.sign(np.sum(ours.components.numpy().T * theirs.components_, 1))
    np.testing.assert_allclose(ours.components.numpy().T * signs[:, None], theirs.components_, atol=1e-9)
    np.testing.assert_allclose(ours.transform(x).numpy() * signs, theirs.transform(x.numpy()), atol=1e-8)
    np.testing.assert_allclose(
        ours.explained_variance.numpy() * rows / (rows - 1), theirs.explained_variance_, rtol=1e-9
    )
    np.testing.assert_allclose(ours.explained_variance_ratio.numpy(), theirs.explained_variance_ratio_, rtol=1e-9)


def test_a_line_in_the_plane_is_found_exactly() -> None:
    x = torch.tensor([[0.0, 1.0], [3.0, 5.0], [6.0, 9.0]], dtype=torch.float64)
    pca = PCA.fit(x, 1)
    torch.testing.assert_close(pca.components[:, 0], torch.tensor([0.6, 0.8], dtype=torch.float64))
    torch.testing.assert_close(pca.transform(x)[:, 0], torch.tensor([-5.0, 0.0, 5.0], dtype=torch.float64))
    torch.testing.assert_close(pca.reconstruct(x), x)
    assert abs(float(pca.residual_variance)) < 1e-12


def test_all_components_reconstruct_exactly() -> None:
    x = cloud(40, 5)
    torch.testing.assert_close(PCA.fit(x, 5).reconstruct(x), x)


def test_single_precision_data_are_fitted_in_double() -> None:
    """A mean of 1e4 beside a spread of 1 would drown in a float32 covariance of uncentred sums."""
    x = cloud(200, 4)
    exact, single = PCA.fit(x, 2), PCA.fit(x.float(), 2)
    assert single.components.dtype == torch.float32
    torch.testing.assert_close(single.components.double(), exact.components, atol=1e-5, rtol=0)


def test_small_variances_survive_in_the_singular_values() -> None:
    """A direction of standard deviation 1e-9 beside 1: λ = 1e-18 is below what a covariance can hold."""
    generator = torch.Generator().manual_seed(0)
    scales = torch.tensor([1.0, 1e-9], dtype=torch.float64)
    x = torch.randn(100, 2, generator=generator, dtype=torch.float64) * scales
    rotation = torch.tensor([[0.6, 0.8], [-0.8, 0.6]], dtype=torch.float64)
    eigenvalues, _ = spectrum_by_svd(x @ rotation).pairs
    torch.testing.assert_close(eigenvalues[1].sqrt(), x[:, 1].std(correction=0), rtol=0.05, atol=0)


@pytest.mark.parametrize("latent", [0, 7])
def test_more_components_than_features_raise(latent: int) -> None:
    with pytest.raises(
        ValueError, match=f"between 1 and the number of features; got num_components={latent}, features=6"
    ):
        PCA.fit(cloud(20, 6), latent)


def test_fewer_components_of_a_fit_are_the_fit_of_fewer() -> None:
    x = cloud(50, 6)
    kept, fitted = PCA.fit(x, 6).truncate(2), PCA.fit(x, 2)
    torch.testing.assert_close(kept.components, fitted.components)
    torch.testing.assert_close(kept.explained_variance_ratio, fitted.explained_variance_ratio)
    torch.testing.assert_close(kept.residual_variance, fitted.residual_variance)
    with pytest.raises(ValueError, match="between 1 and the 2 fitted; got num_components=3"):
        kept.truncate(3)


@pytest.mark.parametrize("latent", [6, 4])
def test_errors_of_all_sizes_are_those_of_each(latent: int) -> None:
    """Also where the fit itself leaves something out; without rounding below zero."""
    pca, unseen = PCA.fit(cloud(50, 6), latent), cloud(80, 6)[50:]
    errors = pca.reconstruction_errors(unseen)
    assert errors.shape == (30, latent)
    for size in range(1, latent + 1):
        expected = (unseen - pca.truncate(size).reconstruct(unseen)).square().sum(1)
        torch.testing.assert_close(errors[:, size - 1], expected, atol=1e-10, rtol=1e-8)
    assert float(errors.min()) >= 0
