"""BLEU compared with its formula."""

from math import exp

import pytest

from parnassus.text.bleu import bleu, bleu_signature

pytest.importorskip("sacrebleu")


def test_identical_texts_have_a_score_of_100() -> None:
    assert bleu(["the dog sees the cat ."], ["the dog sees the cat ."]) == pytest.approx(100)


def test_score_is_the_geometric_mean_of_four_precisions() -> None:
    """All n-grams match except those with the last word: 5/6, 4/5, 3/4 and 2/3 for n = 1 to 4."""
    product = (5 / 6) * (4 / 5) * (3 / 4) * (2 / 3)
    assert bleu(["a b c d e x"], ["a b c d e f"]) == pytest.approx(100 * product**0.25)


def test_short_translations_have_a_brevity_penalty() -> None:
    assert bleu(["a b c d"], ["a b c d e"]) == pytest.approx(100 * exp(1 - 5 / 4))


def test_corpus_score_and_signature() -> None:
    assert 0 < bleu(["a b c d", "x y z w"], ["a b c d", "p q r s"]) < 100
    assert "version" in bleu_signature()


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match="got 1 hypotheses and 2 references"):
        bleu(["a"], ["a", "b"])
