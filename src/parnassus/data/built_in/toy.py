"""Toy data with known distributions: points in the plane, curves, waves, tiny images and truth tables.

Every function uses its own torch.Generator, so the same arguments always give the same rows.
"""

from collections.abc import Callable, Sequence
from math import factorial, pi

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from parnassus.data.splits import Split
from parnassus.errors import check_non_negative, check_positive


def xor() -> Split:
    """The four rows of exclusive or, which no single neuron can separate."""
    return boolean_table(2, lambda bits: bits.sum(1) % 2)


def boolean_table(inputs: int, function: Callable[[Int[Tensor, "rows inputs"]], Shaped[Tensor, " rows"]]) -> Split:
    """All 2ⁿ rows of n bits in ascending order, the first bit being the highest, with the value of each (0 or 1)."""
    if not 1 <= inputs <= 20:
        raise ValueError(f"inputs must be from 1 to 20; got inputs={inputs}")
    numbers = torch.arange(2**inputs)[:, None]
    bits = numbers >> torch.arange(inputs - 1, -1, -1) & 1
    return Split(bits.float(), function(bits).long())


def moons(count: int, *, noise: float = 0.05, seed: int = 0) -> Split:
    """Two interlocking half circles of radius 1; the second is centred at (1, ½)."""
    generator = _generator(seed)
    label = _balanced_labels(count, 2)
    angle = pi * torch.rand(count, generator=generator)
    upper, lower = moon_arcs(angle)
    return Split(_add_noise(torch.where(label[:, None] == 0, upper, lower), noise, generator), label)


def moon_arcs(angle: Float[Tensor, " count"]) -> tuple[Float[Tensor, "count 2"], Float[Tensor, "count 2"]]:
    """The points of both half circles at these angles in [0, π]."""
    upper = torch.stack([angle.cos(), angle.sin()], dim=1)
    return upper, torch.tensor([1.0, 0.5]).to(upper) - upper


def rings(count: int, *, noise: float = 0.05, seed: int = 0, radii: tuple[float, ...] = (0.5, 1.0)) -> Split:
    """Circles around the origin, one per class."""
    generator = _generator(seed)
    label = _balanced_labels(count, len(radii))
    radius = torch.tensor(radii)[label]
    return Split(_add_noise(_polar(radius, 2 * pi * torch.rand(count, generator=generator)), noise, generator), label)


def spirals(count: int, *, noise: float = 0.02, seed: int = 0, arms: int = 2, turns: float = 1.0) -> Split:
    """Archimedean spirals r = t, one per class, each turning `turns` times while t goes from 0 to 1."""
    generator = _generator(seed)
    label = _balanced_labels(count, arms)
    t = torch.rand(count, generator=generator).sqrt()  # nearly uniform along the arm
    return Split(_add_noise(_polar(t, 2 * pi * (turns * t + label / arms)), noise, generator), label)


def eight_gaussians(count: int, *, noise: float = 0.1, seed: int = 0) -> Split:
    """Eight isotropic Gaussians of standard deviation `noise`, with means evenly spaced on the circle of radius 2."""
    generator = _generator(seed)
    label = _balanced_labels(count, 8)
    return Split(_add_noise(_polar(torch.full((count,), 2.0), 2 * pi * label / 8), noise, generator), label)


def checkerboard(count: int, *, noise: float = 0.0, seed: int = 0) -> Split:
    """Uniform on the eight black squares of a 4×4 board over [−2, 2]²; the label is the index of the square."""
    generator = _generator(seed)
    label = _balanced_labels(count, 8)
    row = label // 2
    column = 2 * (label % 2) + row % 2
    corner = torch.stack([column, row], dim=1).float() - 2
    return Split(_add_noise(corner + torch.rand(count, 2, generator=generator), noise, generator), label)


def swiss_roll(count: int, *, noise: float = 0.0, seed: int = 0) -> Split:
    """A sheet rolled up in space, (t cos t, h, t sin t); y is (t, h), the coordinates on the sheet.

    t is uniform on [3π/2, 9π/2] and h on [0, 21], as in scikit-learn; columns 0 and 2 are the spiral in the plane.
    """
    generator = _generator(seed)
    t = 1.5 * pi * (1 + 2 * torch.rand(count, generator=generator))
    height = 21 * torch.rand(count, generator=generator)
    roll = torch.stack([t * t.cos(), height, t * t.sin()], dim=1)
    return Split(_add_noise(roll, noise, generator), torch.stack([t, height], dim=1))


def sines(count: int, *, noise: float = 0.0, seed: int = 0, length: int = 64) -> Split:
    """Waves sin(2π f k / length + φ) of `length` samples, one per row with one channel last; y is (f, φ).

    f is uniform on [1, 4] periods per row, φ on [0, 2π).
    """
    generator = _generator(seed)
    frequency = 1 + 3 * torch.rand(count, 1, generator=generator)
    phase = 2 * pi * torch.rand(count, 1, generator=generator)
    wave = (2 * pi * frequency * torch.arange(length) / length + phase).sin()
    return Split(_add_noise(wave[..., None], noise, generator), torch.cat([frequency, phase], dim=1))


def curve(
    count: int,
    function: Callable[[Float[Tensor, "count 1"]], Float[Tensor, "count 1"]] = torch.sin,
    *,
    noise: float = 0.1,
    seed: int = 0,
    low: float = -pi,
    high: float = pi,
) -> Split:
    """Regression on one number: x uniform on [low, high], y = function(x) + noise ε with ε ~ N(0, 1)."""
    generator = _generator(seed)
    x = low + (high - low) * torch.rand(count, 1, generator=generator)
    return Split(x, _add_noise(function(x), noise, generator))


def linear(
    count: int,
    w: Sequence[float] = (2.0, -3.4),
    b: float = 4.2,
    *,
    noise: float = 0.01,
    seed: int = 0,
) -> Split:
    """A linear model with Gaussian noise: x ~ N(0, I), y = wᵀx + b + noise ε with ε ~ N(0, 1) (Zhao sec. 3)."""
    generator = _generator(seed)
    x = torch.randn(count, len(w), generator=generator)
    return Split(x, _add_noise(x @ torch.tensor(w) + b, noise, generator))


def polynomial(
    count: int,
    coefficients: Sequence[float] = (5.0, 1.2, -3.4, 5.6),
    *,
    noise: float = 0.1,
    seed: int = 0,
) -> Split:
    """Uniform x on [−1, 1] and y = Σ_i c_i xⁱ / i! + noise ε: by default a noisy cubic (Zhao sec. 3)."""
    powers = [c / factorial(i) for i, c in enumerate(coefficients)]
    return curve(count, lambda x: _evaluate_polynomial(x, powers), noise=noise, seed=seed, low=-1.0, high=1.0)


TINY_CLASSES = ("cat", "chicken", "dog")
TINY_PROTOTYPES = ((0.9, 0.9, 0.2, 0.5), (0.2, 0.8, 0.4, 0.1), (0.4, 0.3, 0.9, 0.8))
"""The four grey values of each class without noise, row by row."""


def tiny_images(count: int, *, noise: float = 0.3, seed: int = 0) -> Split:
    """Grey images of 2×2 pixels in three classes, each a prototype with added noise (Zhao sec. 4).

    The notes give no pixels, so the prototypes are chosen here. With noise some grey values lie outside [0, 1].
    """
    label = _balanced_labels(count, len(TINY_CLASSES))
    pixels = torch.tensor(TINY_PROTOTYPES).reshape(-1, 1, 2, 2)[label]
    return Split(_add_noise(pixels, noise, _generator(seed)), label)


def _evaluate_polynomial(x: Float[Tensor, "count 1"], coefficients: Sequence[float]) -> Float[Tensor, "count 1"]:
    """Σ_i c_i xⁱ by Horner's rule."""
    value = torch.zeros_like(x)
    for c in reversed(coefficients):
        value = value * x + c
    return value


def _generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def _balanced_labels(count: int, classes: int) -> Int[Tensor, " count"]:
    """Labels 0, 1, …, 0, 1, …: balanced, also in the first rows."""
    check_positive(count=count)
    return torch.arange(count) % classes


def _polar(radius: Float[Tensor, " count"], angle: Float[Tensor, " count"]) -> Float[Tensor, "count 2"]:
    return radius[:, None] * torch.stack([angle.cos(), angle.sin()], dim=1)


def _add_noise(
    x: Float[Tensor, "count *event"], noise: float, generator: torch.Generator
) -> Float[Tensor, "count *event"]:
    check_non_negative(noise=noise)
    return x + noise * torch.randn(x.shape, generator=generator)
