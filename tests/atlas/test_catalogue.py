"""The rows: all load, ids are unique, texts are short, and rooms exist."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from parnassus.atlas.catalogue import (
    KINDS,
    ROWS,
    SOURCES,
    AtlasRow,
    RowError,
    describe_coverage,
    is_part_of,
    read_rows,
    row_files,
    sort_rows,
)
from parnassus.atlas.index import Atlas, resolve

SPINE = {"data", "train", "report"}  # packages of the spine that rows belong to
FILES = sorted(ROWS.glob("*.toml"))
ALL_ROWS = sort_rows(row for path in row_files() for row in read_rows(path))
WORD = r"(?:eqs?|thm|lem|alg|def|figs?|ex|secs?|ch)\. "
NUMBER = r"\d[\w.]*(?:-\d[\w.]*)?"
SOURCE = re.compile(rf"(?:book|Diehl|Zhao) {WORD}{NUMBER}(?:, (?:{WORD})?{NUMBER})*")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_row_files_have_all_keys(path: Path) -> None:
    entries = tomllib.loads(path.read_text(encoding="utf-8"))["row"]
    assert entries
    keys = {"id", "title", "source", "kind", "subject", "about", "formula", "symbols", "note", "no_code"}
    for entry in entries:
        assert {"id", "title", "source", "kind", "subject", "about"} <= set(entry) <= keys, entry["id"]


def test_row_ids_are_unique() -> None:
    ids = [entry["id"] for path in FILES for entry in tomllib.loads(path.read_text(encoding="utf-8"))["row"]]
    assert len(ids) == len(set(ids)), sorted({each for each in ids if ids.count(each) > 1})
    assert len(ids) == len(ALL_ROWS)
    assert 780 <= len(ids) <= 880


def test_all_chapters_have_rows() -> None:
    chapters = {row.chapter for row in ALL_ROWS}
    assert chapters == {
        *(f"B{chapter}" for chapter in range(1, 19)),
        *(f"D{chapter}" for chapter in range(7)),
        *(f"Z{chapter}" for chapter in range(1, 14)),
        "BF",  # the chapter after the numbered ones
        "C",
    }


def test_rows_have_known_kinds_subjects_and_sources() -> None:
    for row in ALL_ROWS:
        assert row.kind in KINDS, row.id
        assert row.subject in SPINE | set(Atlas().subjects), f"{row.id} is in {row.subject!r}"
        assert SOURCE.fullmatch(row.source), f"{row.id} has source {row.source!r}"
        assert row.source.split()[0] == SOURCES[row.id[0]], row.id


def test_rows_are_short() -> None:
    for row in ALL_ROWS:
        assert 0 < len(row.title) <= 80, row.id
        assert not row.title.endswith("."), row.id
        assert 0 < len(row.about) <= 260, f"{row.id}: {len(row.about)}"
        assert len(row.note) <= 400, row.id


def test_rows_are_in_the_order_of_the_sources() -> None:
    order = [row.id for row in ALL_ROWS]
    for earlier_id, later_id in [
        ("B1.2-9", "B1.2-10"),
        ("B9.1-1", "B10.1-1"),
        ("B3.3-2", "B3.3.1-1"),  # a section's own items before its subsections'
        ("B18.1-1", "D1.1.1"),
        ("C-01", "Z1"),
    ]:
        first, second = (
            next(index for index, each in enumerate(order) if is_part_of(name, each)) for name in (earlier_id, later_id)
        )
        assert first < second, (earlier_id, later_id)


def test_rows_without_code_give_a_reason_and_have_no_symbols() -> None:
    without_code = {row.id: row for row in ALL_ROWS if row.no_code}
    assert set(without_code) == {"B11.1-6", "C-23", "Z1.1", "Z13.16"}
    assert not any(row.symbols for row in without_code.values())


def test_coverage_counts_rows_that_need_no_implementation_apart() -> None:
    def rows(implemented: int, without_code: int, others: int) -> list[AtlasRow]:
        kinds: list[dict[str, Any]] = [{"symbols": ("a.b",)}, {"no_code": "a heading"}, {}]
        counts = (implemented, without_code, others)
        chosen = [kind for kind, count in zip(kinds, counts, strict=True) for _ in range(count)]
        return [AtlasRow("B1", "", "", "", "", "", **kind) for kind in chosen]

    assert describe_coverage(rows(2, 0, 1)) == "2 of 3 implemented"
    assert describe_coverage(rows(2, 1, 1)) == "2 of 4 implemented, 1 needs no implementation"
    assert describe_coverage(rows(0, 2, 0)) == "0 of 2 implemented, 2 need no implementation"


def test_every_symbol_resolves() -> None:
    unresolved = []
    for symbol in sorted({symbol for row in ALL_ROWS for symbol in row.symbols}):
        try:
            resolve(symbol)
        except (AttributeError, ModuleNotFoundError):
            unresolved.append(symbol)
    assert unresolved == []


@pytest.mark.parametrize(
    ("part", "row_id", "expected"),
    [
        ("B1", "B1.2-8", True),
        ("B1", "B1", True),
        ("B1", "B13.2-1", False),
        ("B13", "B13.2-1", True),
        ("B13.2", "B13.2.5-3", True),
        ("B13.2", "B13.2-5", True),
        ("B13.2", "B13.25-1", False),
        ("B13.2-1", "B13.2-12", False),
        ("B13.2-1", "B13.2", False),
        ("D1.1.1", "D1.1.10", False),
        ("C", "C-01", True),
        ("", "B1", False),
        ("B", "B1.2-8", False),
    ],
)
def test_part_of_follows_the_hierarchy_of_ids(part: str, row_id: str, expected: bool) -> None:
    assert is_part_of(part, row_id) is expected


def test_chapter_is_the_first_number() -> None:
    assert [AtlasRow(each, "", "", "", "", "").chapter for each in ("B13.2.5-3", "D4.2", "Z11", "C-07")] == [
        "B13",
        "D4",
        "Z11",
        "C",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('id = "B1-1"\ntitle = "x"', r"bad\.toml, B1-1: .*missing"),
        ('id = "B1-1"\ncolour = "red"', r"bad\.toml, B1-1: .*colour"),
        ('title = "x"', r"bad\.toml, a row without id"),
        (
            'id = "B1-1"\ntitle = "x"\nsource = ""\nkind = "poem"\nsubject = ""\nabout = ""',
            "kind must be one of .*'poem'",
        ),
        ('id = "Q1"\ntitle = "x"\nsource = ""\nkind = "data"\nsubject = ""\nabout = ""', "starts with one of .*'Q1'"),
    ],
)
def test_invalid_rows_raise_with_their_id(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text(f"[[row]]\n{text}\n")
    with pytest.raises(RowError, match=message):
        read_rows(tmp_path / "bad.toml")
