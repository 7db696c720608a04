"""Uploads: a person's own tables and arrays, kept beside the runs under a name that we choose."""

import hashlib
from pathlib import Path

from parnassus.runs import RunError

KINDS = {".csv": b"", ".tsv": b"", ".npy": b"\x93NUMPY", ".npz": b"PK"}
"""Endings that are taken, and how such a file begins."""
LARGEST = 32 * 2**20


class Uploads:
    """Files by their content: the same file twice is one, and no name from outside reaches the disk."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._names: dict[str, Path] = {}

    def add(self, name: str, content: bytes) -> str:
        """Keep a file; returns the name it has from now on in lists of data."""
        ending = Path(name.replace("\\", "/")).suffix.lower()
        if ending not in KINDS:
            raise RunError(f"data must be a file that ends in {', '.join(KINDS)}")
        if len(content) > LARGEST:
            raise RunError(f"data must be at most {LARGEST // 2**20} MiB; this has {len(content) / 2**20:.0f}")
        if not content.startswith(KINDS[ending]) or (not KINDS[ending] and not _is_text(content)):
            raise RunError(f"this is no {ending} file: its content is of another kind")
        digest = hashlib.sha256(content).hexdigest()[:12]
        shown = f"yours: {_harmless(name)} ({digest[:4]})"
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / f"{digest}{ending}"
        if not path.exists():
            new = path.with_name(f".{path.name}.new")
            new.write_bytes(content)
            new.replace(path)
        self._names[shown] = path
        return shown

    @property
    def names(self) -> list[str]:
        return list(self._names)

    def path(self, name: str) -> Path | None:
        """The file that a name in a list stands for."""
        return self._names.get(name)


def _is_text(content: bytes) -> bool:
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return b"\0" not in content


def _harmless(name: str) -> str:
    kept = "".join(letter for letter in name.replace("\\", "/").split("/")[-1] if letter.isalnum() or letter in "._- ")
    return kept[:40] or "file"
