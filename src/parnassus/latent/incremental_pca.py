"""PCA of data larger than memory: rows come in batches, and one pass over them is enough (book sec. 4.3)."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Shaped
from torch import Tensor

from parnassus.latent.moments import Moments
from parnassus.latent.pca import PCA
from parnassus.latent.spectrum import spectrum_of


def moments_of_batches(batches: Iterable[Shaped[Tensor, "_count features"]]) -> Moments:
    """Mean and scatter of all rows of all batches; each batch may be forgotten once it is counted.

    Whole numbers (the bytes of images) are counted exactly, in float64.
    """
    seen: Moments | None = None
    for batch in batches:
        new = Moments.of(batch if batch.is_floating_point() else batch.double())
        seen = new if seen is None else seen + new
    if seen is None:
        raise ValueError("moments need at least one batch; there was none")
    return seen


def pca_of_batches(batches: Iterable[Shaped[Tensor, "_count features"]], latent: int) -> PCA:
    """The PCA of all rows together, in float64: the fit in memory, not an approximation to it (book sec. 4.3).

    Memory holds one batch and a features × features matrix, however many rows there are.
    """
    return PCA.from_spectrum(spectrum_of(moments_of_batches(batches), latent), latent)


def rows_from_disk(path: Path, *, batch: int = 8_192) -> Iterator[Shaped[Tensor, "count features"]]:
    """Batches of the array in a .npy file, each read when it is asked for; examples of several axes are flattened.

    The file is opened anew for every batch: a map that stays open keeps the pages it has read in memory.
    """
    shape = np.load(path, mmap_mode="r").shape
    if len(shape) < 2 or batch < 1:
        raise ValueError(f"need a file of rows and batch ≥ 1; got an array of shape {shape}, batch={batch}")
    for start in range(0, shape[0], batch):
        yield torch.from_numpy(np.array(np.load(path, mmap_mode="r")[start : start + batch])).flatten(1)
