"""Sentences in two languages: generated, downloaded, or your own."""

from collections.abc import Callable, Mapping
from pathlib import Path

from parnassus.data.chorales_and_captions import Translations, multi30k
from parnassus.data.errors import DataError
from parnassus.data.phrases import german_phrases
from parnassus.data.texts import read_text

LEAST = 10  # fewest pairs that can be split into three parts
PAIRS: Mapping[str, Callable[[], Translations]] = {"phrases": german_phrases, "multi30k": multi30k}


def open_pairs(spec: str | Path) -> Translations:
    """`phrases` (made by a grammar), `multi30k` (captions), or your file: a source, a tab and a target on each line."""
    if str(spec) in PAIRS:
        return PAIRS[str(spec)]()
    path = Path(spec).expanduser()
    if not path.is_file():
        raise DataError(f"there is no set of pairs {spec}: give {', '.join(PAIRS)}, or a file with a tab on each line.")
    return pair_file(path)


def pair_file(path: Path | str) -> Translations:
    """A file of pairs, plain or gzipped: every tenth line is for testing, the line before it for validation.

    Empty lines are left out, and so are pairs that occurred before: what is tested was not learned.
    """
    path = Path(path)
    pairs: dict[tuple[str, str], None] = {}
    for number, line in enumerate(read_text(path).splitlines(), 1):
        if not line.strip():
            continue
        parts = [part.strip() for part in line.split("\t")]
        if len(parts) != 2 or not all(parts):
            raise DataError(f"{path}, line {number}: a source, a tab and a target are needed; got {line[:60]!r}.")
        pairs[parts[0], parts[1]] = None
    if len(pairs) < LEAST:
        raise DataError(f"{path} has {len(pairs)} different pairs; at least {LEAST} are needed.")
    rows = list(pairs)
    train = [pair for number, pair in enumerate(rows) if number % 10 < 8]
    return Translations("source", "target", train, rows[8::10], rows[9::10])
