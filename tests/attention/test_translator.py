"""Sentences in, sentences out."""

import pytest
import torch

from parnassus.attention.seq2seq import seq2seq
from parnassus.attention.translator import BEGIN, END, SPECIAL, Translator, encoded
from parnassus.text import WordTokeniser

PAIRS = {"a b": "y x", "b c": "z y", "c a": "x z", "a c": "z x", "b a": "x y", "c b": "y z"}


def small() -> Translator:
    torch.manual_seed(0)
    source = WordTokeniser.fit("a b c", special=SPECIAL)
    target = WordTokeniser.fit("x y z", special=SPECIAL)
    return Translator(seq2seq((source.vocabulary, target.vocabulary), 12, width=32, heads=2, depth=1), source, target)


def learned() -> Translator:
    """One that has learned to translate letters and to turn them around."""
    model = small()
    source = encoded(model.source, list(PAIRS))
    target = encoded(model.target, list(PAIRS.values()), begin=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(60):
        optimizer.zero_grad()
        model.loss(source, target).backward()
        optimizer.step()
    return model


def test_rows_begin_end_and_are_filled_up() -> None:
    words = WordTokeniser(("a", "b"), (*SPECIAL, "<unknown>"))
    assert encoded(words, ["a b", "b", "c"]).tolist() == [[4, 5, END], [5, END, 0], [3, END, 0]]
    assert encoded(words, ["a"], begin=True).tolist() == [[BEGIN, 4, END]]


def test_it_translates_what_it_has_learned_greedily_and_with_a_beam() -> None:
    model = learned()
    for width in (1, 3):
        assert model.translate(list(PAIRS), width=width) == list(PAIRS.values())
    assert model.translate(["b c"]) == ["z y"]  # alone as in company
    assert model.translate([]) == []


def test_the_beam_finds_the_likeliest_translation() -> None:
    """With a width beyond all candidates and no penalty it is the argmax over every short target."""
    model = small().double()
    found = model.translate(["a b c a b c a b"], width=400, penalty=0.0)[0]
    source = encoded(model.source, ["a b c a b c a b"])
    candidates = ["", *"xyz", *(f"{a} {b}" for a in "xyz" for b in "xyz")]
    log_prob = {
        text: float(model.model.log_prob(source, encoded(model.target, [text], begin=True)).detach())
        for text in candidates
    }
    best = float(model.model.log_prob(source, encoded(model.target, [found], begin=True)).detach())
    assert best >= max(log_prob.values()) - 1e-9


def test_translating_leaves_the_mode_as_it_was() -> None:
    model = small()
    model.train()
    model.translate(["a"])
    assert model.training


def test_wrong_input_gets_a_sentence() -> None:
    model = small()
    with pytest.raises(ValueError, match="a sentence may have 11 tokens; got one of 30"):
        model.translate(["a " * 30])
    plain = WordTokeniser.fit("a b")
    with pytest.raises(ValueError, match="special tokens must begin with"):
        Translator(model.model, plain, plain)
    with pytest.raises(ValueError, match="the model knows 7 tokens; the tokeniser has 6"):
        Translator(model.model, WordTokeniser.fit("a b", special=SPECIAL), model.target)
