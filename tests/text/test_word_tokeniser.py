"""Words: numbered from frequent to rare, the others unknown."""

import pytest
import torch

from parnassus.text import WordTokeniser
from parnassus.text.word_tokeniser import join_words, split_words


def test_words_are_numbered_from_frequent_to_rare_and_ties_by_the_alphabet() -> None:
    tokeniser = WordTokeniser.fit("b a b. c a d", special=("<pad>",))
    assert tokeniser.special == ("<pad>", "<unknown>")
    assert tokeniser.words == ("a", "b", ".", "c", "d")
    assert tokeniser.encode("d a ever").tolist() == [6, 2, 1]
    assert tokeniser.decode(torch.tensor([0, 6, 1, 2])) == "d <unknown> a"


def test_most_and_least_cut_the_rare_ones() -> None:
    text = "a a a b b c"
    assert WordTokeniser.fit(text, max_words=1).words == ("a",)
    assert WordTokeniser.fit(text, min_count=2).words == ("a", "b")


@pytest.mark.parametrize("text", ["No, it's (almost) free.", "one two", "end!", "x_1 = y"])
def test_plain_sentences_come_back_as_they_were(text: str) -> None:
    assert join_words(split_words(text)) == text


def test_a_word_that_reads_like_the_unknown_one_is_only_text() -> None:
    tokeniser = WordTokeniser.fit("<unknown> words")
    assert 0 not in tokeniser.encode("<unknown>").tolist()


def test_what_cannot_work_gets_a_sentence() -> None:
    with pytest.raises(ValueError, match="must contain <unknown>; got none"):
        WordTokeniser(("a",), ())
    with pytest.raises(ValueError, match="min_count and max_words must be at least 1; got min_count=0"):
        WordTokeniser.fit("a", min_count=0)
    with pytest.raises(ValueError, match="occur at least 1 times; got 0 rarer ones"):
        WordTokeniser.fit("  \n")
