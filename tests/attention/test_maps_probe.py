"""What the probes show is what the trained models do with the words that are typed."""

from collections.abc import Callable

import pytest
import torch

from parnassus.attention.maps import attention_maps
from parnassus.attention.probes.maps import find_the_noun, see_where_heads_look
from parnassus.attention.writer import Writer
from parnassus.touch import Bars, Images, Numbers
from parnassus.train.trained import Trained


@pytest.fixture(scope="module")
def gpt(trained_run: Callable[..., Trained]) -> Trained:
    return trained_run("gpt")


@pytest.fixture(scope="module")
def finder(trained_run: Callable[..., Trained]) -> Trained:
    return trained_run("article_of_the_noun", steps=300)


def test_the_bars_are_a_row_of_the_map_of_a_layer(gpt: Trained) -> None:
    shown = see_where_heads_look(gpt, "a return value", 2, 3, 4)
    pictures, bars, numbers, _ = shown
    assert isinstance(pictures, Images)
    assert isinstance(bars, Bars)
    assert isinstance(numbers, Numbers)
    assert isinstance(gpt.model, Writer)
    weights = list(attention_maps(gpt.model, gpt.model.tokens("a return value")[None]).values())[1][0]
    torch.testing.assert_close(bars.values, weights[2, 9, :10])
    assert float(bars.values.sum()) == pytest.approx(1.0, abs=1e-5)
    assert bars.names[0] == "1 a"
    assert bars.names[-1] == "10 v"
    assert pictures.images.shape == (4, 1, 56, 56)
    assert float(pictures.images.amax()) == 1.0


@pytest.mark.parametrize("prompt", ["", "x", "import " * 40])
def test_any_length_of_text_can_be_looked_at(gpt: Trained, prompt: str) -> None:
    bars = see_where_heads_look(gpt, prompt, back=47)[1]
    assert isinstance(bars, Bars)
    assert bars.values.isfinite().all()


def test_the_order_of_words_does_not_matter_to_the_finder(finder: Trained) -> None:
    first = find_the_noun(finder, "the very old tree")
    other = find_the_noun(finder, "Tree old the very")
    assert isinstance(first[0], Bars)
    assert isinstance(first[1], Bars)
    assert isinstance(other[0], Bars)
    assert isinstance(other[1], Bars)
    torch.testing.assert_close(first[1].values, other[1].values)
    torch.testing.assert_close(first[0].values[3], other[0].values[0])


@pytest.mark.parametrize(("phrase", "left_out"), [("the zebra", 1), ("the " * 9, 1), ("we saw the key", 0)])
def test_words_that_it_cannot_use_are_left_out(finder: Trained, phrase: str, left_out: int) -> None:
    numbers = find_the_noun(finder, phrase)[-1]
    assert isinstance(numbers, Numbers)
    assert list(numbers.values.values())[-1] == left_out


def test_a_phrase_without_a_known_word_is_told_so(finder: Trained) -> None:
    for phrase in ("", "zebra zebra"):
        (only,) = find_the_noun(finder, phrase)
        assert only.title.startswith("No word that it knows")
