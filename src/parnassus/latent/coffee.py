"""Coffee drinks as codes over their ingredients: a representation that can be read (book sec. 4.1)."""

from collections.abc import Sequence

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
    """One coordinate an ingredient, 1 where the drink holds it (book sec. 4.1)."""
    if drink not in DRINKS:
        raise ValueError(f"drink must be one of {', '.join(DRINKS)}; got {drink!r}")
    return torch.tensor([float(ingredient in DRINKS[drink]) for ingredient in INGREDIENTS])


def ingredients(code: Float[Tensor, " 8"]) -> tuple[str, ...]:
    """The names behind the coordinates that are 1."""
    return tuple(name for name, amount in zip(INGREDIENTS, code.tolist(), strict=True) if amount == 1)


def decode(code: Float[Tensor, " 8"]) -> str:
    """The drink with exactly this code."""
    return _by_ingredients(ingredients(code))


def _by_ingredients(wanted: Sequence[str]) -> str:
    for drink, held in DRINKS.items():
        if set(held) == set(wanted):
            return drink
    raise ValueError(f"code must be that of {', '.join(DRINKS)}; got {', '.join(wanted) or 'nothing'}")
