"""Write the index of claims, experiments and rows into the wheel, so that an installed package reads no sources."""

import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class IndexHook(BuildHookInterface):  # type: ignore[type-arg]
    """Builds the index with the package's own reader; an editable install reads its sources instead."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        source = str(Path(self.root) / "src")
        sys.path.insert(0, source)
        try:
            from parnassus.atlas.index import INDEXED
            from parnassus.atlas.store import write_index
        finally:
            sys.path.remove(source)
        self.folder = tempfile.TemporaryDirectory()
        write_index(Path(self.folder.name), INDEXED)
        build_data["force_include"][self.folder.name] = "parnassus/atlas/index"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        if version != "editable":
            self.folder.cleanup()
