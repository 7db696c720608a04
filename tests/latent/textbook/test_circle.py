"""Points on the unit circle."""

import torch

from parnassus.latent.textbook.circle import circle_points, distance_to_circle


def test_points_lie_on_the_circle_at_equal_angles() -> None:
    points = circle_points(7)
    torch.testing.assert_close(distance_to_circle(points), torch.zeros(7).double(), atol=1e-15, rtol=0)
    chords = (points - points.roll(1, 0)).norm(dim=1)
    torch.testing.assert_close(chords, chords[:1].expand(7))


def test_distances_are_radial() -> None:
    torch.testing.assert_close(
        distance_to_circle(torch.tensor([[0.0, 0.0], [3.0, 4.0], [0.0, -0.5]])), torch.tensor([1.0, 4.0, 0.5])
    )
