"""Pictures of the plane: the right colour in the right place."""

import torch

from parnassus.layers.decision_maps import dotted, plane, tinted

BLUE_RED = torch.tensor([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])


def test_the_first_row_is_the_top() -> None:
    places = plane(2.0, 4).view(4, 4, 2)
    assert places[0, 0].tolist() == [-1.5, 1.5]
    assert places[0, 3].tolist() == [1.5, 1.5]
    assert places[3, 0].tolist() == [-1.5, -1.5]


def test_both_ends_have_their_colour_and_the_middle_is_white() -> None:
    picture = tinted(torch.tensor([[0.0, 0.5, 1.0, 0.75]]), BLUE_RED)
    assert picture.shape == (3, 1, 4)
    assert picture[:, 0].T.tolist() == [[0, 0, 1], [1, 1, 1], [1, 0, 0], [1, 0.5, 0.5]]


def test_dots_lie_where_their_points_are() -> None:
    blank = torch.full((2, 3, 40, 40), 0.5)
    points = torch.tensor([[-0.5, 0.5], [0.525, -0.525]])
    dots = dotted(blank, points, torch.tensor([0, 1]), colours=BLUE_RED, reach=1.0)
    assert dots[0, :, 10, 10].tolist() == [0, 0, 1]  # a quarter from the top left
    assert dots[1, :, 30, 30].tolist() == [1, 0, 0]
    assert dots[0, :, 0, 39].tolist() == [0.5, 0.5, 0.5]
    torch.testing.assert_close(dots[0], dots[1])
    rim = dots[0].amin(0) > 0.7  # brighter than the ground in all three colours
    assert 10 < int(rim.sum()) < 80
