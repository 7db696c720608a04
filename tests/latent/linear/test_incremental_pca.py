"""Incremental PCA equals the PCA of all rows, with constant memory."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn import decomposition

from parnassus.data import load_digits
from parnassus.latent.linear.incremental_pca import covariance_of_batches, incremental_pca, read_npy_batches
from parnassus.latent.linear.pca import PCA

DIGITS = load_digits().train.x.flatten(1).double()


@pytest.mark.parametrize("batch", [1, 7, 100, 5_000])
def test_batched_fit_matches_the_fit_in_memory(batch: int) -> None:
    streamed, in_memory = incremental_pca(DIGITS.split(batch), 5), PCA.fit(DIGITS, 5)
    torch.testing.assert_close(streamed.mean, in_memory.mean)
    torch.testing.assert_close(streamed.components, in_memory.components, atol=1e-9, rtol=0)
    torch.testing.assert_close(streamed.eigenvalues, in_memory.eigenvalues, atol=1e-12, rtol=1e-9)


def test_fit_matches_scikit_learn_pca_more_closely_than_its_incremental_pca() -> None:
    streamed = incremental_pca(DIGITS.split(100), 5)
    exact = decomposition.PCA(5, svd_solver="full").fit(DIGITS.numpy())
    truncated = decomposition.IncrementalPCA(5, batch_size=100).fit(DIGITS.numpy())
    scale = len(DIGITS) / (len(DIGITS) - 1)
    np.testing.assert_allclose(streamed.explained_variance.numpy() * scale, exact.explained_variance_, rtol=1e-9)
    assert np.abs(truncated.explained_variance_ / exact.explained_variance_ - 1).max() > 1e-4


def test_covariance_of_uint8_files_is_exact(tmp_path: Path) -> None:
    images = np.random.default_rng(0).integers(0, 256, (1_000, 4, 4), dtype=np.uint8)
    np.save(tmp_path / "images.npy", images)
    moments = covariance_of_batches(read_npy_batches(tmp_path / "images.npy", batch_size=64))
    rows = images.reshape(1_000, 16).astype(float)
    np.testing.assert_allclose(moments.mean.numpy(), rows.mean(0), rtol=1e-14)
    np.testing.assert_allclose(moments.covariance.numpy(), np.cov(rows.T, bias=True), rtol=1e-10, atol=1e-9)


def test_sorted_rows_do_not_change_the_fit() -> None:
    """Batches of rows sorted by size have very different means."""
    x = DIGITS[DIGITS.sum(1).argsort()] * torch.linspace(1, 50, len(DIGITS), dtype=torch.float64)[:, None]
    torch.testing.assert_close(covariance_of_batches(x.split(10)).covariance.numpy(), np.cov(x.numpy().T, bias=True))


SCRIPT = """
import resource, sys
from pathlib import Path
from parnassus.latent import incremental_pca, read_npy_batches
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
small, large = map(Path, sys.argv[1:])
incremental_pca(read_npy_batches(small, batch_size=2_048), 3)
before = peak()
incremental_pca(read_npy_batches(large, batch_size=2_048), 3)
print(peak() - before)
"""


def test_memory_does_not_grow_with_the_number_of_rows(tmp_path: Path) -> None:
    """Peak memory for 200 MB is about that for 4 MB."""
    paths = [tmp_path / "small.npy", tmp_path / "large.npy"]
    for path, rows in zip(paths, (4_096, 200_000), strict=True):
        np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(rows, 256))
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT, *map(str, paths)], capture_output=True, text=True, check=True
    )
    assert float(result.stdout) < 30  # MiB


def test_invalid_batches_raise(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="at least one batch; got none"):
        incremental_pca([], 2)
    np.save(tmp_path / "line.npy", np.zeros(5))
    with pytest.raises(ValueError, match=r"got shape \(5,\), batch_size=8192"):
        list(read_npy_batches(tmp_path / "line.npy"))
    with pytest.raises(ValueError, match="as many features; got 3 and 4"):
        incremental_pca([torch.ones(2, 3), torch.ones(2, 4)], 2)
