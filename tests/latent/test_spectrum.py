"""The sketch against the exact solvers: leading pairs, what is left, and data wider than they are tall."""

from functools import partial

import pytest
import torch
from torch import Tensor

from parnassus.latent.pca import PCA
from parnassus.latent.projection import principal_angles
from parnassus.latent.spectrum import spectrum_by_eigh, spectrum_by_sketch, spectrum_by_svd


def wide(dtype: torch.dtype = torch.float64, *, mean: float = 0.3) -> Tensor:
    """Sixty rows of 500 numbers along 40 directions, deviations from 10 down to 0.01."""
    source = torch.Generator().manual_seed(0)
    axes: Tensor = torch.linalg.qr(torch.randn(500, 40, generator=source, dtype=torch.float64))[0]
    deviations = torch.logspace(1, -2, 40, dtype=torch.float64)
    return (torch.randn(60, 40, generator=source, dtype=torch.float64) * deviations @ axes.mT + mean).to(dtype)


@pytest.mark.parametrize(("dtype", "accuracy"), [(torch.float64, 1e-6), (torch.float32, 1e-4)])
def test_a_sketch_finds_the_leading_pairs(dtype: torch.dtype, accuracy: float) -> None:
    x = wide(dtype)
    sketch, exact = spectrum_by_sketch(x, 5, rounds=6, spare=10), spectrum_by_svd(x)
    assert sketch.eigenvectors.shape == (500, 5)
    torch.testing.assert_close(sketch.eigenvalues, exact.eigenvalues[:5], rtol=accuracy, atol=0)
    assert principal_angles(sketch.eigenvectors, exact.eigenvectors[:, :5]).max() < accuracy**0.5
    torch.testing.assert_close(sketch.rest, exact.eigenvalues[5:].sum(), rtol=10 * accuracy, atol=0)
    torch.testing.assert_close(sketch.mean, exact.mean, rtol=1e-5, atol=1e-6)


def test_more_rounds_come_nearer() -> None:
    x, exact = wide(), spectrum_by_svd(wide()).eigenvalues[:5]
    errors = [
        float((spectrum_by_sketch(x, 5, rounds=r, spare=2).eigenvalues / exact - 1).abs().max()) for r in (0, 1, 3)
    ]
    assert errors[0] > 10 * errors[1] > 100 * errors[2]


def test_a_fit_from_a_sketch_knows_what_it_leaves_out() -> None:
    x = wide()
    sketched = PCA.fit(x, 5, solver=partial(spectrum_by_sketch, leading=8, rounds=6))
    exact = PCA.fit(x, 5, solver=spectrum_by_svd)
    torch.testing.assert_close(sketched.residual, exact.residual, rtol=1e-5, atol=0)
    torch.testing.assert_close(sketched.explained, exact.explained, rtol=1e-6, atol=0)
    error = (x - sketched.reconstruct(x)).square().sum(1).mean()
    torch.testing.assert_close(error, sketched.residual, rtol=1e-5, atol=0)
    torch.testing.assert_close(sketched.keep(2).residual, exact.keep(2).residual, rtol=1e-5, atol=0)


def test_with_few_features_the_sketch_is_exact() -> None:
    x = torch.randn(300, 12, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    sketch, exact = spectrum_by_sketch(x, 3), spectrum_by_eigh(x)
    torch.testing.assert_close(sketch.eigenvalues, exact.eigenvalues[:3])
    torch.testing.assert_close(sketch.rest, exact.eigenvalues[3:].sum())


def test_a_sketch_is_the_same_for_the_same_seed() -> None:
    torch.testing.assert_close(spectrum_by_sketch(wide(), 3).eigenvectors, spectrum_by_sketch(wide(), 3).eigenvectors)


def test_what_cannot_be_sketched_gets_a_sentence() -> None:
    with pytest.raises(ValueError, match="1 ≤ leading ≤ features; got leading=0"):
        spectrum_by_sketch(wide(), 0)
    with pytest.raises(ValueError, match="spare ≥ 0 and rounds ≥ 0; got spare=-1, rounds=2"):
        spectrum_by_sketch(wide(), 3, spare=-1, rounds=2)
    with pytest.raises(ValueError, match=r"finite in torch.float64; some are not"):
        spectrum_by_sketch(wide().index_fill(0, torch.tensor(0), float("inf")), 2, spare=0)
    with pytest.raises(ValueError, match="between 1 and the 3 eigenvectors found; got 5"):
        PCA.fit(wide(), 5, solver=partial(spectrum_by_sketch, leading=3))
