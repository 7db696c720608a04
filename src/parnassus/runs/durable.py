"""Files that are the old one or the new one, whatever happens in between."""

import os
from pathlib import Path


def replace_durably(new: Path, path: Path) -> None:
    """Rename `new` to `path` so that neither a crash nor a power cut leaves half a file."""
    with new.open("rb") as file:
        os.fsync(file.fileno())
    new.chmod(path.parent.stat().st_mode & 0o666)  # safetensors writes for the owner alone: be as open as the folder
    new.replace(path)
