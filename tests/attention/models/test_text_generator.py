"""Text generation from prompts."""

import pytest
import torch

from parnassus.attention.models.gpt import rotary_gpt
from parnassus.attention.models.text_generator import TextGenerator
from parnassus.text.byte_pair_tokeniser import BytePairTokeniser
from parnassus.text.character_tokeniser import CharacterTokeniser
from parnassus.text.sampling import greedy, token_sampler
from parnassus.text.word_tokeniser import WordTokeniser


def make_generator(alphabet: str = "\nabc", window: int = 8) -> TextGenerator:
    torch.manual_seed(0)
    model = rotary_gpt(len(alphabet), window, width=8, heads=2, depth=1)
    return TextGenerator(model, CharacterTokeniser(alphabet))


def test_greedy_generation_selects_the_argmax() -> None:
    generator = make_generator()
    prompt, text = "ab", ""
    for _ in range(5):
        text += "\nabc"[int(generator.logits(prompt + text).argmax())]
    assert "".join(generator.generate(prompt, greedy, 5)) == text


def test_generation_continues_beyond_the_window() -> None:
    torch.manual_seed(0)
    pieces = list(make_generator().generate("abcabcabcabc", token_sampler(), 50))
    assert len(pieces) == 50
    assert set("".join(pieces)) <= set("\nabc")
    torch.testing.assert_close(make_generator().logits("abc" * 9), make_generator().logits(("abc" * 9)[-8:]))


@pytest.mark.parametrize(("alphabet", "first_character"), [("\nab", "\n"), (" ab", " "), ("ab", "a")])
def test_empty_prompt_is_replaced_by_line_break_space_or_first_character(alphabet: str, first_character: str) -> None:
    assert make_generator(alphabet).encode_prompt("").tolist() == [alphabet.index(first_character)]


def test_byte_tokens_are_decoded_at_character_boundaries() -> None:
    tokeniser = BytePairTokeniser(())
    torch.manual_seed(0)
    model = TextGenerator(rotary_gpt(256, 16, width=8, heads=2, depth=1), tokeniser)
    ids = iter(tokeniser.encode("é→x").tolist())
    pieces = list(model.generate("a", lambda _: torch.tensor([next(ids)]), 6))
    assert [piece for piece in pieces if piece] == ["é", "→", "x"]


def test_generated_words_are_separated_from_the_prompt_by_spaces() -> None:
    tokeniser = WordTokeniser.fit("the cat ( sat")
    torch.manual_seed(0)
    model = TextGenerator(rotary_gpt(tokeniser.vocabulary, 16, width=8, heads=2, depth=1), tokeniser)
    cat = tokeniser.encode("cat")
    for prompt, piece in {"the": " cat", "a dog": " cat", "the ": "cat", "the (": "cat", "": "cat"}.items():
        assert "".join(model.generate(prompt, lambda _: cat, 1)) == piece


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match=r"got 'z' \(U\+007A\)"):
        make_generator().encode_prompt("abz")
    with pytest.raises(ValueError, match=r"length must be at least 1 token; got length=0"):
        make_generator().generate("a", greedy, 0)
    with pytest.raises(ValueError, match=r"got 3 tokens in the model, 4 in the tokeniser"):
        TextGenerator(rotary_gpt(3, 8, width=8, heads=2, depth=1), CharacterTokeniser("abcd"))
