"""BLEU against its formula."""

from math import exp

import pytest

from parnassus.text.bleu import bleu, bleu_signature

pytest.importorskip("sacrebleu")


def test_identical_texts_have_a_score_of_100() -> None:
    assert bleu(["the dog sees the cat ."], ["the dog sees the cat ."]) == pytest.approx(100)


def test_the_score_is_the_geometric_mean_of_four_precisions() -> None:
    """The last word is wrong: 5 of 6 unigrams match, 4 of 5 bigrams, 3 of 4 trigrams and 2 of 3 4-grams."""
    product = (5 / 6) * (4 / 5) * (3 / 4) * (2 / 3)
    assert bleu(["a b c d e x"], ["a b c d e f"]) == pytest.approx(100 * product**0.25)


def test_short_translations_have_a_brevity_penalty() -> None:
    assert bleu(["a b c d"], ["a b c d e"]) == pytest.approx(100 * exp(1 - 5 / 4))


def test_the_score_is_that_of_the_corpus_and_the_signature_has_a_version() -> None:
    assert 0 < bleu(["a b c d", "x y z w"], ["a b c d", "p q r s"]) < 100
    assert "version" in bleu_signature()


def test_invalid_arguments_raise() -> None:
    with pytest.raises(ValueError, match="got 1 hypotheses and 2 references"):
        bleu(["a"], ["a", "b"])
