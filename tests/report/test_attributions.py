"""Pictures of parts: bars that end where they should, sizes that must match."""

import numpy as np
import pytest
import torch
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.text import Annotation

from parnassus.report.attributions import dependence, maps_of_classes, over_images, signed, swarm, waterfall


def bars(ax: Axes) -> list[Rectangle]:
    return [patch for patch in ax.patches if isinstance(patch, Rectangle)]


def test_a_waterfall_ends_at_the_sum() -> None:
    parts = torch.tensor([3.0, -1.0, 0.5])
    (ax,) = waterfall(10.0, parts, ["a", "b", "c"]).axes
    ends = sorted(bar.get_x() + bar.get_width() for bar in bars(ax))
    assert ends[-1] == pytest.approx(12.5)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["c", "b", "a"]
    assert {"10", "12.5", "+3", "-1"} <= {text.get_text() for text in ax.texts}


def test_small_parts_become_one_bar() -> None:
    (ax,) = waterfall(0.0, np.arange(1.0, 21.0), [str(n) for n in range(20)], errors=np.ones(20), most=5).axes
    assert ax.get_yticklabels()[0].get_text() == "15 others"
    assert sum(bar.get_width() for bar in bars(ax)) == pytest.approx(210.0)


def test_numbers_stand_beyond_their_whiskers_and_unknown_errors_are_told() -> None:
    (ax,) = waterfall(0.0, [1.0, -2.0, 4.0], ["a", "b", "c"], errors=[0.5, np.inf, 3.0]).axes
    places = {text.get_text(): text.xy[0] for text in ax.texts if isinstance(text, Annotation)}
    assert (places["+1"], places["+4"]) == (1.5, 6.0)
    assert places["-2 ± ∞"] == -1.0


def test_rounding_is_nothing_and_large_numbers_are_written_out() -> None:
    assert [signed(part, 5.0) for part in (0.1, -2.0, 5e-13, 0.0)] == ["+0.1", "-2", "0", "0"]
    assert signed(-12_345.6, 1e5) == "-12,346"


def test_equal_values_have_one_colour_in_a_swarm() -> None:
    features = np.stack([np.arange(6.0), [0.0, 1.0, 0.0, 1.0, 1.0, 0.0], np.full(6, 3.0)], 1)
    ax = swarm(np.tile([3.0, 2.0, 1.0], (6, 1)), features, ["many", "two", "one"]).axes[0]
    ranks = [np.asarray(dots.get_array()).tolist() for dots in ax.collections]
    assert ranks == [[0.5] * 6, [0, 1, 0, 1, 1, 0], pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1])]
    assert {dots.get_clim() for dots in ax.collections} == {(0.0, 1.0)}


def test_a_swarm_has_a_dot_for_each_row_and_the_weightiest_on_top() -> None:
    parts = np.stack([np.linspace(-1, 1, 30), np.linspace(-5, 5, 30)], 1)
    ax = swarm(parts, parts, ["small", "large"]).axes[0]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["small", "large"]
    assert [len(np.asarray(dots.get_offsets())) for dots in ax.collections] == [30, 30]


def test_dependence_is_drawn() -> None:
    x = np.linspace(0, 1, 9)
    assert dependence(x, x, x, name="x", other_name="z").axes[0].get_xlabel() == "x"


def shown(ax: Axes) -> np.ndarray:
    (picture,) = ax.images
    return np.asarray(picture.get_array())


def test_parts_over_an_image_are_red_and_blue_on_one_scale() -> None:
    parts = torch.zeros(2, 2, 2)
    parts[0, 0, 0], parts[1, 1, 1] = 2.0, -1.0
    axes = over_images(torch.ones(2, 3, 2, 2), parts, ["a", "b"]).axes
    assert len(axes) == 5  # the last one is the scale
    assert axes[4].get_ylim() == (-2.0, 2.0)
    first, second = shown(axes[2]), shown(axes[3])
    assert first[0, 0, 0] > 2 * first[0, 0, 2]  # as red as can be
    assert second[1, 1, 2] > 1.2 * second[1, 1, 0] > 0.2  # half as blue
    assert np.ptp(first[1, 1]) < 0.02  # nothing there: grey


def test_an_image_is_seen_through_its_parts_and_a_dark_one_as_its_negative() -> None:
    image = torch.zeros(1, 4, 4)
    image[0, 1, 1] = 1.0
    for picture in (image, 1 - image):
        pale = shown(over_images(picture, torch.zeros(1, 4, 4), [""]).axes[1]).mean(-1)
        assert pale[1, 1] < 0.7 * pale[0, 0]


def test_maps_of_classes_stand_beside_their_image() -> None:
    axes = maps_of_classes(torch.rand(2, 4, 6), torch.randn(2, 3, 4, 6), [["x", "a", "b", "a − b"]] * 2).axes
    assert [ax.get_title() for ax in axes[:4]] == ["x", "a", "b", "a − b"]
    assert len(axes) == 9
    with pytest.raises(ValueError, match="each row needs 4 titles"):
        maps_of_classes(torch.rand(2, 4, 6), torch.randn(2, 3, 4, 6), [["x", "a"]] * 2)


def test_sizes_that_do_not_match_get_a_sentence() -> None:
    with pytest.raises(ValueError, match="2 names for 3 parts"):
        waterfall(0.0, torch.ones(3), ["a", "b"])
    with pytest.raises(ValueError, match="must match"):
        swarm(torch.ones(3, 2), torch.ones(3, 3), ["a", "b"])
    with pytest.raises(ValueError, match="must match"):
        over_images(torch.ones(2, 4, 4), torch.ones(2, 4, 4), ["a"])
    with pytest.raises(ValueError, match="or with channels"):
        over_images(torch.ones(4, 4), torch.ones(4, 4), ["a"])
