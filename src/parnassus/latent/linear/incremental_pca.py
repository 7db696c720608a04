"""Incremental PCA: an exact fit to data larger than memory, in one pass over batches (book sec. 4.3)."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Shaped
from torch import Tensor

from parnassus.latent.linear.covariance_spectrum import eigendecompose
from parnassus.latent.linear.pca import PCA
from parnassus.latent.linear.running_covariance import RunningCovariance


def covariance_of_batches(batches: Iterable[Shaped[Tensor, "_count features"]]) -> RunningCovariance:
    """Mean and scatter of all rows of all batches, one batch in memory at a time.

    Integers (the bytes of images) are converted to float64, so that their sums are exact.
    """
    total: RunningCovariance | None = None
    for batch in batches:
        new = RunningCovariance.from_rows(batch if batch.is_floating_point() else batch.double())
        total = new if total is None else total + new
    if total is None:
        raise ValueError("a covariance needs at least one batch; got none")
    return total


def incremental_pca(batches: Iterable[Shaped[Tensor, "_count features"]], num_components: int) -> PCA:
    """The PCA of all rows together, in float64: equal to the fit in memory, not an approximation (book sec. 4.3).

    Memory holds one batch and a features × features matrix, regardless of the number of rows.
    """
    return PCA.from_spectrum(eigendecompose(covariance_of_batches(batches), num_components), num_components)


def read_npy_batches(path: Path, *, batch_size: int = 8_192) -> Iterator[Shaped[Tensor, "count features"]]:
    """Batches of the array in a .npy file, read one at a time; examples of several axes are flattened.

    The file is opened anew for every batch: a memory map that stays open keeps the pages it has read in memory.
    """
    shape = np.load(path, mmap_mode="r").shape
    if len(shape) < 2 or batch_size < 1:
        raise ValueError(
            f"need an array of at least two axes and batch_size ≥ 1; got shape {shape}, batch_size={batch_size}"
        )
    for start in range(0, shape[0], batch_size):
        yield torch.from_numpy(np.array(np.load(path, mmap_mode="r")[start : start + batch_size])).flatten(1)
