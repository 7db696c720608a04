"""Draw the image of every room: `python docs/pictures.py` writes src/parnassus/SUBJECT/room.svg.

Each function computes its data and returns the content of an SVG on a canvas of 160 × 100 with margins of 8. All images
use the same colours: ink for given data, faint for auxiliary lines, blue for the model, orange for operations on it,
green for additional elements; strokes have widths 1, 1.5 and 2. Ink and faint are CSS variables, set by the page.
"""

from collections.abc import Callable, Iterable
from itertools import groupby, pairwise, permutations
from math import factorial, inf
from pathlib import Path
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

PACKAGE = Path(__file__).parents[1] / "src" / "parnassus"

INK, FAINT = "var(--ink)", "var(--faint)"
BLUE, ORANGE, GREEN = "#0072b2", "#d55e00", "#009e73"
THIN, MEDIUM, BOLD = 1.0, 1.5, 2.0
LEFT, TOP, RIGHT, BOTTOM = 8.0, 8.0, 152.0, 92.0

Array = NDArray[np.float64]
Box = tuple[float, float, float, float]  # left, top, right, bottom
Cell = tuple[int, int]  # row, column


# ------------------------------------------------------------------------------------------------ drawing functions


def number(value: float, digits: int = 1) -> str:
    """A short decimal; rounded to six digits first, so that rounding errors do not change the output."""
    return f"{round(round(float(value), 6), digits) + 0.0:.{digits}f}".rstrip("0").rstrip(".")


def numbers(values: Iterable[float]) -> str:
    return " ".join(number(value) for value in values)


def stroke(colour: str, width: float, opacity: float = 1.0, dashes: str = "") -> str:
    style = f"stroke:{colour};stroke-width:{number(width)}"
    style += f";stroke-opacity:{number(opacity, 2)}" if opacity < 1 else ""
    return style + (f";stroke-dasharray:{dashes}" if dashes else "")


def fill(colour: str, opacity: float = 1.0) -> str:
    return f"fill:{colour}" + (f";fill-opacity:{number(opacity, 2)}" if opacity < 1 else "")


def outlined(colour: str, opacity: float = 0.18, width: float = MEDIUM) -> str:
    """Style of a shape with a transparent fill and an outline of the same colour."""
    return f"{fill(colour, opacity)};{stroke(colour, width)}"


def path(data: str, style: str) -> str:
    return f'<path d="{data}" style="{style}"/>'


def through(points: ArrayLike, *, closed: bool = False) -> str:
    """Path data of straight lines from point to point."""
    return "M" + numbers(np.asarray(points, dtype=float).ravel()) + "z" * closed


def line(points: ArrayLike, colour: str, width: float = MEDIUM, *, opacity: float = 1.0, dashes: str = "") -> str:
    return path(through(points), stroke(colour, width, opacity, dashes))


def lines(many: Iterable[ArrayLike], colour: str, width: float = THIN, *, opacity: float = 1.0) -> str:
    return path("".join(through(points) for points in many), stroke(colour, width, opacity))


def polygon(points: ArrayLike, style: str) -> str:
    return path(through(points, closed=True), style)


def under(points: Array, floor: float, colour: str, opacity: float = 0.18) -> str:
    """The area between a curve and the horizontal line at `floor`."""
    return polygon([(points[0, 0], floor), *points, (points[-1, 0], floor)], fill(colour, opacity))


def dots(points: ArrayLike, colour: str, radius: float = 2.0) -> str:
    at = np.asarray(points, dtype=float)
    circles = (f'<circle cx="{number(x)}" cy="{number(y)}" r="{number(radius)}"/>' for x, y in at)
    return f'<g style="{fill(colour)}">{"".join(circles)}</g>'


def ring(centre: ArrayLike, radius: float, style: str) -> str:
    x, y = np.asarray(centre, dtype=float)
    return f'<circle cx="{number(x)}" cy="{number(y)}" r="{number(radius)}" style="{style}"/>'


def cross(centre: tuple[float, float], reach: float, width: float) -> str:
    (x, y), r = centre, reach
    return lines([[(x - r, y - r), (x + r, y + r)], [(x - r, y + r), (x + r, y - r)]], BLUE, width)


def box(corners: Box, style: str, *, rounded: float = 0.0) -> str:
    left, top, right, bottom = corners
    size = f'width="{number(right - left)}" height="{number(bottom - top)}"'
    corner = f' rx="{number(rounded)}"' if rounded else ""
    return f'<rect x="{number(left)}" y="{number(top)}" {size}{corner} style="{style}"/>'


def cells(values: Array, origin: tuple[float, float], size: tuple[float, float], colour: str) -> str:
    """A heat map of values in [0, 1] in ten opacities; 0 is not drawn, and equal neighbours in a row are merged."""
    levels = np.round(np.clip(values, 0, 1).round(6) * 10).astype(int)
    (left, top), (width, height) = origin, size
    pieces: dict[int, str] = {}
    for row, across in enumerate(levels.tolist()):
        column = 0
        for level, run in groupby(across):
            length = len(list(run))
            corner = numbers([left + column * width, top + row * height])
            piece = f"M{corner}h{number(length * width)}v{number(height)}h{number(-length * width)}z"
            pieces[level] = pieces.get(level, "") + piece
            column += length
    return "".join(path(pieces[level], fill(colour, level / 10)) for level in sorted(pieces) if level)


def grid(origin: tuple[float, float], columns: int, rows: int, cell: float) -> str:
    left, top = origin
    right, bottom = left + columns * cell, top + rows * cell
    upright = [[(left + k * cell, top), (left + k * cell, bottom)] for k in range(columns + 1)]
    level = [[(left, top + k * cell), (right, top + k * cell)] for k in range(rows + 1)]
    return lines([*upright, *level], FAINT)


def head(tip: ArrayLike, direction: ArrayLike, size: float = 3.5) -> str:
    """Path data of an arrow head: two strokes that meet at the tip."""
    tip, direction = np.asarray(tip, dtype=float), np.asarray(direction, dtype=float)
    back = -size * direction / np.linalg.norm(direction)
    side = 0.6 * np.array([-back[1], back[0]])
    return through([tip + back + side, tip, tip + back - side])


def arrow(start: ArrayLike, end: ArrayLike, colour: str, width: float = MEDIUM, *, size: float = 3.5) -> str:
    start, end = np.asarray(start, dtype=float), np.asarray(end, dtype=float)
    return path(through([start, end]) + head(end, end - start, size), stroke(colour, width))


def between(start: ArrayLike, end: ArrayLike, trim: float) -> tuple[Array, Array]:
    """The segment from start to end, shortened by `trim` at both ends."""
    start, end = np.asarray(start, dtype=float), np.asarray(end, dtype=float)
    step = trim * (end - start) / np.linalg.norm(end - start)
    return start + step, end - step


def place(x: ArrayLike, y: ArrayLike, x_range: tuple[float, float], y_range: tuple[float, float], on: Box) -> Array:
    """Map data coordinates to canvas points (n, 2) in the box, with y upwards."""
    left, top, right, bottom = on
    across = left + (np.asarray(x, dtype=float) - x_range[0]) / (x_range[1] - x_range[0]) * (right - left)
    up = bottom - (np.asarray(y, dtype=float) - y_range[0]) / (y_range[1] - y_range[0]) * (bottom - top)
    return np.stack(np.broadcast_arrays(across, up), axis=-1)


def normal(x: Array, mean: float, std: float) -> Array:
    return np.asarray(np.exp(-(((x - mean) / std) ** 2) / 2) / (std * np.sqrt(2 * np.pi)))


def rotation(degrees: float) -> Array:
    """Rotation matrix for row vectors on its left; the rotation is clockwise on the canvas."""
    cosine, sine = np.cos(np.deg2rad(degrees)), np.sin(np.deg2rad(degrees))
    return np.array([[cosine, sine], [-sine, cosine]])


def circle(radius: float = 1.0, pieces: int = 48) -> Array:
    angle = np.linspace(0, 2 * np.pi, pieces + 1)
    return radius * np.stack([np.cos(angle), np.sin(angle)], axis=-1)


# --------------------------------------------------------------------------------------------------------- the rooms


def layers() -> str:
    """A dense network: edges are weights (blue: positive, orange: negative), the fill of a node is its activation."""
    rng = np.random.default_rng(3)
    sizes, radius = (3, 5, 5, 2), 6.0
    columns = np.linspace(LEFT + radius, RIGHT - radius, len(sizes))
    nodes = [[(x, 50 + 18 * (k - (size - 1) / 2)) for k in range(size)] for x, size in zip(columns, sizes, strict=True)]
    values = np.array([0.9, 0.3, 0.6])
    edges: dict[tuple[str, float], list[ArrayLike]] = {}
    drawn = ""
    for left, right in pairwise([*nodes, []]):
        for centre, value in zip(left, values / values.max(), strict=True):
            drawn += ring(centre, radius, f"{fill(BLUE, 0.8 * value)};{stroke(INK, MEDIUM)}")
        weights = rng.normal(size=(len(right), len(left)))
        values = np.maximum(weights @ values, 0)
        for (row, column), weight in np.ndenumerate(weights):
            look = (BLUE if weight > 0 else ORANGE, 0.2 * np.ceil(min(abs(weight), 2) * 2.5))
            edges.setdefault(look, []).append(between(left[column], right[row], radius + 1))
    return "".join(lines(edges[look], look[0], opacity=look[1]) for look in sorted(edges)) + drawn


def losses() -> str:
    """Least squares: the line that minimises the total area of the squares of the residuals."""
    x = np.array([20.0, 42, 57, 88, 104, 131])
    y = np.array([89.0, 58, 86, 30, 61, 11])
    slope, intercept = np.polyfit(x, y, 1)
    fitted = intercept + slope * x
    squares = ""
    for left, seen, said in zip(x, y, fitted, strict=True):
        side = abs(seen - said) * (-1 if seen < said else 1)
        corners = [(left, seen), (left, said), (left + side, said), (left + side, seen)]
        squares += polygon(corners, outlined(ORANGE, width=THIN))
    ends = np.array([14.0, 148.0])
    model = line(np.stack([ends, intercept + slope * ends], axis=-1), BLUE, BOLD)
    return squares + model + dots(np.stack([x, y], axis=-1), INK, 2.5)


def autodiff() -> str:
    """The graph of σ(x·w + b): forward pass in ink, backward pass in orange with line widths by gradient size."""
    x, w, b = 1.5, 0.8, -0.4
    y = 1 / (1 + np.exp(-(x * w + b)))
    slope = y * (1 - y)
    nodes = {"x": (17, 18), "w": (17, 66), "b": (60, 83), "×": (60, 42), "+": (102, 50), "σ": (143, 50)}
    gradients = {("x", "×"): slope * w, ("w", "×"): slope * x, ("×", "+"): slope, ("b", "+"): slope, ("+", "σ"): 1.0}
    drawn = ""
    for (source, target), gradient in gradients.items():
        start, end = between(nodes[source], nodes[target], 11)
        aside = 3 * np.array([end[1] - start[1], start[0] - end[0]]) / np.linalg.norm(end - start)
        drawn += arrow(start - aside, end - aside, INK)
        drawn += arrow(end + aside, start + aside, ORANGE, 1 + min(abs(gradient), 1))
    for name, centre in nodes.items():
        drawn += ring(centre, 8, outlined(BLUE) if name in "×+σ" else outlined(INK, 0.12))
    (px, py), (sx, sy) = nodes["+"], nodes["σ"]
    drawn += cross(nodes["×"], 3, MEDIUM) + lines(
        [[(px - 4, py), (px + 4, py)], [(px, py - 4), (px, py + 4)]], BLUE, MEDIUM
    )
    t = np.linspace(-5, 5, 17)
    return drawn + line(np.stack([sx + t, sy + 4 - 8 / (1 + np.exp(-1.2 * t))], axis=-1), BLUE)


def optim() -> str:
    """Gradient descent and momentum on an ill-conditioned quadratic."""
    curvature, start = np.array([1.0, 7.0]), np.array([-58.0, 18.0])

    def descend(rate: float, momentum: float, steps: int) -> Array:
        points, velocity = [start], np.zeros(2)
        for _ in range(steps):
            velocity = momentum * velocity - rate * curvature * points[-1]
            points.append(points[-1] + velocity)
        return np.array(points)

    def on_canvas(points: Array) -> Array:
        return np.array([80, 50]) + points @ rotation(-18)

    contours = [on_canvas(reach * circle() / np.sqrt(curvature)) for reach in (15, 35, 55, 75)]
    plain, heavy = on_canvas(descend(0.27, 0.0, 14)), on_canvas(descend(0.04, 0.72, 40))
    drawn = lines(contours, FAINT) + line(plain, ORANGE) + dots(plain[1:], ORANGE, 1.8)
    return drawn + line(heavy, BLUE, BOLD) + dots([plain[0], (80, 50)], INK, 2.5)


def expressivity() -> str:
    """A ReLU network as a piecewise linear approximation of a curve."""

    def curve(x: Array) -> Array:
        return place(x, np.sin(11 * x**1.6) * (0.55 + 0.45 * x), (0, 1), (-1, 1), (LEFT, 12, RIGHT, 80))

    nodes = curve(np.array([0, 0.26, 0.5, 0.63, 0.755, 0.88, 1]))
    drawn = lines([[(x, 90), (x, BOTTOM)] for x, _ in nodes[1:-1]], FAINT, MEDIUM)
    drawn += line([(LEFT, BOTTOM), (RIGHT, BOTTOM)], FAINT, THIN) + line(curve(np.linspace(0, 1, 90)), ORANGE, BOLD)
    return drawn + line(nodes, BLUE, BOLD) + dots(nodes[1:-1], BLUE, 2.8)


def probability() -> str:
    """A mixture of two Gaussians, its components and a sample."""
    rng = np.random.default_rng(5)
    x = np.linspace(-4, 4.6, 90)
    parts = [(BLUE, 0.55, -1.3, 0.85), (ORANGE, 0.45, 1.7, 1.0)]
    on: Box = (LEFT, TOP, RIGHT, 78)
    peak = max((weight * normal(x, mean, std)).max() for _, weight, mean, std in parts) * 1.08
    drawn, total = "", np.zeros_like(x)
    for colour, weight, mean, std in parts:
        density = weight * normal(x, mean, std)
        curve = place(x, density, (x[0], x[-1]), (0, peak), on)
        drawn += under(curve, 78, colour) + line(curve, colour)
        total += density
        sample = place(rng.normal(mean, std, round(32 * weight)).clip(-3.9, 4.5), 0, (x[0], x[-1]), (0, 1), on)
        drawn += lines([[(at, 84), (at, BOTTOM)] for at, _ in sample], colour)
    drawn += line([(LEFT, 78), (RIGHT, 78)], FAINT, THIN)
    return drawn + line(place(x, total, (x[0], x[-1]), (0, peak), on), INK, BOLD)


def information() -> str:
    """The binary entropy h(p): 0 for certain outcomes, one bit for a fair coin."""

    def entropy(p: Array) -> Array:
        return -(p * np.log2(p) + (1 - p) * np.log2(1 - p))

    p, coins = np.linspace(1e-6, 1 - 1e-6, 80), np.array([0.04, 0.2, 0.5, 0.8, 0.96])
    on: Box = (16, 10, 144, 62)
    curve, marks = place(p, entropy(p), (0, 1), (0, 1), on), place(coins, entropy(coins), (0, 1), (0, 1), on)
    drawn = under(curve, 62, BLUE, 0.12) + line([(LEFT, 62), (RIGHT, 62)], FAINT, THIN)
    drawn += lines([[(x, y + 3), (x, 62)] for x, y in marks], FAINT)
    for (x, _), heads in zip(marks, coins, strict=True):
        for left, share, colour in ((x - 7, 1 - heads, GREEN), (x + 1, heads, ORANGE)):
            drawn += box((left, BOTTOM - 22 * share, left + 6, BOTTOM), fill(colour), rounded=0.8)
    return drawn + line(curve, BLUE, BOLD) + dots(marks, INK, 2.5)


def latent() -> str:
    """PCA: points, the first principal axis, and the projections of the points onto it."""
    rng = np.random.default_rng(9)
    cloud = rng.normal(size=(34, 2)) * [40, 12] @ rotation(-26)
    cloud = cloud[(np.abs(cloud) < [68, 38]).all(axis=1)]
    cloud -= cloud.mean(axis=0)
    axis = np.linalg.svd(cloud)[2][0]
    axis = axis * np.sign(axis[0])
    shadows, middle = np.outer(cloud @ axis, axis), np.array([80, 50])
    drawn = lines([(middle + point, middle + shadow) for point, shadow in zip(cloud, shadows, strict=True)], FAINT)
    drawn += arrow(middle - 74 * axis, middle + 76 * axis, ORANGE, BOLD, size=5)
    return drawn + dots(middle + shadows, ORANGE, 1.4) + dots(middle + cloud, BLUE, 2.2)


def convolution() -> str:
    """Convolution of an image of a disc with an edge-detection kernel."""
    row, column = np.mgrid[:7, :7]
    image = (np.hypot(row - 3, column - 3) < 2.6).astype(float)
    kernel = np.outer([1, 2, 1], [1, 0, -1]) / 4
    seen = np.array([[(kernel * image[r : r + 3, c : c + 3]).sum() for c in range(5)] for r in range(5)])
    cell, r, c = 10.0, 1, 3
    before, after, size = (LEFT, 15.0), (102.0, 25.0), (cell, cell)
    drawn = cells(0.6 * image, before, size, INK) + grid(before, 7, 7, cell)
    drawn += cells(np.maximum(seen, 0), after, size, BLUE) + cells(np.maximum(-seen, 0), after, size, GREEN)
    drawn += grid(after, 5, 5, cell)
    left, top, right, bottom = LEFT + c * cell, 15 + r * cell, LEFT + (c + 3) * cell, 15 + (r + 3) * cell
    x, y = 102 + c * cell, 25 + r * cell
    drawn += lines([[(right, top), (x, y)], [(right, bottom), (x, y + cell)]], ORANGE)
    drawn += box((left, top, right, bottom), outlined(ORANGE, 0.15, BOLD))
    return drawn + box((x, y, x + cell, y + cell), stroke(ORANGE, BOLD))


def vision() -> str:
    """Object detection: proposed bounding boxes (dashed) and final ones."""
    rng = np.random.default_rng(2)
    hull, sail = [(30, 66), (84, 66), (74, 78), (40, 78)], [(56, 61), (56, 18), (82, 58), (34, 58), (56, 18)]
    ship, sun = np.array([*hull, *sail], dtype=float), circle(9, 40) + np.array([121, 25])
    boat = 0.45 * ship + [95, 43]
    drawn = line([(x, 84 + 1.6 * np.sin(x / 4)) for x in np.arange(LEFT, RIGHT + 1, 2)], FAINT) + line(sun, INK)
    for outline in (ship, boat):
        drawn += polygon(outline[:4], outlined(INK, 0.12)) + line(outline[4:], INK)
    for thing, colour in ((ship, BLUE), (boat, BLUE), (sun, ORANGE)):
        (left, top), (right, bottom) = thing.min(axis=0) - 4, thing.max(axis=0) + 4
        for shift in rng.normal(0, 0.05 * (bottom - top), size=(2, 4)):
            proposed = (left + shift[0], top + shift[1], right + shift[2], bottom + shift[3])
            drawn += box(proposed, stroke(colour, THIN, 0.5, "2 3"), rounded=1.5)
        drawn += box((left, top, right, bottom), stroke(colour, BOLD), rounded=1.5)
    return drawn


def audio() -> str:
    """A waveform and its spectrogram: three harmonic sounds under a windowed Fourier transform."""
    time, size, frames = np.arange(4096) / 4096, 256, 36
    sound = np.zeros_like(time)
    syllables = ((0.8, 0.0, 0.3, 110, 150), (1.0, 0.34, 0.66, 180, 140), (0.6, 0.7, 1.0, 120, 120))
    for volume, start, end, first, last in syllables:
        beat = ((time - start) / (end - start)).clip(0, 1)
        phase = 2 * np.pi * (end - start) * (first * beat + (last - first) * beat**2 / 2)
        sound += volume * np.sin(np.pi * beat) ** 0.7 * sum(np.sin(k * phase) / k**0.7 for k in (1, 2, 3, 4))
    starts = np.linspace(0, len(sound) - size, frames).astype(int)
    spectrum = np.abs([np.fft.rfft(np.hanning(size) * sound[s : s + size])[4:48] for s in starts])
    spectrum = spectrum.reshape(frames, 22, 2).max(axis=2).T[::-1] / spectrum.max()
    drawn = cells(np.where(spectrum > 0.15, spectrum**0.5, 0), (LEFT, 42), (144 / frames, 50 / len(spectrum)), BLUE)
    loud = np.abs(sound).reshape(64, -1).max(axis=1) / np.abs(sound).max()
    columns = zip(np.linspace(LEFT + 1, RIGHT - 1, 64), 12 * loud, strict=True)
    return drawn + lines([[(x, 21 - reach), (x, 21 + reach)] for x, reach in columns], ORANGE)


def recurrent() -> str:
    """A recurrent cell, unrolled in time; the state after a pulse at the first step decays."""
    pulse, states = np.array([1.0, 0, 0, 0]), [0.0]
    for value in pulse:
        states.append(float(np.tanh(0.6 * states[-1] + 1.8 * value)))
    centres, half = (18.0, 64.0, 90.0, 116.0, 142.0), 7.0
    drawn = ""
    for x, state, value in zip(centres, states, [0.0, *pulse], strict=True):
        style = f"{fill(BLUE, 0.85 * state)};{stroke(BLUE, MEDIUM)}"
        drawn += box((x - half, 50 - half, x + half, 50 + half), style, rounded=2)
        drawn += arrow((x, 77), (x, 60), INK) + arrow((x, 40), (x, 23), INK)
        drawn += ring((x, 84), 4, f"{fill(INK, value)};{stroke(INK, MEDIUM)}") + ring((x, 16), 4, stroke(INK, MEDIUM))
    for left, right in pairwise(centres[1:]):
        drawn += arrow((left + half + 2, 50), (right - half - 2, 50), ORANGE, size=3)
    loop = "M27 53c14 6 14 -24 -2 -14" + head((25, 39), (-1, 0.6))
    drawn += lines([[(44, 48), (50, 48)], [(44, 52), (50, 52)]], FAINT, MEDIUM)
    return drawn + path(loop, stroke(ORANGE, MEDIUM))


def text() -> str:
    """Next-word prediction: the preceding words, and frequencies of the words that followed the last one (orange)."""
    song = "we sing and we dance and we sing and we laugh and we sing then we dance and we rest and we"
    words = song.split()
    drawn, x, y = "", LEFT, 11.0
    for spoken, word in enumerate(words, start=1):
        width = 4 + 2.6 * len(word)
        if x + width > 94:
            x, y = LEFT, y + 17
        style = fill(ORANGE, 1 if spoken == len(words) else 0.4) if word == words[-1] else fill(FAINT, 0.45)
        drawn += box((x, y, x + width, y + 10), style, rounded=2)
        x += width + 3
    drawn += box((x, y, x + 14, y + 10), stroke(BLUE, MEDIUM, dashes="2 3"), rounded=2)
    after = [following for word, following in pairwise(words) if word == words[-1]]
    shares = sorted((after.count(word) / len(after) for word in set(after)), reverse=True)
    for rank, share in enumerate(shares):
        top = 19.5 + 17 * rank
        corners = (106.0, top, 106 + 46 * share / shares[0], top + 10)
        drawn += box(corners, fill(BLUE, 1 if rank == 0 else 0.5), rounded=2)
    return drawn + line([(102, 14), (102, 86)], FAINT, THIN)


def music() -> str:
    """A piano roll: the first bars of the Ode to Joy with a bass."""
    lowest, pitch, key = 55, 5.6, 16.0
    melody = [(64, 1.0), (64, 1), (65, 1), (67, 1), (67, 1), (65, 1), (64, 1), (62, 1)]
    melody += [(60, 1.0), (60, 1), (62, 1), (64, 1), (64, 1.5), (62, 0.5), (62, 2)]
    bass = [(60, 4.0), (59, 4), (57, 4), (55, 4)]
    beat = (RIGHT - LEFT - key) / 16
    black = [note for note in range(lowest, lowest + 15) if note % 12 in {1, 3, 6, 8, 10}]
    drawn = box((LEFT, TOP, LEFT + key - 2, BOTTOM), stroke(INK, THIN))
    for note in black:
        bottom = BOTTOM - (note - lowest) * pitch
        drawn += box((LEFT, bottom - pitch, LEFT + 8, bottom), fill(INK))
        drawn += box((LEFT + key, bottom - pitch, RIGHT, bottom), fill(FAINT, 0.18))
    for colour, voice in ((ORANGE, bass), (BLUE, melody)):
        x = LEFT + key
        for note, beats in voice:
            top = BOTTOM - (note - lowest + 1) * pitch
            drawn += box((x + 0.6, top + 0.6, x + beats * beat - 0.6, top + pitch - 0.6), fill(colour), rounded=1.2)
            x += beats * beat
    return drawn


def attention() -> str:
    """Causal attention: the weight matrix, and the weights of one query."""
    rng = np.random.default_rng(4)
    count, cell, chosen = 8, 10.5, 5
    queries, keys = rng.normal(size=(2, count, 6))
    scores = np.where(np.tri(count) > 0, queries @ keys.T / np.sqrt(6) * 2, -inf)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    others = weights * (np.arange(count) != chosen)[:, None]
    drawn = cells(np.sqrt(others), (LEFT, TOP), (cell, cell), BLUE)
    drawn += cells(np.sqrt(weights - others), (LEFT, TOP), (cell, cell), ORANGE)
    edges = TOP + cell * np.arange(count + 1)
    reach = [min(k + 1, count) for k in range(count + 1)]
    drawn += lines([[(LEFT, edges[k]), (edges[reach[k]], edges[k])] for k in range(count + 1)], FAINT)
    drawn += lines([[(edges[k], edges[max(k - 1, 0)]), (edges[k], BOTTOM)] for k in range(count + 1)], FAINT)
    heights = TOP + cell * (np.arange(count) + 0.5)
    for key in range(chosen + 1):
        strength = 0.2 + 0.8 * weights[chosen, key] / weights[chosen].max()
        drawn += line([(112, heights[key]), (146, heights[chosen])], ORANGE, opacity=strength)
    past = [(108, y) for y in heights[: chosen + 1]]
    rest = [*((108, y) for y in heights[chosen + 1 :]), *((149, y) for y in np.delete(heights, chosen))]
    return drawn + dots(past, BLUE, 2.8) + dots(rest, FAINT, 2) + dots([(149, heights[chosen])], ORANGE, 2.8)


def adversarial() -> str:
    """A GAN in training: data density (blue), generated density (orange), discriminator (dotted), map of the noise."""
    real, fake = (0.9, 0.75), (-0.9, 0.65)
    x, on = np.linspace(-3, 3, 80), (LEFT, TOP, RIGHT, 64.0)
    peak = normal(x, *fake).max() * 1.1
    p, q = normal(x, *real), normal(x, *fake)
    data, model = (place(x, density, (-3, 3), (0, peak), on) for density in (p, q))
    judge = place(x, p / (p + q), (-3, 3), (0, 1.3), on)
    drawn = under(data, 64, BLUE) + under(model, 64, ORANGE)
    noise = np.linspace(0.06, 0.94, 12)
    carried = [fake[0] + fake[1] * NormalDist().inv_cdf(float(z)) for z in noise]
    ends = place(carried, 0, (-3, 3), (0, peak), on)
    starts = place(noise, 0, (0, 1), (0, 1), (LEFT, TOP, RIGHT, 90))
    drawn += lines([*zip(starts, ends, strict=True)], FAINT)
    drawn += lines([[(LEFT, 64), (RIGHT, 64)], [(LEFT, 90), (RIGHT, 90)]], FAINT)
    drawn += arrow((70, 14), (84, 14), ORANGE)
    return drawn + line(judge, INK, MEDIUM, dashes="1 4") + line(data, BLUE, BOLD) + line(model, ORANGE, BOLD)


def transport() -> str:
    """Optimal assignment of two point clouds (the best of all 8! matchings) and their displacement interpolation."""
    source = np.array([(13, 52), (22, 35), (24, 66), (33, 49), (38, 28), (41, 74), (49, 42), (51, 59)])
    target = circle(1, 8)[:8] @ rotation(12) * [26, 38] + [122, 50]
    cost = np.linalg.norm(source[:, None] - target, axis=-1)
    orders = np.array(list(permutations(range(8))))
    best = orders[cost[np.arange(8), orders].sum(axis=1).argmin()]
    drawn = lines([between(a, b, 5) for a, b in zip(source, target[best], strict=True)], FAINT, MEDIUM)
    return drawn + dots((source + target[best]) / 2, INK, 1.5) + dots(source, BLUE, 3.2) + dots(target, ORANGE, 3.2)


def flows() -> str:
    """An invertible map, shown by the images of a grid and of two contours of the base density."""

    def warp(z: Array) -> Array:
        x, y = z[..., 0], z[..., 1]
        y = y + 0.9 * np.sin(1.1 * x)
        x = x * np.exp(0.25 * np.tanh(y)) + 0.5 * np.sin(1.2 * y)
        return np.stack([x, y], axis=-1)

    ticks, along = np.linspace(-2, 2, 9), np.linspace(-2, 2, 15)
    straight = [np.stack(np.broadcast_arrays(tick, along), axis=-1) for tick in ticks]
    net = [*straight, *(piece[:, ::-1] for piece in straight)]
    everywhere = warp(np.concatenate(net))
    low, high = everywhere.min(axis=0), everywhere.max(axis=0)

    def before(z: Array) -> Array:
        return place(z[:, 0], z[:, 1], (-2, 2), (-2, 2), (LEFT, 24, 60, 76))

    def after(z: Array) -> Array:
        bent = warp(z)
        return place(bent[:, 0], bent[:, 1], (low[0], high[0]), (low[1], high[1]), (86, 12, RIGHT, 88))

    drawn = lines([before(piece[[0, -1]]) for piece in net], FAINT) + lines([after(piece) for piece in net], FAINT)
    for radius, colour in ((1.5, BLUE), (0.8, ORANGE)):
        for view in (before, after):
            drawn += polygon(view(circle(radius, 36)), outlined(colour, 0.15))
    return drawn + arrow((67, 50), (80, 50), INK, BOLD)


def diffusion() -> str:
    """Forward diffusion of the two moons: x_t = √ᾱ x₀ + √(1 − ᾱ) ε with one ε per point."""
    rng = np.random.default_rng(305)
    angle = np.linspace(0, np.pi, 18)
    upper = np.stack([np.cos(angle) - 0.5, np.sin(angle) - 0.25], axis=-1)
    moons, noise = 1.3 * np.concatenate([upper, -upper]), rng.normal(size=(36, 2))
    drawn = arrow((LEFT, 90), (RIGHT, 90), FAINT)
    for centre, alpha_bar in ((30, 1.0), (80, 0.97), (130, 0.0)):
        points = np.sqrt(alpha_bar) * moons + np.sqrt(1 - alpha_bar) * noise
        points = np.array([centre, 45]) + points * [10, -17]
        drawn += dots(points[:18], BLUE, 1.8) + dots(points[18:], ORANGE, 1.8)
    return drawn


def metrics() -> str:
    """Fréchet distance: real points (ink) and samples (blue), each with the ellipse and the mean of its Gaussian."""
    rng = np.random.default_rng(4)
    real = rng.normal(size=(30, 2)) * [15, 9] @ rotation(-28) + [58, 54]
    samples = rng.normal(size=(30, 2)) * [10, 9] @ rotation(20) + [108, 44]
    drawn, means = "", []
    for points, colour in ((real, INK), (samples, BLUE)):
        mean, root = points.mean(axis=0), np.linalg.cholesky(np.cov(points.T))
        drawn += polygon(mean + 2 * circle() @ root.T, outlined(colour, 0.1)) + dots(points, colour, 1.8)
        means.append(mean)
    return drawn + arrow(*between(*means, 2), ORANGE, BOLD)


def kernels() -> str:
    """Gaussian process regression: data, posterior mean and a band of two standard deviations."""
    seen, values = np.array([0.1, 0.26, 0.38, 0.66, 0.86]), np.array([-0.3, 0.55, 0.75, -0.65, 0.15])
    x = np.linspace(0, 1, 80)

    def kernel(a: Array, b: Array) -> Array:
        return 0.5 * np.exp(-((a[:, None] - b) ** 2) / (2 * 0.13**2))

    gain = kernel(x, seen) @ np.linalg.inv(kernel(seen, seen) + 1e-4 * np.eye(len(seen)))
    mean, std = gain @ values, np.sqrt(np.maximum(0.5 - (gain * kernel(x, seen)).sum(axis=1), 0))
    reach = np.abs([mean + 2 * std, mean - 2 * std]).max()

    def on_canvas(at: Array, y: Array) -> Array:
        return place(at, y, (0, 1), (-reach, reach), (LEFT, TOP, RIGHT, BOTTOM))

    upper, lower = on_canvas(x, mean + 2 * std), on_canvas(x, mean - 2 * std)
    drawn = polygon([*upper, *lower[::-1]], fill(BLUE, 0.18)) + line(on_canvas(x, mean), BLUE, BOLD)
    return drawn + dots(on_canvas(seen, values), ORANGE, 3)


def transfer() -> str:
    """A decision boundary learned in one domain, transferred to another by aligning the principal axes."""
    rng = np.random.default_rng(10)
    labels = np.repeat([False, True], 11)

    def cloud() -> Array:
        return rng.normal(size=(22, 2)) * [5.5, 12] + np.where(labels[:, None], [17, 0], [-17, 0])

    def frame(points: Array) -> tuple[Array, Array]:
        """The mean, and the principal axes as rows, scaled by their standard deviations."""
        variances, axes = np.linalg.eigh(np.cov(points.T))
        return points.mean(axis=0), (axes * np.sign(axes[0]) * np.sqrt(variances)).T

    source, target = cloud() + np.array([40, 50]), cloud() * [1.05, 0.9] @ rotation(-50) + [121, 51]
    within = sum(np.cov(source[labels == label].T) for label in (False, True))
    across = np.linalg.solve(within, source[labels].mean(axis=0) - source[~labels].mean(axis=0))
    (middle, axes), (there, axes_there) = frame(source), frame(target)
    learned = middle + np.outer([-36, 36], [-across[1], across[0]]) / np.linalg.norm(across)
    carried = there + (learned - middle) @ np.linalg.inv(axes) @ axes_there
    drawn = line(learned, INK, BOLD) + line(carried, INK, BOLD, dashes="4 4")
    for label, colour in ((True, BLUE), (False, ORANGE)):
        drawn += dots(source[labels == label], colour, 2.2)
        drawn += "".join(ring(point, 2, stroke(colour, THIN)) for point in target[labels == label])
    return drawn + arrow((72, 50), (83, 50), INK, BOLD)


def shapley() -> str:
    """Shapley values of a five-player game as a waterfall plot."""
    worth = np.array([4.0, -2.0, 2.0, 1.5, -1.0])
    bonus = {(0, 1): -1.0, (1, 2): 1.0, (2, 3): 1.5, (0, 4): -0.6}

    def value(team: frozenset[int]) -> float:
        return float(sum(worth[i] for i in team) + sum(extra for pair, extra in bonus.items() if team.issuperset(pair)))

    shares = np.zeros(5)
    for order in permutations(range(5)):
        for rank, player in enumerate(order):
            shares[player] += value(frozenset(order[: rank + 1])) - value(frozenset(order[:rank]))
    shares /= factorial(5)
    steps = np.concatenate([[0], shares.cumsum()])
    across = 12 + 136 * (steps - steps.min()) / (steps.max() - steps.min())
    drawn = lines([[(x, TOP), (x, BOTTOM)] for x in (across[0], across[-1])], FAINT)
    for row, (start, end) in enumerate(pairwise(across)):
        top, colour = 11 + 17 * row, BLUE if end > start else ORANGE
        drawn += box((min(start, end), top, max(start, end), top + 10), fill(colour), rounded=1.5)
        drawn += line([(end, top + 10), (end, top + 17)], FAINT, THIN) if row < 4 else ""
    return drawn


def values_and_moves(world: list[str], discount: float) -> tuple[dict[Cell, float], dict[Cell, Cell]]:
    """Value iteration, v(s) = max over moves of γ v(s′) with terminal values ±1; returns values and greedy moves."""
    free = [(r, c) for r, row in enumerate(world) for c, mark in enumerate(row) if mark != "#"]
    ends = {(r, c): 1.0 if world[r][c] == "+" else -1.0 for r, c in free if world[r][c] in "+-"}
    value = dict.fromkeys(free, 0.0) | ends
    around = {
        (r, c): [there for there in ((r - 1, c), (r, c + 1), (r + 1, c), (r, c - 1)) if there in value]
        for r, c in free
        if (r, c) not in ends
    }
    for _ in range(60):
        value |= {state: discount * max(value[there] for there in near) for state, near in around.items()}
    return value, {state: max(near, key=lambda there: round(value[there], 9)) for state, near in around.items()}


def reinforcement() -> str:
    """Value iteration in a grid world: values as colours, greedy actions as arrows, and one greedy trajectory."""
    world = ["....#....", ".##.#.#.+", "....#.#..", ".#....#-.", "...#....."]
    value, move = values_and_moves(world, discount=0.85)
    cell, origin, size = 16.0, (LEFT, 10.0), (16.0, 16.0)

    def centre(state: Cell) -> Array:
        return np.array([LEFT + (state[1] + 0.5) * cell, 10 + (state[0] + 0.5) * cell])

    worth = np.array([[max(value.get((r, c), 0.0), 0.0) for c in range(9)] for r in range(5)])
    walls = np.array([[float(mark == "#") for mark in row] for row in world])
    drawn = (
        cells(0.6 * worth**0.7, origin, size, BLUE) + cells(0.6 * walls, origin, size, FAINT) + grid(origin, 9, 5, cell)
    )
    walk = [(4, 0)]
    while walk[-1] in move:
        walk.append(move[walk[-1]])
    for state in value:
        if state in move:
            step, here = 0.22 * (centre(move[state]) - centre(state)), centre(state)
            colour, width = (GREEN, BOLD) if state in walk else (INK, THIN)
            drawn += arrow(here - step, here + step, colour, width, size=3)
        else:
            drawn += ring(centre(state), 4.5, fill(GREEN if value[state] > 0 else ORANGE))
    return drawn


def outcome(board: str) -> int | None:
    """Result of a tic-tac-toe position: 1 if X has won, −1 if O has won, 0 for a draw, None if it is not terminal."""
    for a, b, c in ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)):
        if board[a] != "." and board[a] == board[b] == board[c]:
            return 1 if board[a] == "X" else -1
    return None if "." in board else 0


def followers(board: str) -> list[str]:
    mover = "X" if board.count(".") % 2 else "O"
    empty = [k for k, mark in enumerate(board) if mark == "."] if outcome(board) is None else []
    return [board[:k] + mover + board[k + 1 :] for k in empty]


def solve(board: str) -> int:
    """Minimax value of a position for X."""
    ended = outcome(board)
    if ended is not None:
        return ended
    return (max if board.count(".") % 2 else min)(solve(after) for after in followers(board))


def tree(board: str, x: float, low: float, high: float) -> str:
    """The game tree of a position, drawn to the right; blue: won for X, orange: lost, grey: drawn."""
    colours, after = {1: BLUE, 0: FAINT, -1: ORANGE}, followers(board)
    centre, share = (x, (low + high) / 2), (high - low) / max(len(after), 1)
    drawn = ring(centre, 3.5, fill(colours[solve(board)]))
    for k, follower in enumerate(after):
        child = (x + 21.5, low + (k + 0.5) * share)
        drawn += line(between(centre, child, 5), colours[solve(follower)])
        drawn += tree(follower, child[0], low + k * share, low + (k + 1) * share)
    return drawn


def games() -> str:
    """A tic-tac-toe position, its solved game tree, and the winning move."""
    board, cell = "X.O.X.XOO", 20.0
    drawn = lines([[(LEFT + k * cell, 20), (LEFT + k * cell, 80)] for k in (1, 2)], FAINT, MEDIUM)
    drawn += lines([[(LEFT, 20 + k * cell), (LEFT + 60, 20 + k * cell)] for k in (1, 2)], FAINT, MEDIUM)
    for square, mark in enumerate(board):
        left, top = LEFT + square % 3 * cell, 20 + square // 3 * cell
        centre = (left + cell / 2, top + cell / 2)
        if mark == "X":
            drawn += cross(centre, 5, BOLD)
        elif mark == "O":
            drawn += ring(centre, 5.5, stroke(ORANGE, BOLD))
        elif solve(board[:square] + "X" + board[square + 1 :]) == 1:
            drawn += box((left + 3, top + 3, left + cell - 3, top + cell - 3), fill(BLUE, 0.3), rounded=2)
    return drawn + tree(board, 84, TOP, BOTTOM)


ROOMS: tuple[Callable[[], str], ...] = (
    layers,
    losses,
    autodiff,
    optim,
    expressivity,
    probability,
    information,
    latent,
    convolution,
    vision,
    audio,
    recurrent,
    text,
    music,
    attention,
    adversarial,
    transport,
    flows,
    diffusion,
    metrics,
    kernels,
    transfer,
    shapley,
    reinforcement,
    games,
)


def svg(content: str) -> str:
    opening = 'xmlns="http://www.w3.org/2000/svg" viewBox="0 0 160 100" fill="none"'
    return f'<svg {opening} stroke-linecap="round" stroke-linejoin="round">{content}</svg>\n'


def pictures() -> dict[str, str]:
    """The names of all rooms with their SVGs, in the order of `ROOMS`."""
    return {room.__name__: svg(room()) for room in ROOMS}


def main() -> None:
    for name, picture in pictures().items():
        (PACKAGE / name / "room.svg").write_text(picture, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
