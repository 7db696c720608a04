"""Bach's chorales as pitches, and image captions in two languages."""

import json
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import torch
from jaxtyping import Int
from torch import Tensor

from parnassus.data.downloads.sources import JSB_CHORALES, MULTI30K
from parnassus.data.downloads.texts import read_text
from parnassus.data.downloads.transfer import obtain
from parnassus.data.errors import DataError
from parnassus.data.files.idx import read_gzipped
from parnassus.short_repr import short_repr

LANGUAGES = ("de", "en", "fr")
CAPTIONS = {"train": ("train", 29_000), "valid": ("val", 1_014), "test": ("test_2016_flickr", 1_000)}


@dataclass(frozen=True, eq=False)
class Chorales:
    """Pieces as MIDI pitches of soprano, alto, tenor and bass at every sixteenth note; −1 is silence.

    >>> piece = torch.full((16, 4), 60)
    >>> Chorales(train=[piece], valid=[], test=[]).train[0].shape
    torch.Size([16, 4])
    """

    train: list[Int[Tensor, "_ 4"]]
    valid: list[Int[Tensor, "_ 4"]]
    test: list[Int[Tensor, "_ 4"]]

    __repr__ = short_repr


@dataclass(frozen=True)
class Translations:
    """Pairs (source sentence, target sentence).

    >>> pairs = Translations("de", "en", train=[("der Hund", "the dog")], valid=[], test=[])
    >>> pairs.train[0]
    ('der Hund', 'the dog')
    """

    source: str
    target: str
    train: list[tuple[str, str]]
    valid: list[tuple[str, str]]
    test: list[tuple[str, str]]

    __repr__ = short_repr


def jsb_chorales() -> Chorales:
    """J. S. Bach's four-part chorales, 229 training, 76 validation, 77 test pieces (Boulanger-Lewandowski 2012)."""
    return read_chorales(obtain(JSB_CHORALES, verify=_verify_chorales))


def read_chorales(path: Path) -> Chorales:
    """A JSON file of three lists of pieces, each a list of chords of four pitches."""
    try:
        content = json.loads(read_gzipped(path))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is not JSON: {error}.") from error
    if not isinstance(content, dict) or not {"train", "valid", "test"} <= content.keys():
        raise DataError(f"{path} must contain the lists train, valid and test.")
    return Chorales(*([_piece(piece, path) for piece in content[part]] for part in ("train", "valid", "test")))


def multi30k(pair: tuple[str, str] = ("de", "en")) -> Translations:
    """30,000 captions of photographs in two of German, English and French (Elliott et al. 2016); test = Flickr 2016."""
    source, target = pair
    if source not in LANGUAGES or target not in LANGUAGES or source == target:
        raise ValueError(f"pair must be two of {', '.join(LANGUAGES)}; got pair={pair}")
    lines = {(part, language): _captions(part, language) for part, language in product(CAPTIONS, pair)}
    parts = [list(zip(lines[part, source], lines[part, target], strict=True)) for part in CAPTIONS]
    return Translations(source, target, *parts)


def _verify_chorales(path: Path) -> None:
    chorales = read_chorales(path)
    counts = len(chorales.train), len(chorales.valid), len(chorales.test)
    if counts != (229, 76, 77):
        raise DataError(f"it has {counts} chorales for training, validation and testing, not (229, 76, 77)")


def _piece(chords: object, path: Path) -> Int[Tensor, "time 4"]:
    try:
        piece = torch.tensor(chords, dtype=torch.int64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{path} contains a piece that is not a list of chords of four pitches.") from error
    if piece.ndim != 2 or piece.shape[1] != 4 or not len(piece):
        raise DataError(f"{path} contains a piece of shape {[*piece.shape]}; chords have four pitches.")
    if int(piece.min()) < -1 or int(piece.max()) > 127:
        raise DataError(f"{path} contains pitches from {int(piece.min())} to {int(piece.max())}; MIDI has 0 to 127.")
    return piece


def _captions(part: str, language: str) -> list[str]:
    stem, count = CAPTIONS[part]
    source = MULTI30K[f"{stem}.{language}.gz"]
    return _lines(obtain(source, verify=lambda path: _lines(path, count)), count)


def _lines(path: Path, count: int) -> list[str]:
    lines = read_text(path).removesuffix("\n").split("\n")
    if len(lines) != count:
        raise DataError(f"{path} has {len(lines):,} lines instead of {count:,}.")
    return lines
