"""Sentence pairs from a file."""

import gzip
from pathlib import Path

import pytest

from parnassus.data import DataError
from parnassus.data.sentence_pairs import open_pairs, pair_file


def test_pairs_of_a_file_are_split_into_three_parts(tmp_path: Path) -> None:
    path = tmp_path / "mine.tsv"
    path.write_text("\n".join(f"s{i}\tt{i}" for i in range(20)) + "\n\ns1\tt1\n", encoding="utf-8")
    pairs = open_pairs(path)
    assert (len(pairs.train), len(pairs.valid), len(pairs.test)) == (16, 2, 2)
    assert pairs.test == [("s9", "t9"), ("s19", "t19")]
    assert {*pairs.train, *pairs.valid, *pairs.test} == {(f"s{i}", f"t{i}") for i in range(20)}
    compressed = tmp_path / "mine.tsv.gz"
    compressed.write_bytes(gzip.compress(path.read_bytes()))
    assert pair_file(compressed).train == pairs.train


def test_grammar_is_opened_by_name() -> None:
    assert open_pairs("phrases").source == "de"


def test_invalid_files_raise(tmp_path: Path) -> None:
    path = tmp_path / "mine.tsv"
    with pytest.raises(DataError, match="unknown sentence pairs nowhere"):
        open_pairs("nowhere")
    path.write_text("a\tb\nno tab here\n", encoding="utf-8")
    with pytest.raises(DataError, match="line 2: a source, a tab and a target are required; got 'no tab here'"):
        open_pairs(path)
    path.write_text("a\tb\n", encoding="utf-8")
    with pytest.raises(DataError, match="has 1 different pairs; at least 10 are required"):
        open_pairs(path)
    path.write_text("", encoding="utf-8")
    with pytest.raises(DataError, match="is empty"):
        open_pairs(path)
