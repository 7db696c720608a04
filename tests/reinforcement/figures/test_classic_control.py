"""Renderings of the classic control environments."""

from math import cos, sin

import numpy as np
import pytest
from numpy.typing import NDArray

from parnassus.reinforcement.figures.classic_control import BLUE, HEIGHT, ORANGE, RENDERERS, WIDTH


def colour_centre(image: NDArray[np.uint8], colour: str) -> tuple[float, float]:
    """Mean column and row of the pixels of a colour."""
    rgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)])
    rows, columns = np.nonzero(np.abs(image.astype(int) - rgb).max(-1) < 8)
    assert len(rows) > 20
    return float(columns.mean()), float(rows.mean())


@pytest.mark.parametrize(
    ("name", "left", "right"),
    [
        ("CartPole-v1", (0, 0, -0.2, 0), (0, 0, 0.2, 0)),
        ("MountainCar-v0", (-0.9, 0), (0.3, 0)),
        ("Acrobot-v1", (cos(0.5), -sin(0.5), 1, 0, 0, 0), (cos(0.5), sin(0.5), 1, 0, 0, 0)),
        ("Pendulum-v1", (cos(0.5), sin(0.5), 0), (cos(0.5), -sin(0.5), 0)),  # the angle grows counterclockwise
    ],
)
def test_rendering_follows_the_observation(name: str, left: tuple[float, ...], right: tuple[float, ...]) -> None:
    images = [RENDERERS[name](list(map(float, observation)), None) for observation in (left, right)]
    assert images[0].shape == (HEIGHT, WIDTH, 3)
    assert colour_centre(images[0], BLUE)[0] + 20 < colour_centre(images[1], BLUE)[0]


@pytest.mark.parametrize(
    ("name", "observation", "lowest", "highest"),
    [
        ("CartPole-v1", (0, 0, 0, 0), 0, 1),
        ("MountainCar-v0", (-0.5, 0), 0, 2),
        ("Acrobot-v1", (1, 0, 1, 0, 0, 0), 0, 2),  # hanging: counterclockwise is to the right
        ("Pendulum-v1", (1, 0, 0), 2, -2),  # upright: counterclockwise is to the left
    ],
)
def test_rendering_shows_the_action(name: str, observation: tuple[float, ...], lowest: float, highest: float) -> None:
    left, right = (
        colour_centre(RENDERERS[name](list(map(float, observation)), float(action)), ORANGE)[0]
        for action in (lowest, highest)
    )
    assert left < right


def test_neutral_action_is_not_drawn() -> None:
    for name, neutral_action in (("MountainCar-v0", 1.0), ("Acrobot-v1", 1.0), ("Pendulum-v1", 0.0)):
        observation = (1.0, 0.0, 1.0, 0.0, 0.0, 0.0)
        assert np.array_equal(RENDERERS[name](observation, neutral_action), RENDERERS[name](observation, None))
