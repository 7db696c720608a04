"""Uploaded tables and arrays, stored in the folder of the runs under names derived from their content."""

import hashlib
from pathlib import Path

from parnassus.runs import RunError

FILE_TYPES = {".csv": b"", ".tsv": b"", ".npy": b"\x93NUMPY", ".npz": b"PK"}
"""Accepted file extensions, with the first bytes of such files."""
MAX_BYTES = 32 * 2**20


class Uploads:
    """Files stored by their content: equal files are stored once, and uploaded names are never used as paths."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._names: dict[str, Path] = {}

    def add(self, name: str, content: bytes) -> str:
        """Store a file; returns its name in lists of data sets."""
        extension = Path(name.replace("\\", "/")).suffix.lower()
        if extension not in FILE_TYPES:
            raise RunError(f"data must be a file with the extension {', '.join(FILE_TYPES)}")
        if len(content) > MAX_BYTES:
            raise RunError(f"data must be at most {MAX_BYTES // 2**20} MiB; got {len(content) / 2**20:.0f}")
        if not content.startswith(FILE_TYPES[extension]) or (not FILE_TYPES[extension] and not _is_text(content)):
            raise RunError(f"data must be a {extension} file; its content has another format")
        digest = hashlib.sha256(content).hexdigest()[:12]
        displayed = f"upload: {_safe_name(name)} ({digest[:4]})"
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / f"{digest}{extension}"
        if not path.exists():
            new = path.with_name(f".{path.name}.new")
            new.write_bytes(content)
            new.replace(path)
        self._names[displayed] = path
        return displayed

    @property
    def names(self) -> list[str]:
        return list(self._names)

    def path(self, name: str) -> Path | None:
        """The file for a name in the list; None for other names."""
        return self._names.get(name)


def _is_text(content: bytes) -> bool:
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return b"\0" not in content


def _safe_name(name: str) -> str:
    kept = "".join(letter for letter in name.replace("\\", "/").split("/")[-1] if letter.isalnum() or letter in "._- ")
    return kept[:40] or "file"
