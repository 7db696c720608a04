"""Interactive plot of an activation function and its derivative (book sec. 1.2)."""

from typing import Annotated

import torch

from parnassus.atlas.decorators import probe
from parnassus.layers.activations import ACTIVATIONS
from parnassus.widgets import Answer, Curves, FloatSlider, IntSlider, Numbers, Select


@probe()
def plot_activation(
    activation: Annotated[int, Select("activation", tuple(ACTIVATIONS))] = 5,
    x: Annotated[float, FloatSlider("x", -6.0, 6.0)] = 1.0,
    layers: Annotated[int, IntSlider("number of layers", 1, 50)] = 10,
) -> list[Answer]:
    """An activation function, its derivative, and the decay of a gradient through several layers (book sec. 1.2).

    Increase |x| to see where a function saturates. In the backward pass a gradient is multiplied by one derivative per
    layer: the derivative of the sigmoid is at most ¼, so ten layers scale a gradient by less than 10⁻⁶.
    """
    name, (function, derivative) = list(ACTIVATIONS.items())[activation]
    grid, point = torch.linspace(-6, 6, 241), torch.tensor([x])
    value = float(derivative(point))
    lines = {label: (grid.tolist(), part(grid).tolist()) for label, part in (("σ(x)", function), ("σ′(x)", derivative))}
    values: dict[str, float | str] = {
        "σ(x)": float(function(point)),
        "σ′(x)": value,
        f"σ′(x) to the power of {layers}": value**layers,
    }
    return [
        Curves(f"{name} and its derivative", lines, x_label="x", y_label="", marked=x),
        Numbers("Values at x", values, about=f"Last value: the factor by which {layers} such layers scale a gradient."),
    ]
