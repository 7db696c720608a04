"""Interactive comparison of positional schemes by their scores between positions (Diehl sec. 3)."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated

import torch
from torch import Tensor

from parnassus.atlas.decorators import probe
from parnassus.attention.positions.alibi import alibi_bias, alibi_slopes
from parnassus.attention.positions.relative import relative_scores
from parnassus.attention.positions.rotary import apply_rotation
from parnassus.attention.positions.sinusoidal import frequencies, sines_and_cosines, sinusoidal_encoding
from parnassus.widgets import Answer, Curves, FloatSlider, Images, IntSlider, Numbers, Select

LENGTH = 128
VECTORS = torch.randn(LENGTH, 256, generator=torch.Generator().manual_seed(0))
"""Untrained vectors of positions or distances."""


def _table(width: int, base: float) -> Tensor:  # noqa: ARG001 - a table has no frequencies
    encoding = VECTORS[:, :width]
    return encoding @ encoding.T / width


def _sinusoidal(width: int, base: float) -> Tensor:
    encoding = sinusoidal_encoding(torch.arange(LENGTH, dtype=torch.float32), width, base=base)
    return encoding @ encoding.T * 2 / width


def _rotary(width: int, base: float, *, sign: int = 1) -> Tensor:
    """Scores of equal queries and keys after rotation; with `sign` = −1 keys rotate in the wrong direction."""
    content = torch.ones(LENGTH, width) / width**0.5
    sin, cos = sines_and_cosines(torch.arange(LENGTH), frequencies(width, base=base)).float().unbind(-2)
    return apply_rotation(content, cos, sin) @ apply_rotation(content, cos, sign * sin).T


def _relative(width: int, base: float) -> Tensor:  # noqa: ARG001 - no frequencies, as _table
    query = VECTORS[3:4, :width].expand(LENGTH, -1)[None]  # matches the vector of distance 3
    return relative_scores(query, VECTORS[None, :, :width], LENGTH)[0] / width


def _alibi(width: int, base: float) -> Tensor:  # noqa: ARG001 - depends on distances only
    return alibi_bias(alibi_slopes(8)[3:4], LENGTH)[0]


SCHEMES: Mapping[str, Callable[[int, float], Tensor]] = {
    "sines and cosines": _sinusoidal,
    "rotary": _rotary,
    "rotary, mixed signs": partial(_rotary, sign=-1),
    "learned table, untrained": _table,
    "relative, query matching distance 3": _relative,
    "ALiBi, slope 1/16": _alibi,
}


@probe()
@torch.no_grad()
def position_products(
    scheme: Annotated[int, Select("positions", tuple(SCHEMES))] = 0,
    position: Annotated[int, IntSlider("position m", 0, LENGTH - 1)] = 64,
    num_frequencies: Annotated[int, IntSlider("number of frequencies, half the width", 1, 128)] = 32,
    base: Annotated[float, FloatSlider("base of the frequencies", 2.0, 100_000.0, log=True)] = 10_000.0,
) -> list[Answer]:
    """Products of the encoding of one position with all others, or the bias (Diehl sec. 3).

    Start with sines and cosines and change the position: the curve shifts without changing its shape, since it depends
    on m − n only. Rotary positions with equal content give the same curve; with keys rotated in the wrong direction the
    shape changes with the position. With few frequencies or a small base, distant positions have large products.
    """
    name, compute = list(SCHEMES.items())[scheme]
    products = compute(2 * num_frequencies, base)
    row = products[position].tolist()
    positions = [float(n) for n in range(LENGTH)]
    curve = Curves(
        "Products with one position",
        {name: (positions, row)},
        x_label="position n",
        y_label="product",
        marked=float(position),
        about=f"Position {position} (marked) with every position n.",
    )
    return [curve, _product_image(products, position), _numbers(products, position, num_frequencies, base)]


def _product_image(products: Tensor, position: int) -> Images:
    """All pairs of positions as grey values, with white lines around the row of the position."""
    low, high = products.min(), products.max()
    grey = (products - low) / (high - low).clamp(min=1e-9)
    if position > 0:
        grey[position - 1] = 1.0
    if position < LENGTH - 1:
        grey[position + 1] = 1.0
    large = grey.repeat_interleave(2, 0).repeat_interleave(2, 1)
    about = "Rows are m, columns n; black is the minimum, white the maximum. Constant diagonals depend on m − n only."
    return Images("All pairs", large[None, None], ["between the white lines: the position"], about=about)


def _numbers(products: Tensor, position: int, num_frequencies: int, base: float) -> Numbers:
    spread = torch.stack([products.diagonal(-r).std() for r in range(1, LENGTH // 2)]).max()
    others = products[position].clone()
    others[position] = -torch.inf
    wavelength = 2 * torch.pi / float(frequencies(2 * num_frequencies, base=base)[-1])
    values: dict[str, float | str] = {
        "product with itself": float(products[position, position]),
        "largest product with another position": float(others.max()),
        "at position": float(others.argmax()),
        "standard deviation among pairs of equal distance": float(spread),
        "longest wavelength, in positions": wavelength,
    }
    about = "The standard deviation is the maximum over distances; 0 if products depend on the distance only."
    return Numbers("Statistics", values, about=about)
