"""JSON objects, which may have a checksum as their last member: a damaged file is not mistaken for another result."""

import json
from collections.abc import Mapping
from pathlib import Path
from zlib import crc32

from parnassus.runs.errors import RunError

CHECKSUM = "crc32"


def format_json(value: Mapping[str, object], *, has_checksum: bool) -> str:
    """The object as text, with the checksum of its content if requested."""
    return _dump({**value, CHECKSUM: _checksum(value)} if has_checksum else value) + "\n"


def parse_json(content: bytes, path: Path) -> dict[str, object]:
    """The object without its checksum, which must match if there is one; `path` appears in error messages."""
    try:
        value = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:  # invalid JSON or UTF-8, too many digits or nested brackets
        raise RunError(f"{path} is damaged: {error}") from None
    if not isinstance(value, dict):
        raise RunError(f"{path} is damaged: expected a JSON object, got {type(value).__name__}")
    written = value.pop(CHECKSUM, None)
    if written is not None and written != _checksum(value):
        raise RunError(
            f"{path} is damaged: its content does not match its checksum; if you edited it, remove its last member, "
            f"{CHECKSUM!r}"
        )
    return value


def _dump(value: Mapping[str, object]) -> str:
    """The value as JSON in UTF-8; text that has no UTF-8, such as the names of some files, is escaped."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, indent=2)
    return text


def _checksum(value: Mapping[str, object]) -> int:
    return crc32(json.dumps(value).encode())
