"""The word tokeniser: ids by frequency, and unknown words."""

import pytest
import torch

from parnassus.text import WordTokeniser
from parnassus.text.word_tokeniser import join_words, split_words


def test_ids_are_sorted_by_frequency_and_ties_alphabetically() -> None:
    tokeniser = WordTokeniser.fit("b a b. c a d", special=("<pad>",))
    assert tokeniser.special == ("<pad>", "<unknown>")
    assert tokeniser.words == ("a", "b", ".", "c", "d")
    assert tokeniser.encode("d a ever").tolist() == [6, 2, 1]
    assert tokeniser.decode(torch.tensor([0, 6, 1, 2])) == "d <unknown> a"


def test_max_words_and_min_count_remove_rare_words() -> None:
    text = "a a a b b c"
    assert WordTokeniser.fit(text, max_words=1).words == ("a",)
    assert WordTokeniser.fit(text, min_count=2).words == ("a", "b")


@pytest.mark.parametrize("text", ["No, it's (almost) free.", "one two", "end!", "x_1 = y"])
def test_joining_inverts_splitting_for_simple_sentences(text: str) -> None:
    assert join_words(split_words(text)) == text


def test_text_equal_to_the_unknown_token_is_encoded_as_words() -> None:
    tokeniser = WordTokeniser.fit("<unknown> words")
    assert 0 not in tokeniser.encode("<unknown>").tolist()


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match="must contain <unknown>; got none"):
        WordTokeniser(("a",), ())
    with pytest.raises(ValueError, match="min_count and max_words must be at least 1; got min_count=0"):
        WordTokeniser.fit("a", min_count=0)
    with pytest.raises(ValueError, match="occur at least 1 times; got 0 rarer ones"):
        WordTokeniser.fit("  \n")
