"""`list`, `show` and `atlas` print the contents of the atlas."""

import importlib
import inspect
import json
import re
import subprocess
import sys
from collections.abc import Callable

import pytest

from cli.conftest import Command
from parnassus.atlas.index import Atlas
from parnassus.atlas.symbols import describe, exported_symbols
from parnassus.cli.main import dispatch

ATLAS = Atlas()
Run = Callable[..., str]


@pytest.fixture
def printed_output(capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*arguments: str) -> str:
        assert dispatch(list(arguments)) == 0
        printed = capsys.readouterr()
        assert printed.err == ""
        return " ".join(printed.out.split())

    return run


def normalise_spaces(text: str) -> str:
    return " ".join(text.split())


def test_list_names_every_experiment_once(parnassus: Command) -> None:
    completed = parnassus("list")
    assert completed.returncode == 0
    words = completed.stdout.split()
    for name, entry in ATLAS.experiments.items():
        assert words.count(name) == 1
        assert entry.room in words
    assert max(len(line) for line in completed.stdout.splitlines()) <= 80


def test_list_of_a_room_excludes_other_rooms(printed_output: Run) -> None:
    output = printed_output("list", "latent")
    for name, entry in ATLAS.experiments.items():
        assert (f" {name} " in output) is (entry.room == "latent")


def test_show_of_an_id_prints_all_fields(printed_output: Run) -> None:
    row = ATLAS.rows["B1.2-8"]
    output = printed_output("show", row.id)
    for part in (row.title, row.source, row.about, row.formula, row.kind, *row.symbols):
        assert normalise_spaces(part) in output
    marks = ATLAS.claims_of(row.id)
    assert marks
    for mark in marks:
        assert normalise_spaces(mark.statement.splitlines()[0]) in output
        assert normalise_spaces(mark.printed) in output
    assert f"parnassus check {row.id}" in output
    for entry in ATLAS.experiments_of(row.id):
        assert f"parnassus run {entry.name}" in output


def test_show_of_an_unimplemented_row(printed_output: Run) -> None:
    unimplemented = next(row for row in ATLAS.rows.values() if not row.symbols)
    reason = f"needs no implementation: {unimplemented.no_code}" if unimplemented.no_code else "not implemented yet"
    assert reason in printed_output("show", unimplemented.id)


def test_show_of_a_part_lists_its_rows_and_no_others(printed_output: Run) -> None:
    output = printed_output("show", "B1").split()
    assert {"B1.1-1", "B1.4-4"} <= set(output)
    assert not [word for word in output if re.match(r"B1\d", word)]


def test_show_of_a_room_lists_experiments_claims_and_errata(printed_output: Run) -> None:
    output = printed_output("show", "layers")
    assert output.startswith("layers: ")
    assert "mlp_on_xor" in output
    for mark in ATLAS.marks_of("layers"):
        assert normalise_spaces(mark.statement.splitlines()[0]) in output
    assert "check them: parnassus check layers" in output


@pytest.mark.parametrize("room", ATLAS.rooms)
def test_every_room_can_be_shown(room: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["show", room]) == 0
    assert room in capsys.readouterr().out


def test_show_of_an_experiment_prints_flags_and_command(printed_output: Run) -> None:
    entry = ATLAS.experiment("pca_on_digits")
    output = printed_output("show", "pca_on")
    assert normalise_spaces(entry.title) in output
    for setting in entry.settings:
        assert f"--{setting.name.replace('_', '-')} " in output
        assert normalise_spaces(setting.help) in output
    for name, band in entry.expected.items():
        assert f"{name.replace('_', ' ')} {band}" in output
    assert "parnassus run pca_on_digits --profile laptop|smoke" in output


@pytest.mark.parametrize("name", ["relu", "activations.relu", "parnassus.layers.activations.relu"])
def test_show_of_a_symbol_finds_its_row(name: str, printed_output: Run) -> None:
    output = printed_output("show", name)
    assert "B1.2-9 " in output
    assert "layers.activations.relu " in output
    assert "leaky" not in output


@pytest.mark.parametrize("name", ["PCA", "pca.PCA", "parnassus.latent.PCA", "parnassus.latent.linear.pca.PCA", "pca"])
def test_show_of_a_class_prints_how_to_use_it(name: str, printed_output: Run) -> None:
    output = printed_output("show", name)
    assert output.startswith("from parnassus.latent import PCA PCA(mean: ")
    for part in ("with the largest variance (book sec. 4.3)", ".fit(x: ", "num_components: int", "B4.3-4 "):
        assert part in output


def test_show_of_a_class_without_a_row(printed_output: Run) -> None:
    assert "from parnassus.train import Run Run(folder: RunFolder, options: Options)" in printed_output("show", "Run")


def test_show_of_a_name_in_several_packages_prints_all(printed_output: Run) -> None:
    output = printed_output("show", "cross_entropy")
    assert "from parnassus.losses import cross_entropy" in output
    assert "from parnassus.autodiff import cross_entropy" in output


def test_names_are_found_in_any_case(printed_output: Run) -> None:
    assert printed_output("show", "vae").startswith("vae in latent")  # the experiment, by its exact name
    assert printed_output("show", "Vae").startswith("from parnassus.latent import VAE")
    assert printed_output("show", "b4.3-4") == printed_output("show", "B4.3-4")
    assert ATLAS.experiment("Vae") is ATLAS.experiments["vae"]
    assert ATLAS.experiment("PCA_on") is ATLAS.experiments["pca_on_digits"]


def test_show_does_not_import_torch(parnassus: Command) -> None:
    program = (
        "import sys; from parnassus.cli.listing import show_anything as s; s('PCA'); print('torch' in sys.modules)"
    )
    completed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert completed.stdout.splitlines()[-1] == "False"


def test_every_exported_symbol_is_described() -> None:
    """The docstrings read from the files are those of the imported objects."""
    described = {symbol.dotted_names[0]: (symbol, describe(symbol)) for symbol in exported_symbols()}
    assert len(described) >= 1_000
    for symbol, found in described.values():
        if found is not None:
            defined = getattr(importlib.import_module(symbol.module), symbol.name)
            assert found.signature.startswith(symbol.name)
            assert not found.docstring or found.docstring == inspect.cleandoc(defined.__doc__), symbol


def test_atlas_counts_rows_by_chapter(printed_output: Run) -> None:
    output = printed_output("atlas")
    for chapter in ATLAS.chapters():
        assert f" {chapter.name} {chapter.rows} " in output
    implemented = sum(bool(row.symbols) for row in ATLAS.rows.values())
    assert f"{implemented} of {len(ATLAS.rows)} implemented, 4 need no implementation" in output


@pytest.mark.parametrize(
    "arguments", [("atlas",), ("atlas", "B1"), ("show", "layers"), ("show", "B1.2-8"), ("doctor",)]
)
def test_tables_fit_eighty_columns_without_breaking_words(arguments: tuple[str, ...], parnassus: Command) -> None:
    completed = parnassus(*arguments)
    assert completed.returncode == 0
    assert max(len(line) for line in completed.stdout.splitlines() if "/" not in line) <= 80
    if arguments == ("atlas", "B1"):
        words = set(completed.stdout.split())
        for row in (row for row in ATLAS.rows.values() if row.chapter == "B1"):
            assert set(row.title.split()) <= words, row.title


def test_atlas_as_json_has_every_row(capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["atlas", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert isinstance(rows, list)
    assert [row["id"] for row in rows] == list(ATLAS.rows)
    for row in rows:
        assert {"id", "title", "source", "symbols", "claims", "experiments"} <= set(row)
        assert all(isinstance(row[key], list) for key in ("symbols", "claims", "errata", "experiments"))
    names = {name for row in rows for key in ("claims", "errata") for name in row[key]}
    assert names == {f"{mark.module}.{mark.name}" for mark in ATLAS.marks}
    assert {name for row in rows for name in row["experiments"]} == set(ATLAS.experiments)


def test_atlas_as_json_of_a_part(capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["atlas", "B1.2", "--json"]) == 0
    assert all(row["id"].startswith("B1.2-") for row in json.loads(capsys.readouterr().out))


def test_show_of_a_data_set_prints_its_card_not_its_loader(printed_output: Run) -> None:
    for name in ("iris", "Fashion-MNIST"):
        output = printed_output("show", name)
        assert output.startswith(name.lower().replace("-", "_"))
        assert " licence " in output
