"""All tokenisers: saving as JSON, streaming, and the display of tokens."""

import json
from pathlib import Path

import pytest
import torch

from parnassus.text import (
    BytePairTokeniser,
    CharacterTokeniser,
    Tokeniser,
    WordTokeniser,
    load_tokeniser,
    save_tokeniser,
    show_whitespace,
    stream_text,
)

TEXT = 'She said: "Ça coûte 5 €, (not 6) 😀." She said no. '
TOKENISERS: list[Tokeniser] = [
    CharacterTokeniser.fit(TEXT, special=("<end>",)),
    WordTokeniser.fit(TEXT, special=("<end>",)),
    BytePairTokeniser.fit(TEXT, 260, special=("<end>",)),
]


@pytest.fixture(params=TOKENISERS, ids=lambda tokeniser: type(tokeniser).__name__)
def tokeniser(request: pytest.FixtureRequest) -> Tokeniser:
    assert isinstance(request.param, Tokeniser)
    return request.param


def test_saved_tokeniser_can_be_loaded(tokeniser: Tokeniser, tmp_path: Path) -> None:
    save_tokeniser(tokeniser, tmp_path / "tokeniser.json")
    assert load_tokeniser(tmp_path / "tokeniser.json") == tokeniser


def test_streamed_pieces_match_the_decoded_text(tokeniser: Tokeniser) -> None:
    tokens = tokeniser.encode(TEXT).tolist()
    tokens.insert(3, 0)  # a special token has no text
    text = tokeniser.decode(tokeniser.encode(TEXT))
    pieces = list(stream_text(tokeniser, iter(tokens)))
    assert "".join(pieces) == text
    assert len(pieces) > 5
    assert not any("�" in piece for piece in pieces)


def test_streaming_continues_after_a_previous_token(tokeniser: Tokeniser) -> None:
    first, *rest = tokeniser.encode(TEXT).tolist()
    first_text, text = tokeniser.decode(torch.tensor([first])), tokeniser.decode(tokeniser.encode(TEXT))
    assert first_text + "".join(stream_text(tokeniser, rest, first)) == text


def test_incomplete_character_is_replaced_at_the_end() -> None:
    tokeniser = BytePairTokeniser(())
    tokens = tokeniser.encode("a€").tolist()[:-1]
    assert list(stream_text(tokeniser, tokens)) == ["a", "�"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not JSON"),
        ("[]", "must contain a JSON object; got a list"),
        ("{}", "must be one of characters, words, byte pairs; got kind=None"),
        (json.dumps({"kind": "characters"}), "needs alphabet"),
        (json.dumps({"kind": "words"}), "two lists, words and special"),
        (json.dumps({"kind": "byte pairs"}), "two lists, merges and special"),
        (json.dumps({"kind": "byte pairs", "merges": [["zz", "61"]], "special": []}), "pairs of hexadecimal strings"),
        (json.dumps({"kind": "byte pairs", "merges": [7], "special": []}), "pairs of hexadecimal strings"),
    ],
)
def test_invalid_files_raise_value_error(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "tokeniser.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=message):
        load_tokeniser(path)


def test_spaces_newlines_and_empty_texts_are_visible() -> None:
    assert show_whitespace("a b\n") == "a␣b⏎"
    assert show_whitespace("") == "·"
    assert show_whitespace("word") == "word"
