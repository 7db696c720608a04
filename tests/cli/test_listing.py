"""`list`, `show` and `atlas` tell what is in the files."""

import json
import re
from collections.abc import Callable

import pytest

from cli.conftest import Command
from parnassus.atlas.index import Atlas
from parnassus.cli.main import dispatch

ATLAS = Atlas()
Said = Callable[..., str]


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Said:
    def answer(*arguments: str) -> str:
        assert dispatch(list(arguments)) == 0
        printed = capsys.readouterr()
        assert printed.err == ""
        return " ".join(printed.out.split())

    return answer


def squeezed(text: str) -> str:
    return " ".join(text.split())


def test_list_names_every_experiment_once(parnassus: Command) -> None:
    done = parnassus("list")
    assert done.returncode == 0
    words = done.stdout.split()
    for name, entry in ATLAS.experiments.items():
        assert words.count(name) == 1
        assert entry.room in words
    assert max(len(line) for line in done.stdout.splitlines()) <= 80


def test_list_of_a_room_leaves_out_the_others(said: Said) -> None:
    shown = said("list", "latent")
    for name, entry in ATLAS.experiments.items():
        assert (f" {name} " in shown) is (entry.room == "latent")


def test_show_of_an_id_tells_all_about_it(said: Said) -> None:
    row = ATLAS.rows["B1.2-8"]
    shown = said("show", row.id)
    for part in (row.title, row.source, row.about, row.formula, row.kind, *row.symbols):
        assert squeezed(part) in shown
    marked = ATLAS.claims_of(row.id)
    assert marked
    for mark in marked:
        assert squeezed(mark.statement.splitlines()[0]) in shown
        assert squeezed(mark.printed) in shown
    assert f"parnassus check {row.id}" in shown
    for entry in ATLAS.experiments_of(row.id):
        assert f"parnassus run {entry.name}" in shown


def test_show_of_an_empty_row_says_so(said: Said) -> None:
    empty = next(row for row in ATLAS.rows.values() if not row.symbols)
    assert "implemented by nothing yet" in said("show", empty.id)


def test_show_of_a_part_lists_its_rows_and_no_others(said: Said) -> None:
    shown = said("show", "B1").split()
    assert {"B1.1-1", "B1.4-4"} <= set(shown)
    assert not [word for word in shown if re.match(r"B1\d", word)]


def test_show_of_a_room_lists_experiments_claims_and_errata(said: Said) -> None:
    shown = said("show", "layers")
    assert shown.startswith("layers: ")
    assert "mlp_on_xor" in shown
    for mark in ATLAS.marks_of("layers"):
        assert squeezed(mark.statement.splitlines()[0]) in shown
    assert "check them: parnassus check layers" in shown


@pytest.mark.parametrize("room", ATLAS.rooms)
def test_every_room_can_be_shown(room: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["show", room]) == 0
    assert room in capsys.readouterr().out


def test_show_of_an_experiment_tells_its_flags_and_how_to_run_it(said: Said) -> None:
    entry = ATLAS.experiment("pca_on_digits")
    shown = said("show", "pca_on")
    assert squeezed(entry.title) in shown
    for setting in entry.settings:
        assert f"--{setting.name.replace('_', '-')} " in shown
        assert squeezed(setting.help) in shown
    for name, band in entry.expected.items():
        assert f"{name.replace('_', ' ')} {band}" in shown
    assert "parnassus run pca_on_digits --profile laptop|smoke" in shown


@pytest.mark.parametrize("name", ["relu", "activations.relu", "parnassus.layers.activations.relu"])
def test_show_of_a_symbol_finds_its_row(name: str, said: Said) -> None:
    shown = said("show", name)
    assert "B1.2-9 " in shown
    assert "layers.activations.relu " in shown
    assert "leaky" not in shown


def test_the_atlas_counts_rows_by_chapter(said: Said) -> None:
    shown = said("atlas")
    for chapter in ATLAS.chapters():
        assert f" {chapter.name} {chapter.rows} " in shown
    built = sum(bool(row.symbols) for row in ATLAS.rows.values())
    assert f"{built} of {len(ATLAS.rows)} rows implemented" in shown


@pytest.mark.parametrize(
    "arguments", [("atlas",), ("atlas", "B1"), ("show", "layers"), ("show", "B1.2-8"), ("doctor",)]
)
def test_tables_fit_eighty_columns_and_break_no_words(arguments: tuple[str, ...], parnassus: Command) -> None:
    done = parnassus(*arguments)
    assert done.returncode == 0
    assert max(len(line) for line in done.stdout.splitlines() if "/" not in line) <= 80
    if arguments == ("atlas", "B1"):
        words = set(done.stdout.split())
        for row in (row for row in ATLAS.rows.values() if row.chapter == "B1"):
            assert set(row.title.split()) <= words, row.title


def test_the_atlas_as_json_has_every_row(capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["atlas", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert isinstance(rows, list)
    assert [row["id"] for row in rows] == list(ATLAS.rows)
    for row in rows:
        assert {"id", "title", "source", "symbols", "claims", "experiments"} <= set(row)
        assert all(isinstance(row[key], list) for key in ("symbols", "claims", "errata", "experiments"))
    named = {name for row in rows for key in ("claims", "errata") for name in row[key]}
    assert named == {f"{mark.module}.{mark.name}" for mark in ATLAS.marks}
    assert {name for row in rows for name in row["experiments"]} == set(ATLAS.experiments)


def test_a_part_of_the_atlas_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["atlas", "B1.2", "--json"]) == 0
    assert all(row["id"].startswith("B1.2-") for row in json.loads(capsys.readouterr().out))
