"""The tokeniser interface, saving and loading, streaming decoding, and the display of tokens."""

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol, TypeAlias, runtime_checkable

import torch
from jaxtyping import Int
from torch import Tensor

from parnassus.text.byte_pair_tokeniser import BytePairTokeniser
from parnassus.text.character_tokeniser import CharacterTokeniser
from parnassus.text.word_tokeniser import WordTokeniser


@runtime_checkable
class Tokeniser(Protocol):
    """Maps text to ids 0 … vocabulary − 1 and back. Special tokens have the first ids."""

    @property
    def special(self) -> tuple[str, ...]: ...

    @property
    def vocabulary(self) -> int: ...

    def encode(self, text: str) -> Int[Tensor, " time"]: ...

    def decode(self, tokens: Int[Tensor, " time"]) -> str: ...

    def to_dict(self) -> dict[str, object]:
        """JSON-compatible representation."""
        ...


AnyTokeniser: TypeAlias = CharacterTokeniser | WordTokeniser | BytePairTokeniser
KINDS: dict[str, type[CharacterTokeniser] | type[WordTokeniser] | type[BytePairTokeniser]] = {
    "characters": CharacterTokeniser,
    "words": WordTokeniser,
    "byte pairs": BytePairTokeniser,
}


def tokeniser_to_dict(tokeniser: Tokeniser) -> dict[str, object]:
    """JSON-compatible representation with the kind of the tokeniser; inverse of `tokeniser_from_dict`."""
    kind = next((kind for kind, known in KINDS.items() if type(tokeniser) is known), None)
    if kind is None:
        raise ValueError(f"the tokeniser must be one of {', '.join(KINDS)}; got {type(tokeniser).__name__}")
    return {"kind": kind, **tokeniser.to_dict()}


def tokeniser_from_dict(data: dict[str, object]) -> AnyTokeniser:
    """The tokeniser that `tokeniser_to_dict` represented."""
    kind = data.get("kind")
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}; got kind={kind!r}")
    return KINDS[str(kind)].from_dict(data)


def save_tokeniser(tokeniser: Tokeniser, path: Path) -> None:
    """Write the tokeniser to a JSON file."""
    path.write_text(json.dumps(tokeniser_to_dict(tokeniser), ensure_ascii=False), encoding="utf-8")


def load_tokeniser(path: Path) -> AnyTokeniser:
    """Read a tokeniser that `save_tokeniser` wrote."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not JSON: {error}") from error
    if not isinstance(data, dict):
        raise ValueError(f"{path} must contain a JSON object; got a {type(data).__name__}")
    return tokeniser_from_dict(data)


def show_whitespace(text: str) -> str:
    """The text with ␣ for each space and ⏎ for each newline; · if it is empty."""
    return text.replace("\n", "⏎").replace(" ", "␣") or "·"


def warn_unknown_words(tokeniser: Tokeniser, text: str) -> None:
    """Write to standard error which words of the text are unknown to a word tokeniser."""
    report_unknown_words(tokeniser.unknown_words(text) if isinstance(tokeniser, WordTokeniser) else [])


def report_unknown_words(words: Sequence[str]) -> None:
    """Write these words, if any, to standard error."""
    if words:
        sys.stderr.write(f"unknown words: {', '.join(words)}\n")


def stream_text(tokeniser: Tokeniser, tokens: Iterable[int], previous: int | None = None) -> Iterator[str]:
    """Decode tokens one by one; the joined pieces are the text of all tokens.

    A character of several bytes is withheld until it is complete. `previous` is the token before them, if any: it
    determines whether the text begins with a space.
    """
    tail = [] if previous is None else [previous]  # the last emitted token and those since
    emitted = len(tokeniser.decode(torch.tensor(tail, dtype=torch.int64)))  # characters of the tail already emitted
    for token in tokens:
        tail.append(token)
        text = tokeniser.decode(torch.tensor(tail, dtype=torch.int64))
        if len(text) > emitted and not text.endswith("�"):
            yield text[emitted:]
            tail = tail[-1:]
            emitted = len(tokeniser.decode(torch.tensor(tail, dtype=torch.int64)))
    rest = tokeniser.decode(torch.tensor(tail, dtype=torch.int64))[emitted:]
    if rest:
        yield rest
