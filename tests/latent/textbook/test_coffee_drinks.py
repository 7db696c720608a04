"""Codes of coffee drinks."""

import pytest
import torch

from parnassus.latent.textbook import coffee_drinks


def test_encode_decode_and_ingredients() -> None:
    assert coffee_drinks.decode(coffee_drinks.encode("Latte") + torch.eye(8)[4]) == "Mocha"
    assert coffee_drinks.ingredients(coffee_drinks.encode("Americano")) == ("espresso", "hot water")


def test_unknown_drinks_and_codes_raise() -> None:
    with pytest.raises(ValueError, match=r"one of Americano, Latte, Mocha; got 'Tea'"):
        coffee_drinks.encode("Tea")
    with pytest.raises(ValueError, match=r"got ingredients: none"):
        coffee_drinks.decode(torch.zeros(8))
