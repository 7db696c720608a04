"""Files of a run: opened without following links, and replaced atomically and durably.

A folder may come from someone else; a link in it must not make this process write to another file.
"""

import errno
import os
from pathlib import Path
from typing import IO, Literal

from parnassus.runs.errors import RunError


def open_file(path: Path, mode: Literal["ab", "r+b", "w+b"]) -> IO[bytes]:
    """`path.open(mode)`, but a RunError if `path` is a symbolic link."""
    try:
        return open(path, mode, opener=_open_without_links)
    except OSError as error:
        if error.errno == errno.ELOOP or path.is_symlink():
            raise RunError(f"files of a run are not written through links; remove the link {path}") from None
        raise


def temporary_file(path: Path) -> Path:
    """The path of a new file that is to replace `path`; a leftover or a link of that name is removed."""
    new = path.with_name(f".{path.name}.new")
    new.unlink(missing_ok=True)
    return new


def replace_durably(new: Path, path: Path) -> None:
    """Rename `new` to `path` so that neither a crash nor a power failure leaves a partial file."""
    with new.open("rb") as file:
        os.fsync(file.fileno())
    new.chmod(path.parent.stat().st_mode & 0o666)  # safetensors restricts access to the owner; use the folder's mode
    new.replace(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Write the names in `folder` to disk; Windows does so with the files."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _open_without_links(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)
