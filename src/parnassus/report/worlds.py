"""Pictures of the classic worlds of control from what an agent sees of them: a pole, a car, two pendulums."""

from collections.abc import Callable, Mapping, Sequence
from math import atan2, cos, pi, sin
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from parnassus.report.ink import FAINT, INK, PALETTE

Place: TypeAlias = tuple[float, float]

WIDE, HIGH = 480, 320  # pixels
FINE = 4  # drawn so much larger first, for smooth edges
BLUE, ORANGE, GREEN = PALETTE[:3]


class Sheet:
    """A white page with coordinates of its own, `unit` pixels each: x from its middle, y upwards from `floor`."""

    def __init__(self, unit: float, *, floor: float = 0.0) -> None:
        from PIL import Image, ImageDraw

        self.unit, self.floor = unit * FINE, floor
        self.image = Image.new("RGB", (WIDE * FINE, HIGH * FINE), "white")
        self.draw = ImageDraw.Draw(self.image)

    def at(self, place: Place) -> Place:
        return WIDE * FINE / 2 + place[0] * self.unit, HIGH * FINE - (place[1] - self.floor) * self.unit

    def line(self, places: Sequence[Place], colour: str, width: float) -> None:
        self.draw.line([self.at(place) for place in places], fill=colour, width=round(width * FINE), joint="curve")

    def disc(self, middle: Place, radius: float, colour: str) -> None:
        """`radius` is in pixels."""
        self.draw.circle(self.at(middle), radius * FINE, fill=colour)

    def shape(self, corners: Sequence[Place], colour: str) -> None:
        self.draw.polygon([self.at(place) for place in corners], fill=colour)

    def rod(self, start: Place, end: Place, colour: str, width: float) -> None:
        """A line with round ends."""
        self.line([start, end], colour, width)
        for place in (start, end):
            self.disc(place, width / 2, colour)

    def arrow(self, start: Place, across: float) -> None:
        """A push to the right, or to the left if `across` is negative; none if it is nothing."""
        if abs(across) < 1e-6:
            return
        x, y, head = start[0] + across, start[1], 9 * FINE / self.unit
        back = x - head * (1 if across > 0 else -1)
        self.line([start, (back, y)], ORANGE, 4)
        self.shape([(x, y), (back, y + 0.7 * head), (back, y - 0.7 * head)], ORANGE)

    def twist(self, middle: Place, begin: float, turn: float) -> None:
        """A torque: an arc around `middle` with a dot at its end, against the clock if `turn` is positive."""
        if abs(turn) < 1e-6:
            return
        radius, angles = 34 * FINE / self.unit, [begin + turn * step / 24 for step in range(25)]
        arc = [(middle[0] + radius * cos(angle), middle[1] + radius * sin(angle)) for angle in angles]
        self.line(arc, ORANGE, 4)
        self.disc(arc[-1], 5, ORANGE)

    def pixels(self) -> NDArray[np.uint8]:
        return np.asarray(self.image.reduce(FINE), dtype=np.uint8)


def cart_pole(seen: Sequence[float], action: float | None = None) -> NDArray[np.uint8]:
    """A pole on its cart, the borders of its track, and the last push."""
    x, angle = seen[0], seen[2]
    sheet = Sheet(WIDE / 5.4, floor=-1.0)
    sheet.line([(-2.7, 0), (2.7, 0)], FAINT, 2)
    for border in (-2.4, 2.4):
        sheet.line([(border, -0.12), (border, 0.12)], FAINT, 2)
    sheet.shape([(x - 0.3, -0.12), (x + 0.3, -0.12), (x + 0.3, 0.18), (x - 0.3, 0.18)], INK)
    sheet.rod((x, 0.18), (x + 1.5 * sin(angle), 0.18 + 1.5 * cos(angle)), BLUE, 9)
    sheet.disc((x, 0.18), 4, "white")
    if action is not None:
        side = 1 if action > 0 else -1
        sheet.arrow((x + 0.36 * side, 0.03), 0.4 * side)
    return sheet.pixels()


def mountain_car(seen: Sequence[float], action: float | None = None) -> NDArray[np.uint8]:
    """A car in its valley, the flag it should reach, and the last push."""
    sheet, middle = Sheet(WIDE / 1.9, floor=-0.1), -0.3

    def ground(x: float) -> Place:
        return x - middle, 0.45 * sin(3 * x) + 0.5

    sheet.line([ground(-1.2 + 1.8 * step / 120) for step in range(121)], FAINT, 3)
    flag = ground(0.5)
    sheet.line([flag, (flag[0], flag[1] + 0.18)], INK, 2)
    sheet.shape([(flag[0], flag[1] + y) for y in (0.18, 0.11)] + [(flag[0] - 0.09, flag[1] + 0.145)], GREEN)
    x = seen[0]
    place, slope = ground(x), atan2(3 * 0.45 * cos(3 * x), 1.0)

    def on_car(along: float, up: float) -> Place:
        return (
            place[0] + along * cos(slope) - up * sin(slope),
            place[1] + along * sin(slope) + up * cos(slope),
        )

    sheet.shape([on_car(a, u) for a, u in ((-0.06, 0.02), (0.06, 0.02), (0.06, 0.07), (-0.06, 0.07))], BLUE)
    for along in (-0.035, 0.035):
        sheet.disc(on_car(along, 0.02), 5, INK)
    if action is not None:
        sheet.arrow(on_car(0, 0.14), 0.12 * (action - 1))
    return sheet.pixels()


def acrobot(seen: Sequence[float], action: float | None = None) -> NDArray[np.uint8]:
    """Two links under a bar, the height that the foot should reach, and the torque between them as an arc."""
    first, second = atan2(seen[1], seen[0]), atan2(seen[3], seen[2])
    sheet = Sheet(HIGH / 4.8, floor=-2.4)
    knee = sin(first), -cos(first)
    foot = knee[0] + sin(first + second), knee[1] - cos(first + second)
    sheet.line([(-3.3, 1), (3.3, 1)], GREEN, 2)
    sheet.line([(-0.35, 0), (0.35, 0)], FAINT, 3)
    sheet.rod((0, 0), knee, BLUE, 11)
    sheet.rod(knee, foot, BLUE, 11)
    sheet.disc((0, 0), 4, "white")
    sheet.disc(knee, 4, "white")
    if action is not None:
        sheet.twist(knee, first - pi / 2, pi / 2 * (action - 1))
    return sheet.pixels()


def pendulum(seen: Sequence[float], action: float | None = None) -> NDArray[np.uint8]:
    """A pendulum, upright where it should be, and the torque as an arc around its pivot."""
    angle = atan2(seen[1], seen[0])
    sheet = Sheet(HIGH / 2.8, floor=-1.4)
    sheet.line([(0, 1.08), (0, 1.25)], GREEN, 3)
    sheet.rod((0, 0), (-sin(angle), cos(angle)), BLUE, 15)
    sheet.disc((0, 0), 5, INK)
    if action is not None:
        sheet.twist((0, 0), pi / 2, pi / 2 * max(-1.0, min(1.0, action / 2)))
    return sheet.pixels()


DRAWINGS: Mapping[str, Callable[[Sequence[float], float | None], NDArray[np.uint8]]] = {
    "Acrobot-v1": acrobot,
    "CartPole-v1": cart_pole,
    "MountainCar-v0": mountain_car,
    "Pendulum-v1": pendulum,
}
"""By the names of their environments: what is seen and the action that led there, to a picture (high, wide, 3)."""
