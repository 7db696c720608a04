"""The vocabulary: ids, special tokens and validation."""

import pytest
import torch

from parnassus.text.vocabulary import Vocabulary, check_ids, describe_characters, special_id


def test_special_tokens_come_first_and_have_no_text() -> None:
    vocabulary = Vocabulary(("<pad>", "<end>"), ("a", "b"))
    assert len(vocabulary) == 4
    assert vocabulary.ids == {"a": 2, "b": 3}
    assert vocabulary.token_strings(torch.tensor([2, 1, 3, 0])) == ["a", "b"]
    assert special_id(vocabulary.special, "<end>") == 1


def test_describe_characters_lists_distinct_characters_and_truncates() -> None:
    assert describe_characters("éé→") == "'é' (U+00E9), '→' (U+2192)"
    assert describe_characters("αβγδεζη").endswith("'ε' (U+03B5) and 2 more")


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match="special tokens must be distinct; got <end>, <end>"):
        Vocabulary(("<end>", "<end>"), ())
    with pytest.raises(ValueError, match="tokens must be distinct; got 'a' twice"):
        Vocabulary((), ("a", "b", "a"))
    with pytest.raises(ValueError, match="tokens must lie between 0 and 2; got -1 to 3"):
        check_ids(torch.tensor([0, 3, -1]), 3)
    with pytest.raises(ValueError, match="must be one of none; got <end>"):
        special_id((), "<end>")
