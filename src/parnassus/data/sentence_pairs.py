"""Sentence pairs in two languages: generated, downloaded, or from a file."""

from collections.abc import Callable, Mapping
from pathlib import Path

from parnassus.data.built_in.phrases import german_phrases
from parnassus.data.downloads.chorales_and_captions import Translations, multi30k
from parnassus.data.downloads.texts import read_text
from parnassus.data.errors import DataError

MIN_PAIRS = 10  # minimum number of pairs for a split into three parts
PAIRS: Mapping[str, Callable[[], Translations]] = {"phrases": german_phrases, "multi30k": multi30k}


def open_pairs(spec: str | Path) -> Translations:
    """`phrases` (generated), `multi30k` (captions), or a file with a source, a tab and a target per line."""
    if str(spec) in PAIRS:
        return PAIRS[str(spec)]()
    path = Path(spec).expanduser()
    if not path.is_file():
        raise DataError(f"unknown sentence pairs {spec}: give {', '.join(PAIRS)}, or a file with a tab in each line.")
    return pair_file(path)


def pair_file(path: Path | str) -> Translations:
    """A file of pairs, plain or gzipped: every tenth pair is for testing, the pair before it for validation.

    Empty lines and duplicate pairs are skipped, so that no test pair occurs in the training data.
    """
    path = Path(path)
    pairs: dict[tuple[str, str], None] = {}
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if not line.strip():
            continue
        parts = [part.strip() for part in line.split("\t")]
        if len(parts) != 2 or not all(parts):
            raise DataError(f"{path}, line {number}: a source, a tab and a target are required; got {line[:60]!r}.")
        pairs[parts[0], parts[1]] = None
    if len(pairs) < MIN_PAIRS:
        raise DataError(f"{path} has {len(pairs)} different pairs; at least {MIN_PAIRS} are required.")
    rows = list(pairs)
    train = [pair for number, pair in enumerate(rows) if number % 10 < 8]
    return Translations("source", "target", train, rows[8::10], rows[9::10])
