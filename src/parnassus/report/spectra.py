"""Kernels by their eigenvalues and eigenvectors: how large, how soon learned, and what they tell apart."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from parnassus.report.ink import as_array, colours, subplots
from parnassus.report.plots import image_grid

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def spectrum_plot(
    eigenvalues: Mapping[str, object], times: object, left: Mapping[str, tuple[object, object]]
) -> "Figure":
    """Eigenvalues of several kernels; beside them, of each, what is left of its targets and of the same shuffled."""
    figure, axes = subplots(1, 2, size=(9.0, 3.8))
    for (name, values), colour in zip(eigenvalues.items(), colours(len(eigenvalues)), strict=True):
        falling = as_array(values)
        positive = falling[falling > 1e-12 * falling[0]]
        axes[0, 0].loglog(np.arange(1, len(positive) + 1), positive, color=colour, label=name)
        for share, style, what in zip(left[name], ("-", ":"), ("", ", random order"), strict=True):
            axes[0, 1].semilogx(as_array(times), as_array(share), style, color=colour, label=name + what)
    axes[0, 0].set(xlabel="i", ylabel="eigenvalue λ_i")
    axes[0, 1].set(xlabel="time of gradient flow × mean eigenvalue", ylabel="‖y − u(t)‖² / ‖y‖²", ylim=(0, 1.02))
    axes[0, 0].legend()
    axes[0, 1].legend(loc="lower left", fontsize=8)
    return figure


def eigenvector_pictures(eigenvectors: object, pictures: object, *, count: int = 6, each: int = 5) -> "Figure":
    """For the first columns of `eigenvectors`, the pictures with the lowest entries, then those with the highest."""
    vectors, images = as_array(eigenvectors), as_array(pictures)
    if len(vectors) != len(images):
        raise ValueError(f"an eigenvector needs an entry a picture; got {len(vectors)} entries, {len(images)} pictures")
    orders = [np.argsort(vector) for vector in vectors.T[:count]]
    rows = np.concatenate([np.concatenate([order[:each], order[-each:]]) for order in orders])
    return image_grid(images[rows], columns=2 * each, row_labels=[f"u_{index + 1}" for index in range(len(orders))])
