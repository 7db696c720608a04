"""Byte pairs by the `tokenizers` library: the merges of merges.py, learned in a hundredth of the time."""

import json
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from parnassus.text.merges import BYTES, PATTERN, Pair

if TYPE_CHECKING:
    from tokenizers import Tokenizer

PRINTED = dict(zip(BYTES, sorted(map(chr, [*(code[0] for code in BYTES[:188]), *range(256, 256 + 68)])), strict=True))
"""The character that stands for each byte in the library's files: itself where one can see it, else one past 255."""
READ = {character: byte for byte, character in PRINTED.items()}


def learn_merges_by_library(text: str, size: int) -> list[Pair]:
    """Which pairs to merge, in order, until there are `size` tokens; ties are broken as in `learn_merges`."""
    _demand_library()
    from tokenizers import pre_tokenizers, trainers

    tokenizer = _tokenizer({}, [])
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=size, min_frequency=2, show_progress=False, initial_alphabet=alphabet)
    tokenizer.train_from_iterator([text], trainer)
    merges = json.loads(tokenizer.to_str())["model"]["merges"]
    return [(_read(left), _read(right)) for left, right in merges]


def library_tokenizer(tokens: Sequence[bytes], merges: Sequence[Pair], special: Sequence[str]) -> "Tokenizer":
    """A tokeniser of the library with these tokens, after the special ones, and these merges: for very large texts."""
    _demand_library()
    names = [*special, *map(_printed, tokens)]
    return _tokenizer(
        {name: place for place, name in enumerate(names)}, [(_printed(left), _printed(right)) for left, right in merges]
    )


def _tokenizer(vocabulary: dict[str, int], merges: list[tuple[str, str]]) -> "Tokenizer":
    """One that cuts a text as we do."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

    tokenizer = Tokenizer(models.BPE(vocabulary, merges))
    cut = pre_tokenizers.Split(Regex(PATTERN), behavior="isolated")
    as_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([cut, as_bytes])
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _printed(token: bytes) -> str:
    return "".join(PRINTED[token[place : place + 1]] for place in range(len(token)))


def _read(name: str) -> bytes:
    return b"".join(READ[character] for character in name)


def _demand_library() -> None:
    try:
        import_module("tokenizers")
    except ImportError:
        raise ImportError(
            "learning byte pairs fast needs the tokenizers library: pip install 'parnassus[text]', "
            "or give learn=learn_merges, which is slow"
        ) from None
