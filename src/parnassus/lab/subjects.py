"""The subjects in order, each with its title, its summary and its image."""

from functools import cache

from parnassus.atlas.index import Atlas
from parnassus.atlas.rooms import Room
from parnassus.atlas.settings import PACKAGE


@cache
def subjects() -> dict[str, Room]:
    return Atlas().subjects


def subject_of(room: str) -> Room | None:
    return subjects().get(room)


@cache
def subject_image(room: str) -> str:
    """The image of a subject as SVG."""
    return (PACKAGE / room / "room.svg").read_text(encoding="utf-8")
