"""Byte-pair encoding with the tokenizers library."""

import sys

import pytest

from parnassus.text.byte_pair_library import BYTE_TO_CHARACTER, learn_merges_by_library, library_tokenizer
from parnassus.text.byte_pair_merges import BYTES


def test_byte_characters_match_the_library() -> None:
    from tokenizers import pre_tokenizers

    assert set(BYTE_TO_CHARACTER.values()) == set(pre_tokenizers.ByteLevel.alphabet())
    assert BYTE_TO_CHARACTER[b"a"] == "a"
    assert BYTE_TO_CHARACTER[b" "] == "Ġ"
    assert BYTE_TO_CHARACTER[b"\n"] == "Ċ"


def test_tokenizer_without_merges_encodes_bytes() -> None:
    tokenizer = library_tokenizer(BYTES, [], ["<end>"])
    ids = tokenizer.encode("é!").ids
    assert [BYTES[token_id - 1] for token_id in ids] == [b"\xc3", b"\xa9", b"!"]
    assert tokenizer.decode(ids) == "é!"


def test_missing_library_raises_import_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(ImportError, match=r"pip install 'parnassus\[text\]', or pass learn=learn_merges"):
        learn_merges_by_library("text text", 300)
