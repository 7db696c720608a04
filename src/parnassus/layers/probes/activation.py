"""An activation, its slope, and what a stack of such units lets through (book sec. 1.2)."""

from typing import Annotated

import torch

from parnassus.atlas.marks import probe
from parnassus.layers.experiments.activations_compared import SHOWN
from parnassus.touch import Answer, Curves, Numbers, Pick, Real, Whole


@probe()
def look_at_an_activation(
    activation: Annotated[int, Pick("activation", tuple(SHOWN))] = 5,
    place: Annotated[float, Real("where, x", -6.0, 6.0)] = 1.0,
    layers: Annotated[int, Whole("layers on top of each other", 1, 50)] = 10,
) -> list[Answer]:
    """A nonlinearity, its slope, and what is left of a gradient after many of them (book sec. 1.2).

    Move x outwards and see where each function goes flat. A gradient on its way back is multiplied by one slope a
    layer: with the sigmoid, whose slope is ¼ at best, ten layers leave less than a millionth of it.
    """
    name, (function, slope) = list(SHOWN.items())[activation]
    x, here = torch.linspace(-6, 6, 241), torch.tensor([place])
    steepness = float(slope(here))
    lines = {label: (x.tolist(), part(x).tolist()) for label, part in (("σ(x)", function), ("σ′(x)", slope))}
    numbers: dict[str, float | str] = {
        "σ(x)": float(function(here)),
        "σ′(x)": steepness,
        f"σ′(x) to the power of {layers}": steepness**layers,
    }
    return [
        Curves(f"{name} and its slope", lines, x_label="x", y_label="", marked=place),
        Numbers(
            "At x", numbers, about=f"The last is the share of a gradient that passes {layers} such units in a row."
        ),
    ]
