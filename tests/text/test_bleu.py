"""BLEU against its formula."""

from math import exp

import pytest

from parnassus.text.bleu import bleu, bleu_signature

pytest.importorskip("sacrebleu")


def test_the_same_text_has_a_hundred() -> None:
    assert bleu(["the dog sees the cat ."], ["the dog sees the cat ."]) == pytest.approx(100)


def test_it_is_the_geometric_mean_of_four_shares() -> None:
    """Of 6, 5, 4 and 3 runs 5, 4, 3 and 2 are found: the last word is wrong."""
    product = (5 / 6) * (4 / 5) * (3 / 4) * (2 / 3)
    assert bleu(["a b c d e x"], ["a b c d e f"]) == pytest.approx(100 * product**0.25)


def test_short_translations_are_punished() -> None:
    assert bleu(["a b c d"], ["a b c d e"]) == pytest.approx(100 * exp(1 - 5 / 4))


def test_it_is_of_the_corpus_and_names_its_version() -> None:
    assert 0 < bleu(["a b c d", "x y z w"], ["a b c d", "p q r s"]) < 100
    assert "version" in bleu_signature()


def test_wrong_input_gets_a_sentence() -> None:
    with pytest.raises(ValueError, match="got 1 hypotheses and 2 references"):
        bleu(["a"], ["a", "b"])
