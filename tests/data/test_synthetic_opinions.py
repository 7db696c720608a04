"""Opinions: distinct, balanced, and with labels that follow from their words."""

import re

import pytest

from parnassus.data.synthetic_opinions import BAD, GOOD, opinions


def label_of(text: str) -> str:
    """The label by the rules of the grammar: that of the last clause, reversed by `not`."""
    words = re.split(" but | and | while ", text)[-1].split()
    is_positive = words[-1] in GOOD
    assert is_positive or words[-1] in BAD
    return "cheerful" if is_positive != ("not" in words) else "gloomy"


def test_labels_follow_from_the_words() -> None:
    samples = opinions(500)
    assert len({text for text, _ in samples}) == 500
    assert all(mood == label_of(text) for text, mood in samples)
    cheerful = sum(mood == "cheerful" for _, mood in samples)
    assert 200 < cheerful < 300
    words = {word for text, _ in samples for word in text.split()}
    assert {"not", "but", "and", "while", *GOOD, *BAD} <= words


def test_texts_are_reproducible() -> None:
    assert opinions(20, seed=1) == opinions(20, seed=1)
    assert opinions(20, seed=1) != opinions(20, seed=2)
    with pytest.raises(ValueError, match="number=-1"):
        opinions(-1)
