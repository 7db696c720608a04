"""The character tokeniser: ids, lossless encoding and invalid arguments."""

import random

import pytest
import torch

from parnassus.text import CharacterTokeniser


def test_ids_follow_the_sorted_alphabet_after_the_special_tokens() -> None:
    tokeniser = CharacterTokeniser.fit("banana", special=("<pad>",))
    assert tokeniser.alphabet == "abn"
    assert tokeniser.vocabulary == 4
    assert tokeniser.encode("nab").tolist() == [3, 1, 2]
    assert tokeniser.decode(torch.tensor([3, 0, 1, 2])) == "nab"


def test_decoding_inverts_encoding() -> None:
    rng = random.Random(0)
    alphabet = "aB \n\té€😀\u0301"
    tokeniser = CharacterTokeniser.fit(alphabet)
    for length in (0, 1, 7, 200):
        text = "".join(rng.choices(alphabet, k=length))
        assert tokeniser.decode(tokeniser.encode(text)) == text


def test_text_equal_to_a_special_token_is_encoded_as_characters() -> None:
    tokeniser = CharacterTokeniser.fit("<end>", special=("<end>",))
    assert 0 not in tokeniser.encode("<end>").tolist()


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match=r"the 2 characters of the alphabet; got 'c' \(U\+0063\), 'é' \(U\+00E9\)"):
        CharacterTokeniser("ab").encode("abcéc")
    with pytest.raises(ValueError, match="text must not be empty"):
        CharacterTokeniser.fit("")
    with pytest.raises(ValueError, match="at least one character"):
        CharacterTokeniser("")
    with pytest.raises(ValueError, match="got 'a' twice"):
        CharacterTokeniser("aba")
    with pytest.raises(ValueError, match="tokens must lie between 0 and 1; got 2 to 2"):
        CharacterTokeniser("ab").decode(torch.tensor([2]))
