"""A language model with its tokeniser: prompts in, text out."""

import pytest
import torch

from parnassus.attention.gpt import rotary_gpt
from parnassus.attention.writer import Writer
from parnassus.text.byte_pairs import BytePairTokeniser
from parnassus.text.characters import CharacterTokeniser
from parnassus.text.choosing import chooser, greedy
from parnassus.text.words import WordTokeniser


def writer(alphabet: str = "\nabc", window: int = 8) -> Writer:
    torch.manual_seed(0)
    model = rotary_gpt(len(alphabet), window, width=8, heads=2, depth=1)
    return Writer(model, CharacterTokeniser(alphabet))


def test_it_goes_on_as_its_logits_say() -> None:
    mute = writer()
    prompt, written = "ab", ""
    for _ in range(5):
        written += "\nabc"[int(mute.logits(prompt + written).argmax())]
    assert "".join(mute.write(prompt, greedy, 5)) == written


def test_it_writes_beyond_its_window() -> None:
    torch.manual_seed(0)
    pieces = list(writer().write("abcabcabcabc", chooser(), 50))
    assert len(pieces) == 50
    assert set("".join(pieces)) <= set("\nabc")
    torch.testing.assert_close(writer().logits("abc" * 9), writer().logits(("abc" * 9)[-8:]))


@pytest.mark.parametrize(("alphabet", "opening"), [("\nab", "\n"), (" ab", " "), ("ab", "a")])
def test_an_empty_prompt_is_a_new_line_where_there_is_one(alphabet: str, opening: str) -> None:
    assert writer(alphabet).tokens("").tolist() == [alphabet.index(opening)]


def test_bytes_become_characters_when_they_are_whole() -> None:
    tokeniser = BytePairTokeniser(())
    torch.manual_seed(0)
    model = Writer(rotary_gpt(256, 16, width=8, heads=2, depth=1), tokeniser)
    ids = iter(tokeniser.encode("é→x").tolist())
    pieces = list(model.write("a", lambda _: torch.tensor([next(ids)]), 6))
    assert [piece for piece in pieces if piece] == ["é", "→", "x"]


def test_words_are_parted_from_the_prompt_as_people_do() -> None:
    tokeniser = WordTokeniser.fit("the cat ( sat")
    torch.manual_seed(0)
    model = Writer(rotary_gpt(tokeniser.vocabulary, 16, width=8, heads=2, depth=1), tokeniser)
    cat = tokeniser.encode("cat")
    for prompt, piece in {"the": " cat", "a dog": " cat", "the ": "cat", "the (": "cat", "": "cat"}.items():
        assert "".join(model.write(prompt, lambda _: cat, 1)) == piece


def test_what_cannot_be_written_is_told() -> None:
    with pytest.raises(ValueError, match=r"has no 'z' \(U\+007A\)"):
        writer().tokens("abz")
    with pytest.raises(ValueError, match=r"length must be at least 1 token; got length=0"):
        writer().write("a", greedy, 0)
    with pytest.raises(ValueError, match=r"got 3 tokens and a tokeniser of 4"):
        Writer(rotary_gpt(3, 8, width=8, heads=2, depth=1), CharacterTokeniser("abcd"))
