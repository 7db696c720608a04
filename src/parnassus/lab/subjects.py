"""The subjects in order, each with its title, its summary and its image."""

from functools import cache

from parnassus.atlas.index import Atlas
from parnassus.atlas.rooms import Room


@cache
def subjects() -> dict[str, Room]:
    return Atlas().subjects


def subject_of(room: str) -> Room | None:
    return subjects().get(room)
