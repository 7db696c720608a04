"""Attention-map probes compared with the trained models."""

from collections.abc import Callable

import pytest
import torch

from parnassus.attention.core.attention_maps import attention_maps
from parnassus.attention.models.text_generator import TextGenerator
from parnassus.attention.probes.attention_maps import article_attention, attention_heads
from parnassus.train.trained import TrainedRun
from parnassus.widgets import Bars, Images, Numbers


@pytest.fixture(scope="module")
def gpt(trained_run: Callable[..., TrainedRun]) -> TrainedRun:
    return trained_run("gpt")


@pytest.fixture(scope="module")
def article_classifier(trained_run: Callable[..., TrainedRun]) -> TrainedRun:
    return trained_run("attention_translates_articles", steps=300)


def test_bars_are_a_row_of_the_attention_map(gpt: TrainedRun) -> None:
    answers = attention_heads(gpt, "a return value", 2, 3, 4)
    images, bars, numbers, _ = answers
    assert isinstance(images, Images)
    assert isinstance(bars, Bars)
    assert isinstance(numbers, Numbers)
    assert isinstance(gpt.model, TextGenerator)
    weights = list(attention_maps(gpt.model, gpt.model.encode_prompt("a return value")[None]).values())[1][0]
    torch.testing.assert_close(bars.values, weights[2, 9, :10])
    assert float(bars.values.sum()) == pytest.approx(1.0, abs=1e-5)
    assert bars.names[0] == "1 a"
    assert bars.names[-1] == "10 v"
    assert images.images.shape == (4, 1, 56, 56)
    assert float(images.images.amax()) == 1.0


@pytest.mark.parametrize("prompt", ["", "x", "import " * 40])
def test_prompts_of_any_length_are_accepted(gpt: TrainedRun, prompt: str) -> None:
    bars = attention_heads(gpt, prompt, offset=47)[1]
    assert isinstance(bars, Bars)
    assert bars.values.isfinite().all()


def test_prediction_does_not_depend_on_word_order(article_classifier: TrainedRun) -> None:
    first = article_attention(article_classifier, "the very old tree")
    permuted = article_attention(article_classifier, "Tree old the very")
    assert isinstance(first[0], Bars)
    assert isinstance(first[1], Bars)
    assert isinstance(permuted[0], Bars)
    assert isinstance(permuted[1], Bars)
    torch.testing.assert_close(first[1].values, permuted[1].values)
    torch.testing.assert_close(first[0].values[3], permuted[0].values[0])


@pytest.mark.parametrize(("phrase", "num_removed"), [("the zebra", 1), ("the " * 9, 1), ("we saw the key", 0)])
def test_unknown_and_excess_words_are_removed(article_classifier: TrainedRun, phrase: str, num_removed: int) -> None:
    numbers = article_attention(article_classifier, phrase)[-1]
    assert isinstance(numbers, Numbers)
    assert list(numbers.values.values())[-1] == num_removed


def test_phrase_without_known_words_returns_a_message(article_classifier: TrainedRun) -> None:
    for phrase in ("", "zebra zebra"):
        (answer,) = article_attention(article_classifier, phrase)
        assert answer.title.startswith("No word of the vocabulary")
