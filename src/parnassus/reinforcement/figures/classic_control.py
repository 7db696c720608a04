"""Images of the classic control environments, drawn from their observations."""

from collections.abc import Callable, Mapping, Sequence
from math import atan2, cos, pi, sin
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from parnassus.report.style import FAINT, INK, PALETTE

Point: TypeAlias = tuple[float, float]

WIDTH, HEIGHT = 480, 320  # pixels
SUPERSAMPLING = 4  # supersampling factor, for smooth edges
BLUE, ORANGE, GREEN = PALETTE[:3]


class Canvas:
    """A white image with coordinates of `unit` pixels: x from the centre, y upwards from `floor`."""

    def __init__(self, unit: float, *, floor: float = 0.0) -> None:
        from PIL import Image, ImageDraw

        self.unit, self.floor = unit * SUPERSAMPLING, floor
        self.image = Image.new("RGB", (WIDTH * SUPERSAMPLING, HEIGHT * SUPERSAMPLING), "white")
        self.draw = ImageDraw.Draw(self.image)

    def to_pixels(self, point: Point) -> Point:
        x, y = point
        return WIDTH * SUPERSAMPLING / 2 + x * self.unit, HEIGHT * SUPERSAMPLING - (y - self.floor) * self.unit

    def line(self, points: Sequence[Point], colour: str, width: float) -> None:
        pixels = [self.to_pixels(point) for point in points]
        self.draw.line(pixels, fill=colour, width=round(width * SUPERSAMPLING), joint="curve")

    def disc(self, centre: Point, radius: float, colour: str) -> None:
        """`radius` is in pixels."""
        self.draw.circle(self.to_pixels(centre), radius * SUPERSAMPLING, fill=colour)

    def polygon(self, corners: Sequence[Point], colour: str) -> None:
        self.draw.polygon([self.to_pixels(corner) for corner in corners], fill=colour)

    def rod(self, start: Point, end: Point, colour: str, width: float) -> None:
        """A line with round ends."""
        self.line([start, end], colour, width)
        for point in (start, end):
            self.disc(point, width / 2, colour)

    def arrow(self, start: Point, across: float) -> None:
        """A push to the right, to the left if `across` is negative, none if it is 0."""
        if abs(across) < 1e-6:
            return
        x, y, head = start[0] + across, start[1], 9 * SUPERSAMPLING / self.unit
        back = x - head * (1 if across > 0 else -1)
        self.line([start, (back, y)], ORANGE, 4.0)
        self.polygon([(x, y), (back, y + 0.7 * head), (back, y - 0.7 * head)], ORANGE)

    def torque(self, centre: Point, begin: float, turn: float) -> None:
        """A torque: an arc around `centre` with a dot at its end, counterclockwise if `turn` is positive."""
        if abs(turn) < 1e-6:
            return
        radius, angles = 34 * SUPERSAMPLING / self.unit, [begin + turn * step / 24 for step in range(25)]
        arc = [(centre[0] + radius * cos(angle), centre[1] + radius * sin(angle)) for angle in angles]
        self.line(arc, ORANGE, 4.0)
        self.disc(arc[-1], 5.0, ORANGE)

    def pixels(self) -> NDArray[np.uint8]:
        return np.asarray(self.image.reduce(SUPERSAMPLING), dtype=np.uint8)


def render_cart_pole(observation: Sequence[float], action: float | None = None) -> NDArray[np.uint8]:
    """The pole on its cart, the limits of the track, and the last push."""
    x, angle = observation[0], observation[2]
    canvas = Canvas(WIDTH / 5.4, floor=-1.0)
    canvas.line([(-2.7, 0.0), (2.7, 0.0)], FAINT, 2.0)
    for border in (-2.4, 2.4):
        canvas.line([(border, -0.12), (border, 0.12)], FAINT, 2.0)
    canvas.polygon([(x - 0.3, -0.12), (x + 0.3, -0.12), (x + 0.3, 0.18), (x - 0.3, 0.18)], INK)
    canvas.rod((x, 0.18), (x + 1.5 * sin(angle), 0.18 + 1.5 * cos(angle)), BLUE, 9.0)
    canvas.disc((x, 0.18), 4.0, "white")
    if action is not None:
        side = 1 if action > 0 else -1
        canvas.arrow((x + 0.36 * side, 0.03), 0.4 * side)
    return canvas.pixels()


def render_mountain_car(observation: Sequence[float], action: float | None = None) -> NDArray[np.uint8]:
    """The car in its valley, the goal flag, and the last push."""
    canvas, centre = Canvas(WIDTH / 1.9, floor=-0.1), -0.3

    def ground(x: float) -> Point:
        return x - centre, 0.45 * sin(3 * x) + 0.5

    canvas.line([ground(-1.2 + 1.8 * step / 120) for step in range(121)], FAINT, 3.0)
    flag = ground(0.5)
    canvas.line([flag, (flag[0], flag[1] + 0.18)], INK, 2.0)
    canvas.polygon([(flag[0], flag[1] + y) for y in (0.18, 0.11)] + [(flag[0] - 0.09, flag[1] + 0.145)], GREEN)
    x = observation[0]
    position, slope = ground(x), atan2(3 * 0.45 * cos(3 * x), 1.0)

    def on_car(along: float, up: float) -> Point:
        return (
            position[0] + along * cos(slope) - up * sin(slope),
            position[1] + along * sin(slope) + up * cos(slope),
        )

    canvas.polygon([on_car(a, u) for a, u in ((-0.06, 0.02), (0.06, 0.02), (0.06, 0.07), (-0.06, 0.07))], BLUE)
    for along in (-0.035, 0.035):
        canvas.disc(on_car(along, 0.02), 5.0, INK)
    if action is not None:
        canvas.arrow(on_car(0.0, 0.14), 0.12 * (action - 1))
    return canvas.pixels()


def render_acrobot(observation: Sequence[float], action: float | None = None) -> NDArray[np.uint8]:
    """The two links, the height that the tip should reach, and the last torque as an arc."""
    first = atan2(observation[1], observation[0])
    second = atan2(observation[3], observation[2])
    canvas = Canvas(HEIGHT / 4.8, floor=-2.4)
    joint = sin(first), -cos(first)
    tip = joint[0] + sin(first + second), joint[1] - cos(first + second)
    canvas.line([(-3.3, 1.0), (3.3, 1.0)], GREEN, 2.0)
    canvas.line([(-0.35, 0.0), (0.35, 0.0)], FAINT, 3.0)
    canvas.rod((0.0, 0.0), joint, BLUE, 11.0)
    canvas.rod(joint, tip, BLUE, 11.0)
    canvas.disc((0.0, 0.0), 4.0, "white")
    canvas.disc(joint, 4.0, "white")
    if action is not None:
        canvas.torque(joint, first - pi / 2, pi / 2 * (action - 1))
    return canvas.pixels()


def render_pendulum(observation: Sequence[float], action: float | None = None) -> NDArray[np.uint8]:
    """The pendulum, a mark at the upright position, and the last torque as an arc around the pivot."""
    angle = atan2(observation[1], observation[0])
    canvas = Canvas(HEIGHT / 2.8, floor=-1.4)
    canvas.line([(0.0, 1.08), (0.0, 1.25)], GREEN, 3.0)
    canvas.rod((0.0, 0.0), (-sin(angle), cos(angle)), BLUE, 15.0)
    canvas.disc((0.0, 0.0), 5.0, INK)
    if action is not None:
        canvas.torque((0.0, 0.0), pi / 2, pi / 2 * max(-1.0, min(1.0, action / 2)))
    return canvas.pixels()


RENDERERS: Mapping[str, Callable[[Sequence[float], float | None], NDArray[np.uint8]]] = {
    "Acrobot-v1": render_acrobot,
    "CartPole-v1": render_cart_pole,
    "MountainCar-v0": render_mountain_car,
    "Pendulum-v1": render_pendulum,
}
"""By environment id: from an observation and the action that led to it to an image (height, width, 3)."""
