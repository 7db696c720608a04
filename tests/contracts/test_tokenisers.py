"""The contract of tokenisers: every public class with `encode` and `decode`."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from parnassus import music, text

from .checks import Offences, other_default_device, unchanged, unchanged_globals, without_shape_checks
from .public_members import check_factories, public_classes

TEXT = "the cat sat on the mat and the rat sat on the cat"
PIECE = torch.tensor([[60, 57, 55, 48], [62, 57, 55, 48], [64, 60, 55, 52]])

TOKENISERS: dict[str, tuple[Callable[[], Any], Any]] = {
    "music.VoiceTokeniser": (lambda: music.VoiceTokeniser.fit([PIECE]), PIECE),
    "text.BytePairTokeniser": (lambda: text.BytePairTokeniser.fit(TEXT, 262, learn=text.learn_merges), TEXT),
    "text.CharacterTokeniser": (lambda: text.CharacterTokeniser.fit(TEXT), TEXT),
    "text.WordTokeniser": (lambda: text.WordTokeniser.fit(TEXT), TEXT),
}


def test_every_tokeniser_has_a_factory() -> None:
    classes = {name: each for name, each in public_classes().items() if name.split(".")[0] in {"music", "text"}}
    family = [name for name, each in classes.items() if hasattr(each, "encode") and hasattr(each, "decode")]
    check_factories(family, TOKENISERS)


def test_tokens_are_integers_below_the_vocabulary_and_decode_to_the_input() -> None:
    offences = Offences()
    for name, (build, source) in TOKENISERS.items():
        guard, tokeniser = unchanged_globals(torch_generator=True), build()
        with offences.record(name, "round trip"), without_shape_checks(), unchanged(source), guard:
            tokens = tokeniser.encode(source)
            assert tokens.dtype == torch.int64, f"tokens are {tokens.dtype}"
            assert 0 <= int(tokens.min()) <= int(tokens.max()) < tokeniser.vocabulary, "tokens beyond the vocabulary"
            decoded = tokeniser.decode(tokens)
            assert torch.equal(decoded, source) if isinstance(source, Tensor) else decoded == source, "another text"
            assert torch.equal(tokeniser.encode(decoded), tokens), "other tokens the second time"
        with offences.record(name, "fit"):
            assert build() == tokeniser, "another tokeniser from the same text"
        with offences.record(name, "repr"):
            assert len(repr(tokeniser)) < 400 + len(TEXT), "long repr"
    offences.check()


def test_decoding_follows_the_device_of_the_tokens() -> None:
    offences = Offences()
    for name, (build, source) in TOKENISERS.items():
        tokeniser = build()
        tokens = tokeniser.encode(source)
        with offences.record(name, "device"), other_default_device():
            assert tokeniser.decode(tokens) is not None
    offences.check()


def test_stored_tokenisers_are_equal() -> None:
    offences = Offences()
    for name, (build, source) in TOKENISERS.items():
        tokeniser = build()
        if not isinstance(tokeniser, text.Tokeniser):
            continue
        with offences.record(name, "stored"):
            restored = text.tokeniser_from_dict(text.tokeniser_to_dict(tokeniser))
            assert restored == tokeniser
            assert torch.equal(restored.encode(source), tokeniser.encode(source))
    offences.check()


@pytest.mark.parametrize("name", [name for name in TOKENISERS if name.startswith("text.")])
def test_unknown_tokens_are_refused_by_a_sentence(name: str) -> None:
    tokeniser = TOKENISERS[name][0]()
    with pytest.raises(ValueError, match=str(tokeniser.vocabulary)):
        tokeniser.decode(torch.tensor([tokeniser.vocabulary]))
