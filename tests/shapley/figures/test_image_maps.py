"""Attributions over images: colours, one scale, visible images."""

import numpy as np
import pytest
import torch
from matplotlib.axes import Axes

from parnassus.shapley.figures.image_maps import plot_class_attributions, plot_image_attributions


def shown(ax: Axes) -> np.ndarray:
    (picture,) = ax.images
    return np.asarray(picture.get_array())


def test_attributions_are_red_and_blue_on_one_scale() -> None:
    parts = torch.zeros(2, 2, 2)
    parts[0, 0, 0], parts[1, 1, 1] = 2.0, -1.0
    axes = plot_image_attributions(torch.ones(2, 3, 2, 2), parts, ["a", "b"]).axes
    assert len(axes) == 5  # the last one is the scale
    assert axes[4].get_ylim() == (-2.0, 2.0)
    first, second = shown(axes[2]), shown(axes[3])
    assert first[0, 0, 0] > 2 * first[0, 0, 2]  # as red as can be
    assert second[1, 1, 2] > 1.2 * second[1, 1, 0] > 0.2  # half as blue
    assert np.ptp(first[1, 1]) < 0.02  # nothing there: grey


def test_the_image_is_visible_and_a_dark_one_is_inverted() -> None:
    image = torch.zeros(1, 4, 4)
    image[0, 1, 1] = 1.0
    for picture in (image, 1 - image):
        pale = shown(plot_image_attributions(picture, torch.zeros(1, 4, 4), [""]).axes[1]).mean(-1)
        assert pale[1, 1] < 0.7 * pale[0, 0]


def test_class_maps_are_beside_their_image() -> None:
    axes = plot_class_attributions(torch.rand(2, 4, 6), torch.randn(2, 3, 4, 6), [["x", "a", "b", "a − b"]] * 2).axes
    assert [ax.get_title() for ax in axes[:4]] == ["x", "a", "b", "a − b"]
    assert len(axes) == 9
    with pytest.raises(ValueError, match="each row needs 4 titles"):
        plot_class_attributions(torch.rand(2, 4, 6), torch.randn(2, 3, 4, 6), [["x", "a"]] * 2)


def test_sizes_that_do_not_match_are_rejected() -> None:
    with pytest.raises(ValueError, match="must match"):
        plot_image_attributions(torch.ones(2, 4, 4), torch.ones(2, 4, 4), ["a"])
    with pytest.raises(ValueError, match="or with channels"):
        plot_image_attributions(torch.ones(4, 4), torch.ones(4, 4), ["a"])
