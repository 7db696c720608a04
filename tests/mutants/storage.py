"""JSON files in the ignored folder `.mutants`, written completely or not at all."""

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".mutants"


def load(path: Path) -> dict[str, Any]:
    """The content of the file, nothing if it does not exist."""
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


def store(path: Path, values: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(values, ensure_ascii=False, indent=0), encoding="utf-8")
    temporary.replace(path)
