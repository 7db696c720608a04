"""Learning of byte-pair merges against examples and the tokenizers library."""

import random
from pydoc_data.topics import topics

import pytest

from parnassus.text.byte_pair_library import learn_merges_by_library
from parnassus.text.byte_pair_merges import BYTES, PIECES, learn_merges, merge_pair

PROSE = topics["assignment"][:6_000]


def test_the_concatenated_pieces_are_the_text() -> None:
    source = random.Random(0)
    for _ in range(50):
        text = "".join(chr(source.choice([*range(128), 0xE9, 0x20AC, 0x1F600])) for _ in range(80))
        assert "".join(PIECES.findall(text)) == text


def test_a_word_includes_its_leading_space() -> None:
    assert PIECES.findall("A  bé, 12\n\nx") == ["A", " ", " bé", ",", " 12", "\n", "\n", "x"]


def test_the_merges_of_the_example_in_the_paper() -> None:
    """Low, lower, newest, widest (Sennrich et al. 2016): first e+s, then es+t, then l+o."""
    text = "low " * 5 + "lower " * 2 + "newest " * 6 + "widest " * 3
    merges = learn_merges(text, 259)
    assert merges == [(b"e", b"s"), (b"es", b"t"), (b"l", b"o")]


def test_pairs_are_merged_from_left_to_right() -> None:
    assert merge_pair((b"a", b"a", b"a"), (b"a", b"a")) == (b"aa", b"a")


def test_every_byte_has_an_id_and_printable_ones_come_first() -> None:
    assert len(set(BYTES)) == 256
    assert BYTES[:2] == (b"!", b'"')


def test_the_library_learns_the_same_merges_from_prose() -> None:
    merges = learn_merges(PROSE, 400)
    assert len(merges) == 144
    assert merges == learn_merges_by_library(PROSE, 400)


@pytest.mark.parametrize("alphabet", ["ab", "ab c", "aé \n€", "0123 a.", "aaab  \n\t😀"])
def test_the_library_breaks_ties_in_the_same_way(alphabet: str) -> None:
    source = random.Random(0)
    for length in (1, 3, 30, 100, 300):
        text = "".join(source.choices(alphabet, k=length))
        assert learn_merges(text, 330) == learn_merges_by_library(text, 330)
