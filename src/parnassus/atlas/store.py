"""The index on disk: what the files of the package declare, read once for each version of a file.

A wheel carries the index, written when it was built. In a checkout it lies in the user's cache folder; only files
that changed are read again, and one that cannot be read or written is made anew in memory.
"""

import json
import os
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeAlias

from parnassus.atlas.settings import PACKAGE

Plain: TypeAlias = Any  # what JSON holds: lists, dictionaries, text and numbers
Parse: TypeAlias = Callable[[Path], list[Plain]]
Sources: TypeAlias = Callable[[Plain], list[Path]]
"""The files that an item was read from, beside the one that declares it."""
SHIPPED = Path(__file__).with_name("index")
"""Where a wheel carries the index; a checkout has no such folder."""


def load(kind: str, files: Callable[[], Iterable[Path]], parse: Parse, sources: Sources = lambda _: []) -> list[Plain]:
    """What the `files` declare of one `kind`, in their order: from the wheel, from the cache, or by reading them."""
    shipped = _read(SHIPPED / f"{kind}.json")
    if isinstance(shipped, list):
        return shipped
    return _refresh(cache_folder() / f"{kind}.json", list(files()), parse, sources)


def cache_folder(package: Path = PACKAGE) -> Path:
    """The folder of this checkout's index in the user's cache."""
    if sys.platform == "darwin":
        home = Path.home() / "Library" / "Caches"
    elif os.name == "nt":
        home = Path(os.environ.get("LOCALAPPDATA", Path.home()))
    else:
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "parnassus" / f"index-{blake2b(str(package).encode(), digest_size=8).hexdigest()}"


def write_index(folder: Path, kinds: Iterable[tuple[str, Callable[[], Iterable[Path]], Parse]]) -> None:
    """The index that a wheel carries: one file for each kind."""
    folder.mkdir(parents=True, exist_ok=True)
    for kind, files, parse in kinds:
        found = [item for path in files() for item in parse(path)]
        (folder / f"{kind}.json").write_text(json.dumps(found, ensure_ascii=False), encoding="utf-8")


def _refresh(path: Path, files: list[Path], parse: Parse, sources: Sources) -> list[Plain]:
    cached = _read(path)
    version = _version()
    known = cached.get("files", {}) if isinstance(cached, dict) and cached.get("version") == version else {}
    current: dict[str, Plain] = {}
    for file in files:
        stored, items = known.get(str(file), ([], []))
        stamps = _stamps(file, items, sources)
        if stamps != stored:
            items = parse(file)
            stamps = _stamps(file, items, sources)
        current[str(file)] = [stamps, items]
    if current != known:
        _write(path, {"version": version, "files": current})
    return [item for _, items in current.values() for item in items]


def _version() -> list[Plain]:
    """What the stored form depends on: the code that makes it."""
    here = Path(__file__).parent
    return [_stamp(here / name) for name in ("store.py", "reading.py", "rooms.py", "settings.py", "catalogue.py")]


def _stamps(file: Path, items: list[Plain], sources: Sources) -> list[list[int]]:
    return [_stamp(path) for path in (file, *(path for item in items for path in sources(item)))]


def _stamp(path: Path) -> list[int]:
    if not path.exists():
        return []
    status = path.stat()
    return [status.st_mtime_ns, status.st_size]


def _read(path: Path) -> Plain:
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError):  # absent, damaged or half written
        return None


def _write(path: Path, content: Plain) -> None:
    """Replace the stored index as a whole; a folder that cannot be written to costs time, nothing else."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
        temporary.replace(path)
    except OSError:
        with suppress(OSError):
            temporary.unlink()
