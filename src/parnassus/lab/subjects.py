"""The subjects with their titles and summaries, in the order of the sources."""

from parnassus.atlas.index import load_atlas
from parnassus.atlas.rooms import Room


def subjects() -> dict[str, Room]:
    return load_atlas().subjects


def subject_of(room: str) -> Room | None:
    return subjects().get(room)
