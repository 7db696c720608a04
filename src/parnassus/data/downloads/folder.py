"""The data directory: downloads, and files that the user placed there."""

import os
from pathlib import Path

VARIABLE = "PARNASSUS_DATA"


def data_folder() -> Path:
    """The folder $PARNASSUS_DATA; by default, the cache folder of parnassus on this platform."""
    folder = os.environ.get(VARIABLE)
    if folder:
        return Path(folder).expanduser()
    import pooch

    return Path(pooch.os_cache("parnassus"))


def find_file(*places: str) -> Path | None:
    """The first of `places` that is a file in the data directory, with or without the suffix .gz."""
    for place in places:
        for path in (data_folder() / place, data_folder() / f"{place}.gz"):
            if path.is_file():
                return path
    return None
