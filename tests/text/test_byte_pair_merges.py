"""Byte-pair merges compared with a published example and the tokenizers library."""

import random
from pydoc_data.topics import topics

import pytest

from parnassus.text.byte_pair_library import learn_merges_by_library
from parnassus.text.byte_pair_merges import BYTES, PIECES, learn_merges, merge_pair

PROSE = topics["assignment"][:6_000]


def test_concatenated_pieces_are_the_text() -> None:
    rng = random.Random(0)
    for _ in range(50):
        text = "".join(chr(rng.choice([*range(128), 0xE9, 0x20AC, 0x1F600])) for _ in range(80))
        assert "".join(PIECES.findall(text)) == text


def test_word_includes_its_leading_space() -> None:
    assert PIECES.findall("A  bé, 12\n\nx") == ["A", " ", " bé", ",", " 12", "\n", "\n", "x"]


def test_merges_match_the_example_of_the_paper() -> None:
    """The words low, lower, newest, widest of Sennrich et al. (2016): e+s, es+t, l+o."""
    text = "low " * 5 + "lower " * 2 + "newest " * 6 + "widest " * 3
    merges = learn_merges(text, 259)
    assert merges == [(b"e", b"s"), (b"es", b"t"), (b"l", b"o")]


def test_pairs_are_merged_from_left_to_right() -> None:
    assert merge_pair((b"a", b"a", b"a"), (b"a", b"a")) == (b"aa", b"a")


def test_all_bytes_have_ids_and_printable_bytes_come_first() -> None:
    assert len(set(BYTES)) == 256
    assert BYTES[:2] == (b"!", b'"')


def test_merges_of_prose_match_the_library() -> None:
    merges = learn_merges(PROSE, 400)
    assert len(merges) == 144
    assert merges == learn_merges_by_library(PROSE, 400)


@pytest.mark.parametrize("alphabet", ["ab", "ab c", "aé \n€", "0123 a.", "aaab  \n\t😀"])
def test_tie_breaking_matches_the_library(alphabet: str) -> None:
    rng = random.Random(0)
    for length in (1, 3, 30, 100, 300):
        text = "".join(rng.choices(alphabet, k=length))
        assert learn_merges(text, 330) == learn_merges_by_library(text, 330)
