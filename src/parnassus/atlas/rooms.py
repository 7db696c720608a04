"""Rooms: the packages of the subjects, each declared by its `room.toml`.

A new room is a folder of the package with `__init__.py`, `room.svg` and

    title = "Recurrent networks"
    line = "Encoders and language models of recurrent layers."
    order = 120
    layer = 4  # rooms import rooms of lower layers only

`tests/atlas/test_rooms.py` reports the lists in pyproject.toml and README.md that must include it.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path

from parnassus.atlas.settings import PACKAGE


@dataclass(frozen=True)
class Room:
    """A subject, as declared in its `room.toml`; `layer` is its layer in the import contract, 0 being the lowest."""

    name: str
    title: str
    line: str
    order: int
    layer: int


def room_files(package: Path = PACKAGE) -> list[Path]:
    return sorted(package.glob("*/room.toml"))


def read_room(path: Path) -> Room:
    """The room that a `room.toml` declares."""
    try:
        return Room(name=path.parent.name, **tomllib.loads(path.read_text(encoding="utf-8")))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path} must have title, line, order and layer: {error}") from None


def read_picture(room: str) -> str:
    """The picture of a room as SVG."""
    return (PACKAGE / room / "room.svg").read_text(encoding="utf-8")
