"""Probes of attention maps against the trained models."""

from collections.abc import Callable

import pytest
import torch

from parnassus.attention.core.attention_maps import attention_maps
from parnassus.attention.models.text_generator import TextGenerator
from parnassus.attention.probes.attention_maps import article_attention, attention_heads
from parnassus.train.trained import Trained
from parnassus.widgets import Bars, Images, Numbers


@pytest.fixture(scope="module")
def gpt(trained_run: Callable[..., Trained]) -> Trained:
    return trained_run("gpt")


@pytest.fixture(scope="module")
def finder(trained_run: Callable[..., Trained]) -> Trained:
    return trained_run("attention_translates_articles", steps=300)


def test_the_bars_are_a_row_of_the_attention_map(gpt: Trained) -> None:
    shown = attention_heads(gpt, "a return value", 2, 3, 4)
    pictures, bars, numbers, _ = shown
    assert isinstance(pictures, Images)
    assert isinstance(bars, Bars)
    assert isinstance(numbers, Numbers)
    assert isinstance(gpt.model, TextGenerator)
    weights = list(attention_maps(gpt.model, gpt.model.encode_prompt("a return value")[None]).values())[1][0]
    torch.testing.assert_close(bars.values, weights[2, 9, :10])
    assert float(bars.values.sum()) == pytest.approx(1.0, abs=1e-5)
    assert bars.names[0] == "1 a"
    assert bars.names[-1] == "10 v"
    assert pictures.images.shape == (4, 1, 56, 56)
    assert float(pictures.images.amax()) == 1.0


@pytest.mark.parametrize("prompt", ["", "x", "import " * 40])
def test_any_length_of_text_works(gpt: Trained, prompt: str) -> None:
    bars = attention_heads(gpt, prompt, back=47)[1]
    assert isinstance(bars, Bars)
    assert bars.values.isfinite().all()


def test_word_order_does_not_matter(finder: Trained) -> None:
    first = article_attention(finder, "the very old tree")
    other = article_attention(finder, "Tree old the very")
    assert isinstance(first[0], Bars)
    assert isinstance(first[1], Bars)
    assert isinstance(other[0], Bars)
    assert isinstance(other[1], Bars)
    torch.testing.assert_close(first[1].values, other[1].values)
    torch.testing.assert_close(first[0].values[3], other[0].values[0])


@pytest.mark.parametrize(("phrase", "left_out"), [("the zebra", 1), ("the " * 9, 1), ("we saw the key", 0)])
def test_unknown_and_excess_words_are_removed(finder: Trained, phrase: str, left_out: int) -> None:
    numbers = article_attention(finder, phrase)[-1]
    assert isinstance(numbers, Numbers)
    assert list(numbers.values.values())[-1] == left_out


def test_a_phrase_without_a_known_word_gives_a_message(finder: Trained) -> None:
    for phrase in ("", "zebra zebra"):
        (only,) = article_attention(finder, phrase)
        assert only.title.startswith("No word of the vocabulary")
