"""A chain of pictures: each in its place with its name, an arrow there and one back between neighbours."""

import pytest
import torch
from matplotlib.text import Annotation

from parnassus.report.chains import chain_of_images


def test_every_picture_has_its_name_and_neighbours_two_arrows() -> None:
    figure = chain_of_images(torch.rand(4, 1, 5, 5), names=["a", "b", "c", "d"], forward="there", backward="back")
    (ax,) = figure.axes
    arrows = [text for text in ax.texts if isinstance(text, Annotation)]
    words = [text.get_text() for text in ax.texts if not isinstance(text, Annotation)]
    assert len(ax.child_axes) == 4
    assert sorted(words) == ["a", "b", "back", "c", "d", "there"]
    travels = [arrow.xy[0] - arrow.get_position()[0] for arrow in arrows]
    assert sum(travel > 0 for travel in travels) == sum(travel < 0 for travel in travels) == 3


def test_a_chain_needs_two_pictures_and_a_name_for_each() -> None:
    with pytest.raises(ValueError, match="need two pictures"):
        chain_of_images(torch.rand(1, 1, 5, 5), names=["a"], forward="", backward="")
    with pytest.raises(ValueError, match="and 1 names"):
        chain_of_images(torch.rand(2, 1, 5, 5), names=["a"], forward="", backward="")
