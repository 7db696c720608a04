"""Opinions: different, as many cheerful as gloomy, and what they mean follows from their words."""

import re

import pytest

from parnassus.data.synthetic_opinions import BAD, GOOD, opinions


def meaning(text: str) -> str:
    """Read by the rules of the grammar: the last clause decides, `not` turns it round."""
    words = re.split(" but | and | while ", text)[-1].split()
    praises = words[-1] in GOOD
    assert praises or words[-1] in BAD
    return "cheerful" if praises != ("not" in words) else "gloomy"


def test_what_they_mean_follows_from_their_words() -> None:
    found = opinions(500)
    assert len({text for text, _ in found}) == 500
    assert all(mood == meaning(text) for text, mood in found)
    cheerful = sum(mood == "cheerful" for _, mood in found)
    assert 200 < cheerful < 300
    words = {word for text, _ in found for word in text.split()}
    assert {"not", "but", "and", "while", *GOOD, *BAD} <= words


def test_seeds_differ_and_repeat() -> None:
    assert opinions(20, seed=1) == opinions(20, seed=1)
    assert opinions(20, seed=1) != opinions(20, seed=2)
    with pytest.raises(ValueError, match="number=-1"):
        opinions(-1)
