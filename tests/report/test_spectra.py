"""Pictures of kernels: what is zero is left out, what is lowest stands first."""

import numpy as np
import pytest
import torch

from parnassus.report.spectra import eigenvector_pictures, spectrum_plot


def test_eigenvalues_that_are_rounding_are_not_drawn() -> None:
    times = torch.logspace(-2, 2, 5)
    share = torch.linspace(1, 0, 5)
    first, second = spectrum_plot({"K": torch.tensor([2.0, 0.5, 1e-17])}, times, {"K": (share, share)}).axes
    assert np.asarray(first.lines[0].get_ydata()).tolist() == [2.0, 0.5]
    assert len(second.lines) == 2


def test_pictures_stand_from_the_lowest_entry_to_the_highest() -> None:
    vector = torch.tensor([[0.3], [-0.8], [0.9], [0.0]])
    shades = torch.linspace(0, 1, 4).view(4, 1, 1, 1).expand(4, 1, 2, 2)
    (ax,) = eigenvector_pictures(vector, shades, each=1).axes
    drawn = np.asarray(ax.images[0].get_array())
    assert drawn[0, 0, 0] == pytest.approx(1 / 3)  # the second picture is lowest, the third highest
    assert drawn[0, 3, 0] == pytest.approx(2 / 3)
    with pytest.raises(ValueError, match="got 4 entries, 3 pictures"):
        eigenvector_pictures(vector, shades[:3])
