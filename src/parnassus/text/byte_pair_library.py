"""Byte-pair merges learned by the `tokenizers` library: those of `learn_merges`, about a hundred times faster."""

import json
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from parnassus.text.byte_pair_merges import BYTES, PATTERN, Pair

if TYPE_CHECKING:
    from tokenizers import Tokenizer

BYTE_TO_CHARACTER = dict(
    zip(BYTES, sorted(map(chr, [*(code[0] for code in BYTES[:188]), *range(256, 256 + 68)])), strict=True)
)
"""The character for each byte in the library's files: itself if printable, else one above 255."""
CHARACTER_TO_BYTE = {character: byte for byte, character in BYTE_TO_CHARACTER.items()}


def learn_merges_by_library(text: str, size: int) -> list[Pair]:
    """The pairs to merge, in order, until there are `size` tokens; ties are broken as in `learn_merges`."""
    _check_library()
    from tokenizers import pre_tokenizers, trainers

    tokenizer = _build_tokenizer({}, [])
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=size, min_frequency=2, show_progress=False, initial_alphabet=alphabet)
    tokenizer.train_from_iterator([text], trainer)
    merges = json.loads(tokenizer.to_str())["model"]["merges"]
    return [(_to_bytes(left), _to_bytes(right)) for left, right in merges]


def library_tokenizer(tokens: Sequence[bytes], merges: Sequence[Pair], special: Sequence[str]) -> "Tokenizer":
    """A `tokenizers.Tokenizer` with these special tokens, tokens and merges, for large texts."""
    _check_library()
    names = [*special, *map(_to_characters, tokens)]
    return _build_tokenizer(
        {name: position for position, name in enumerate(names)},
        [(_to_characters(left), _to_characters(right)) for left, right in merges],
    )


def _build_tokenizer(vocabulary: dict[str, int], merges: list[tuple[str, str]]) -> "Tokenizer":
    """A BPE tokenizer that splits text by `PATTERN`."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

    tokenizer = Tokenizer(models.BPE(vocabulary, merges))
    split = pre_tokenizers.Split(Regex(PATTERN), behavior="isolated")
    as_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, as_bytes])
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _to_characters(token: bytes) -> str:
    return "".join(BYTE_TO_CHARACTER[token[position : position + 1]] for position in range(len(token)))


def _to_bytes(name: str) -> bytes:
    return b"".join(CHARACTER_TO_BYTE[character] for character in name)


def _check_library() -> None:
    try:
        import_module("tokenizers")
    except ImportError:
        raise ImportError(
            "fast learning of byte pairs needs the tokenizers library: pip install 'parnassus[text]', "
            "or pass learn=learn_merges, which is slow"
        ) from None
