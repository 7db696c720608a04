"""Rooms are declared in room.toml; all other lists of rooms agree."""

import re
import tomllib
from pathlib import Path

from parnassus.atlas.index import Atlas
from parnassus.atlas.settings import PACKAGE

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
SUBJECTS = Atlas().subjects
EXISTING = {name: room for name, room in SUBJECTS.items() if (PACKAGE / name / "__init__.py").exists()}
SPINE = {"atlas", "cli", "data", "lab", "report", "runs", "train", "widgets"}


def test_every_package_is_a_room_or_part_of_the_spine() -> None:
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert packages == set(EXISTING) | SPINE


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
    assert contracts["methods are usable without our loop"]["source_modules"] == names
    forbidden = contracts["the spine knows no method"]["forbidden_modules"]
    assert forbidden == [*names, "parnassus.cli", "parnassus.lab"]
    assert contracts["the command line and the lab import no room"]["forbidden_modules"] == names


def test_shapes_are_checked_in_every_room() -> None:
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
