"""The classes of the training images whose codes are nearest to a point of a latent plane."""

from collections.abc import Sequence

import torch
from jaxtyping import Int
from torch import Tensor

from parnassus.widgets import Bars


def plot_neighbour_classes(
    labels: Int[Tensor, " count"] | None, neighbours: Int[Tensor, " neighbours"], classes: Sequence[str]
) -> list[Bars]:
    """Class frequencies among the neighbours, given by their indices; nothing without labels."""
    if labels is None:
        return []
    frequencies = torch.bincount(labels[neighbours], minlength=len(classes)) / len(neighbours)
    about = f"Class frequencies among the {len(neighbours)} nearest training images."
    return [Bars("Classes nearby", classes, frequencies, marked=int(frequencies.argmax()), about=about)]
