"""The bridge to the tokenizers library: bytes as its characters, and a sentence where it is missing."""

import sys

import pytest

from parnassus.text.byte_pair_library import BYTE_TO_CHARACTER, learn_merges_by_library, library_tokenizer
from parnassus.text.byte_pair_merges import BYTES


def test_every_byte_has_the_character_of_the_library() -> None:
    from tokenizers import pre_tokenizers

    assert set(BYTE_TO_CHARACTER.values()) == set(pre_tokenizers.ByteLevel.alphabet())
    assert BYTE_TO_CHARACTER[b"a"] == "a"
    assert BYTE_TO_CHARACTER[b" "] == "Ġ"
    assert BYTE_TO_CHARACTER[b"\n"] == "Ċ"


def test_a_tokenizer_without_merges_spells_bytes() -> None:
    tokenizer = library_tokenizer(BYTES, [], ["<end>"])
    ids = tokenizer.encode("é!").ids
    assert [BYTES[each - 1] for each in ids] == [b"\xc3", b"\xa9", b"!"]
    assert tokenizer.decode(ids) == "é!"


def test_without_the_library_there_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(ImportError, match=r"pip install 'parnassus\[text\]', or pass learn=learn_merges"):
        learn_merges_by_library("text text", 300)
