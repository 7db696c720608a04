"""Atomic and durable replacement of files."""

import os
from pathlib import Path


def replace_durably(new: Path, path: Path) -> None:
    """Rename `new` to `path` so that neither a crash nor a power failure leaves a partial file."""
    with new.open("rb") as file:
        os.fsync(file.fileno())
    new.chmod(path.parent.stat().st_mode & 0o666)  # safetensors restricts access to the owner; use the folder's mode
    new.replace(path)
