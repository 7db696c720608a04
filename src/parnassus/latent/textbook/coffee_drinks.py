"""Coffee drinks encoded by their ingredients: an interpretable representation (book sec. 4.1)."""

import torch
from jaxtyping import Float
from torch import Tensor

INGREDIENTS = (
    "espresso",
    "hot water",
    "steamed milk",
    "milk foam",
    "hot chocolate",
    "cream",
    "ice cream",
    "whiskey",
)

DRINKS = {
    "Americano": ("espresso", "hot water"),
    "Latte": ("espresso", "steamed milk", "milk foam"),
    "Mocha": ("espresso", "steamed milk", "milk foam", "hot chocolate"),
}


def encode(drink: str) -> Float[Tensor, " 8"]:
    """One coordinate per ingredient, 1 where the drink contains it (book sec. 4.1)."""
    if drink not in DRINKS:
        raise ValueError(f"drink must be one of {', '.join(DRINKS)}; got {drink!r}")
    return torch.tensor([float(ingredient in DRINKS[drink]) for ingredient in INGREDIENTS])


def ingredients(code: Float[Tensor, " 8"]) -> tuple[str, ...]:
    """The names of the coordinates that are 1."""
    return tuple(name for name, amount in zip(INGREDIENTS, code.tolist(), strict=True) if amount == 1)


def decode(code: Float[Tensor, " 8"]) -> str:
    """The drink with exactly this code."""
    names = ingredients(code)
    for drink, contents in DRINKS.items():
        if set(contents) == set(names):
            return drink
    raise ValueError(f"code must be that of {', '.join(DRINKS)}; got ingredients: {', '.join(names) or 'none'}")
