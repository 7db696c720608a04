"""Rooms are declared in room.toml; all other lists of rooms agree."""

import importlib
import re
import tomllib
from pathlib import Path

from parnassus.atlas.index import Atlas
from parnassus.atlas.reading import command_files, experiment_files, probe_files, read_commands, read_probes
from parnassus.atlas.settings import PACKAGE
from parnassus.cli.verbs import VERBS

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
SUBJECTS = Atlas().subjects
EXISTING = {name: room for name, room in SUBJECTS.items() if (PACKAGE / name / "__init__.py").exists()}
SPINE = {"atlas", "cli", "data", "lab", "report", "runs", "train", "widgets"}


def test_every_package_is_a_room_or_part_of_the_spine() -> None:
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert packages == set(EXISTING) | SPINE | {"estimators"}


def test_titles_lines_and_orders_are_unique() -> None:
    for values in zip(*((room.title, room.line, room.order) for room in SUBJECTS.values()), strict=True):
        assert len(set(values)) == len(values)
    assert all(room.line.endswith(".") and len(room.line) <= 110 for room in SUBJECTS.values())


def test_import_contracts_match_the_rooms() -> None:
    """On failure, copy the expected lists to pyproject.toml."""
    contracts = {contract["name"]: contract for contract in PROJECT["tool"]["importlinter"]["contracts"]}
    names = sorted(f"parnassus.{name}" for name in EXISTING)
    layers: dict[int, list[str]] = {}
    for name, room in sorted(EXISTING.items()):
        layers.setdefault(room.layer, []).append(f"parnassus.{name}")
    expected = [" | ".join(layers[layer]) for layer in sorted(layers, reverse=True)]
    assert contracts["rooms import rooms of lower layers only"]["layers"] == expected
    assert contracts["methods import neither the spine nor a user interface"]["source_modules"] == names
    forbidden = contracts["the spine imports no room"]["forbidden_modules"]
    assert forbidden == [*names, "parnassus.cli", "parnassus.lab"]
    above = contracts["the estimators are above all other packages"]["source_modules"]
    assert above == [*names, *(f"parnassus.{name}" for name in sorted(SPINE))]
    assert contracts["the command line and the lab import no room"]["forbidden_modules"] == names


def test_shapes_are_checked_in_every_room() -> None:
    """Not in the estimators: scikit-learn requires their constructors to accept any value."""
    options = PROJECT["tool"]["pytest"]["ini_options"]["addopts"]
    (packages,) = re.findall(r"--jaxtyping-packages=(\S+),beartype", options)
    assert set(packages.split(",")) == {
        *(f"parnassus.{name}" for name in EXISTING),
        "parnassus.data",
        "parnassus.widgets",
    }


def test_readme_lists_all_rooms() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| \[`(\w+)`\]", readme, re.MULTILINE)
    assert listed == list(EXISTING)


def test_verbs_of_rooms_are_unique_and_not_built_in() -> None:
    commands = [command for path in command_files() for command in read_commands(path)]
    verbs = [command.verb for command in commands]
    assert len(set(verbs)) == len(verbs), verbs
    assert not set(verbs) & set(VERBS), verbs
    for command in commands:
        assert callable(getattr(importlib.import_module(command.module), command.verb)), command


def test_probes_and_experiments_of_all_rooms_have_unique_names() -> None:
    for names in (
        [probe.name for path in probe_files() for probe in read_probes(path)],
        [path.stem for path in experiment_files()],
    ):
        assert len(set(names)) == len(names), sorted({name for name in names if names.count(name) > 1})
