"""What a tokeniser must do, whatever its tokens are; how it is kept in a file, and how tokens are read as they come."""

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol, TypeAlias, runtime_checkable

import torch
from jaxtyping import Int
from torch import Tensor

from parnassus.text.byte_pairs import BytePairTokeniser
from parnassus.text.characters import CharacterTokeniser
from parnassus.text.words import WordTokeniser


@runtime_checkable
class Tokeniser(Protocol):
    """From text to ids 0 … vocabulary − 1 and back. Special tokens have the first ids: `special[0]` has id 0."""

    @property
    def special(self) -> tuple[str, ...]: ...

    @property
    def vocabulary(self) -> int: ...

    def encode(self, text: str) -> Int[Tensor, " time"]: ...

    def decode(self, tokens: Int[Tensor, " time"]) -> str: ...

    def facts(self) -> dict[str, object]:
        """All there is to know of it, as JSON has it."""
        ...


Known: TypeAlias = CharacterTokeniser | WordTokeniser | BytePairTokeniser
KINDS: dict[str, type[CharacterTokeniser] | type[WordTokeniser] | type[BytePairTokeniser]] = {
    "characters": CharacterTokeniser,
    "words": WordTokeniser,
    "byte pairs": BytePairTokeniser,
}


def tokeniser_facts(tokeniser: Tokeniser) -> dict[str, object]:
    """Its facts and its kind: what `tokeniser_from_facts` needs to build it again."""
    kind = next((kind for kind, known in KINDS.items() if type(tokeniser) is known), None)
    if kind is None:
        raise ValueError(f"a tokeniser to be kept must be one of {', '.join(KINDS)}; got {type(tokeniser).__name__}")
    return {"kind": kind, **tokeniser.facts()}


def tokeniser_from_facts(facts: dict[str, object]) -> Known:
    """The tokeniser of these facts."""
    kind = facts.get("kind")
    if kind not in KINDS:
        raise ValueError(f"the kind of a tokeniser must be one of {', '.join(KINDS)}; got kind={kind!r}")
    return KINDS[str(kind)].from_facts(facts)


def save_tokeniser(tokeniser: Tokeniser, path: Path) -> None:
    """A JSON file, which holds no code."""
    path.write_text(json.dumps(tokeniser_facts(tokeniser), ensure_ascii=False), encoding="utf-8")


def load_tokeniser(path: Path) -> Known:
    """What `save_tokeniser` wrote."""
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not JSON: {error}") from error
    if not isinstance(facts, dict):
        raise ValueError(f"{path} must hold the facts of a tokeniser; got a {type(facts).__name__}")
    return tokeniser_from_facts(facts)


def tell_unknown(tokeniser: Tokeniser, text: str) -> None:
    """Say on standard error which words of a text a tokeniser of words has no number for."""
    unknown = tokeniser.unknown(text) if isinstance(tokeniser, WordTokeniser) else []
    if unknown:
        sys.stderr.write(f"words it has never seen: {', '.join(unknown)}\n")


def as_it_comes(tokeniser: Tokeniser, tokens: Iterable[int], after: int | None = None) -> Iterator[str]:
    """The text of tokens that come one by one; joined, it is the text of all of them.

    A character of several bytes is held back until it is whole. Where a token stands before them, `after` it there may
    be a space to begin with.
    """
    tail = [] if after is None else [after]  # the last token that was told, and those since
    told = len(tokeniser.decode(torch.tensor(tail, dtype=torch.int64)))  # characters of the tail that are out already
    for token in tokens:
        tail.append(token)
        text = tokeniser.decode(torch.tensor(tail, dtype=torch.int64))
        if len(text) > told and not text.endswith("�"):
            yield text[told:]
            tail = tail[-1:]
            told = len(tokeniser.decode(torch.tensor(tail, dtype=torch.int64)))
    rest = tokeniser.decode(torch.tensor(tail, dtype=torch.int64))[told:]
    if rest:
        yield rest
