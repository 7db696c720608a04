"""The index on disk: the declarations of all files of the package; a file is parsed again only after a change.

A wheel contains the index, written when the wheel is built. In a checkout, the index is stored in the user's cache
folder; if it cannot be read or written, it is rebuilt in memory. Every file begins with a digest of its content: a file
that is damaged or was not written by this module counts as missing.
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

Plain: TypeAlias = Any  # JSON values: lists, dictionaries, strings and numbers
Parse: TypeAlias = Callable[[Path], list[Plain]]
Sources: TypeAlias = Callable[[Plain], list[Path]]
"""The files that an item depends on, in addition to the one that declares it."""
SHIPPED = Path(__file__).with_name("index")
"""Folder of the index in a wheel; it does not exist in a checkout."""


def load(kind: str, files: Callable[[], Iterable[Path]], parse: Parse, sources: Sources = lambda _: []) -> list[Plain]:
    """The declarations of one `kind` in `files`, in order: from the wheel, from the cache, or parsed from the files."""
    shipped = _read(SHIPPED / f"{kind}.json")
    if shipped is not None:
        return list(shipped["items"])
    return _refresh(cache_folder() / f"{kind}.json", list(files()), parse, sources)


def cache_folder(package: Path = PACKAGE) -> Path:
    """The folder of the index of this checkout in the user's cache."""
    if sys.platform == "darwin":
        home = Path.home() / "Library" / "Caches"
    elif os.name == "nt":
        home = Path(os.environ.get("LOCALAPPDATA", Path.home()))
    else:
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "parnassus" / f"index-{blake2b(str(package).encode(), digest_size=8).hexdigest()}"


def write_index(folder: Path, kinds: Iterable[tuple[str, Callable[[], Iterable[Path]], Parse]]) -> None:
    """Write the index for a wheel: one file per kind."""
    folder.mkdir(parents=True, exist_ok=True)
    for kind, files, parse in kinds:
        found = [item for path in files() for item in parse(path)]
        (folder / f"{kind}.json").write_bytes(_encode({"items": found}))


def _refresh(path: Path, files: list[Path], parse: Parse, sources: Sources) -> list[Plain]:
    cached = _read(path)
    version = _version()
    known = cached["files"] if cached is not None and cached["version"] == version else {}
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
    """Modification times and sizes of the modules of this package, which determine the format of the index."""
    return [_stamp(path) for path in sorted(Path(__file__).parent.glob("*.py"))]


def _stamps(file: Path, items: list[Plain], sources: Sources) -> list[list[int]]:
    return [_stamp(path) for path in (file, *(path for item in items for path in sources(item)))]


def _stamp(path: Path) -> list[int]:
    if not path.exists():
        return []
    status = path.stat()
    return [status.st_mtime_ns, status.st_size]


def _encode(content: dict[str, Plain]) -> bytes:
    """A non-empty dictionary as JSON whose first entry is the digest of the bytes that follow it."""
    rest = json.dumps(content, ensure_ascii=False)[1:].encode()
    return _head(rest) + rest


def _head(rest: bytes) -> bytes:
    return f'{{"digest": "{blake2b(rest, digest_size=16).hexdigest()}", '.encode()


HEAD_LENGTH = len(_head(b""))


def _read(path: Path) -> dict[str, Plain] | None:
    """The content of a file written by `_encode`; None if the file is missing or anything else."""
    try:
        written = path.read_bytes()
    except OSError:
        return None
    head, rest = written[:HEAD_LENGTH], written[HEAD_LENGTH:]
    return json.loads(b"{" + rest) if head == _head(rest) else None


def _write(path: Path, content: dict[str, Plain]) -> None:
    """Replace the stored index atomically; a folder without write permission is ignored."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(_encode(content))
        temporary.replace(path)
    except OSError:
        with suppress(OSError):
            temporary.unlink()
