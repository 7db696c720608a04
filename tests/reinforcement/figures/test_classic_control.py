"""Drawings of worlds: what leans to the right is seen there, and a push points where it goes."""

from math import cos, sin

import numpy as np
import pytest
from numpy.typing import NDArray

from parnassus.reinforcement.figures.classic_control import BLUE, HEIGHT, ORANGE, RENDERERS, WIDTH


def where(picture: NDArray[np.uint8], colour: str) -> tuple[float, float]:
    """The middle of a colour: across from the left, down from the top."""
    ink = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)])
    rows, columns = np.nonzero(np.abs(picture.astype(int) - ink).max(-1) < 8)
    assert len(rows) > 20
    return float(columns.mean()), float(rows.mean())


@pytest.mark.parametrize(
    ("name", "left", "right"),
    [
        ("CartPole-v1", (0, 0, -0.2, 0), (0, 0, 0.2, 0)),
        ("MountainCar-v0", (-0.9, 0), (0.3, 0)),
        ("Acrobot-v1", (cos(0.5), -sin(0.5), 1, 0, 0, 0), (cos(0.5), sin(0.5), 1, 0, 0, 0)),
        ("Pendulum-v1", (cos(0.5), sin(0.5), 0), (cos(0.5), -sin(0.5), 0)),  # its angle grows against the clock
    ],
)
def test_every_world_is_drawn_where_it_stands(name: str, left: tuple[float, ...], right: tuple[float, ...]) -> None:
    pictures = [RENDERERS[name](list(map(float, seen)), None) for seen in (left, right)]
    assert pictures[0].shape == (HEIGHT, WIDTH, 3)
    assert where(pictures[0], BLUE)[0] + 20 < where(pictures[1], BLUE)[0]


@pytest.mark.parametrize(
    ("name", "seen", "least", "most"),
    [
        ("CartPole-v1", (0, 0, 0, 0), 0, 1),
        ("MountainCar-v0", (-0.5, 0), 0, 2),
        ("Acrobot-v1", (1, 0, 1, 0, 0, 0), 0, 2),  # hanging: against the clock is to the right
        ("Pendulum-v1", (1, 0, 0), 2, -2),  # upright: it is to the left
    ],
)
def test_an_action_is_seen(name: str, seen: tuple[float, ...], least: float, most: float) -> None:
    left, right = (where(RENDERERS[name](list(map(float, seen)), float(action)), ORANGE)[0] for action in (least, most))
    assert left < right


def test_no_push_is_not_drawn() -> None:
    for name, still in (("MountainCar-v0", 1.0), ("Acrobot-v1", 1.0), ("Pendulum-v1", 0.0)):
        seen = (1.0, 0.0, 1.0, 0.0, 0.0, 0.0)
        assert np.array_equal(RENDERERS[name](seen, still), RENDERERS[name](seen, None))
