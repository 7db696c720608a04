"""Images of decision regions: positions and colours."""

import torch

from parnassus.layers.decision_regions import diverging_colours, draw_points, pixel_grid

BLUE_RED = torch.tensor([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])


def test_first_row_is_the_top() -> None:
    pixels = pixel_grid(2.0, 4).view(4, 4, 2)
    assert pixels[0, 0].tolist() == [-1.5, 1.5]
    assert pixels[0, 3].tolist() == [1.5, 1.5]
    assert pixels[3, 0].tolist() == [-1.5, -1.5]


def test_diverging_colours_are_white_in_the_middle() -> None:
    image = diverging_colours(torch.tensor([[0.0, 0.5, 1.0, 0.75]]), BLUE_RED)
    assert image.shape == (3, 1, 4)
    assert image[:, 0].T.tolist() == [[0, 0, 1], [1, 1, 1], [1, 0, 0], [1, 0.5, 0.5]]


def test_points_are_drawn_at_their_coordinates() -> None:
    blank = torch.full((2, 3, 40, 40), 0.5)
    points = torch.tensor([[-0.5, 0.5], [0.525, -0.525]])
    images = draw_points(blank, points, torch.tensor([0, 1]), colours=BLUE_RED, limit=1.0)
    assert images[0, :, 10, 10].tolist() == [0, 0, 1]  # a quarter from the top left
    assert images[1, :, 30, 30].tolist() == [1, 0, 0]
    assert images[0, :, 0, 39].tolist() == [0.5, 0.5, 0.5]
    torch.testing.assert_close(images[0], images[1])
    rim = images[0].amin(0) > 0.7  # brighter than the background in all three colours
    assert 10 < int(rim.sum()) < 80
