"""Positions to touch: what one place says to all others, in each scheme (Diehl sec. 3)."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated

import torch
from torch import Tensor

from parnassus.atlas.marks import probe
from parnassus.attention.alibi import alibi_bias, alibi_slopes
from parnassus.attention.relative import relative_scores
from parnassus.attention.rotary import rotate
from parnassus.attention.sinusoidal import frequencies, sinusoidal, waves
from parnassus.touch import Answer, Curves, Images, Numbers, Pick, Real, Whole

PLACES = 128
DRAWN = torch.randn(PLACES, 256, generator=torch.Generator().manual_seed(0))
"""Vectors of places or distances as a table has them before it is trained."""


def _table(width: int, base: float) -> Tensor:  # noqa: ARG001 - a table has no frequencies
    code = DRAWN[:, :width]
    return code @ code.T / width


def _waves(width: int, base: float) -> Tensor:
    code = sinusoidal(torch.arange(PLACES, dtype=torch.float32), width, base=base)
    return code @ code.T * 2 / width


def _rotary(width: int, base: float, *, turn: int = 1) -> Tensor:
    """A query and a key that are alike, turned; with `turn` = −1 the key is turned the wrong way."""
    content = torch.ones(PLACES, width) / width**0.5
    sin, cos = waves(torch.arange(PLACES), frequencies(width, base=base)).float().unbind(-2)
    return rotate(content, cos, sin) @ rotate(content, cos, turn * sin).T


def _relative(width: int, base: float) -> Tensor:  # noqa: ARG001 - as _table
    query = DRAWN[3:4, :width].expand(PLACES, -1)[None]  # it asks for what stood three places before
    return relative_scores(query, DRAWN[None, :, :width], PLACES)[0] / width


def _alibi(width: int, base: float) -> Tensor:  # noqa: ARG001 - nothing but distances counts
    return alibi_bias(alibi_slopes(8)[3:4], PLACES)[0]


SCHEMES: Mapping[str, Callable[[int, float], Tensor]] = {
    "sines and cosines": _waves,
    "rotary": _rotary,
    "rotary, mixed signs": partial(_rotary, turn=-1),
    "learned table, untrained": _table,
    "relative, asking for three places before": _relative,
    "ALiBi, slope 1/16": _alibi,
}


@probe()
@torch.no_grad()
def positions_and_products(
    scheme: Annotated[int, Pick("positions", tuple(SCHEMES))] = 0,
    place: Annotated[int, Whole("place m", 0, PLACES - 1)] = 64,
    half: Annotated[int, Whole("frequencies, half the width", 1, 128)] = 32,
    base: Annotated[float, Real("base of the frequencies", 2.0, 100_000.0, log=True)] = 10_000.0,
) -> list[Answer]:
    """What a place says to all the others: its products with them, or its bias (Diehl sec. 3).

    Begin with sines and cosines and move the place: the curve moves along and keeps its shape, for only m − n counts.
    Rotary positions of equal contents give the same curve. Turn the keys the wrong way and the shape no longer follows
    the place. With few frequencies, or a small base, far places look like near ones.
    """
    name, code = list(SCHEMES.items())[scheme]
    products = code(2 * half, base)
    row = products[place].tolist()
    places = [float(n) for n in range(PLACES)]
    about = f"Place {place} with every place n; it is marked."
    curve = Curves(
        "Its products", {name: (places, row)}, x_label="place n", y_label="product", marked=float(place), about=about
    )
    return [curve, _picture(products, place), _numbers(products, place, half, base)]


def _picture(products: Tensor, place: int) -> Images:
    """All pairs of places as grey values, the row of the place framed by white."""
    low, high = products.min(), products.max()
    grey = (products - low) / (high - low).clamp(min=1e-9)
    if place > 0:
        grey[place - 1] = 1.0
    if place < PLACES - 1:
        grey[place + 1] = 1.0
    large = grey.repeat_interleave(2, 0).repeat_interleave(2, 1)
    about = "Rows are m, columns n; black is the least, white the largest. Bands along the diagonal: only m − n counts."
    return Images("All pairs", large[None, None], ["between white lines: the place"], about=about)


def _numbers(products: Tensor, place: int, half: int, base: float) -> Numbers:
    uneven = torch.stack([products.diagonal(-r).std() for r in range(1, PLACES // 2)]).max()
    others = products[place].clone()
    others[place] = -torch.inf
    turn = 2 * torch.pi / float(frequencies(2 * half, base=base)[-1])
    values: dict[str, float | str] = {
        "with itself": float(products[place, place]),
        "largest with another place": float(others.max()),
        "at place": float(others.argmax()),
        "spread among pairs of one distance": float(uneven),
        "places in which the slowest wave turns once": turn,
    }
    about = "The spread is 0 where only the distance counts; the largest over distances up to half the sequence."
    return Numbers("In numbers", values, about=about)
