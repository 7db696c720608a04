"""Translators: sentence encoding, greedy and beam search."""

import pytest
import torch

from parnassus.attention.models.seq2seq import seq2seq
from parnassus.attention.models.translator import BEGIN, END, SPECIAL, Translator, encode_sentences
from parnassus.text import WordTokeniser

PAIRS = {"a b": "y x", "b c": "z y", "c a": "x z", "a c": "z x", "b a": "x y", "c b": "y z"}


def make_translator() -> Translator:
    torch.manual_seed(0)
    source = WordTokeniser.fit("a b c", special=SPECIAL)
    target = WordTokeniser.fit("x y z", special=SPECIAL)
    return Translator(seq2seq((source.vocabulary, target.vocabulary), 12, width=32, heads=2, depth=1), source, target)


def train_translator() -> Translator:
    """A model trained to map and reverse letters."""
    model = make_translator()
    source = encode_sentences(model.source, list(PAIRS))
    target = encode_sentences(model.target, list(PAIRS.values()), begin=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(60):
        optimizer.zero_grad()
        model.loss(source, target).backward()
        optimizer.step()
    return model


def test_encoded_sentences_have_begin_and_end_tokens_and_padding() -> None:
    tokeniser = WordTokeniser(("a", "b"), (*SPECIAL, "<unknown>"))
    assert encode_sentences(tokeniser, ["a b", "b", "c"]).tolist() == [[4, 5, END], [5, END, 0], [3, END, 0]]
    assert encode_sentences(tokeniser, ["a"], begin=True).tolist() == [[BEGIN, 4, END]]


def test_trained_model_translates_with_greedy_and_beam_search() -> None:
    model = train_translator()
    for width in (1, 3):
        assert model.translate(list(PAIRS), width=width) == list(PAIRS.values())
    assert model.translate(["b c"]) == ["z y"]  # a batch of size one
    assert model.translate([]) == []


def test_beam_search_finds_the_most_likely_translation() -> None:
    """Without length penalty, a beam wider than the number of candidates is exact."""
    model = make_translator().double()
    translation = model.translate(["a b c a b c a b"], width=400, penalty=0.0)[0]
    source = encode_sentences(model.source, ["a b c a b c a b"])
    candidates = ["", *"xyz", *(f"{a} {b}" for a in "xyz" for b in "xyz")]
    log_prob = {
        text: float(model.model.log_prob(source, encode_sentences(model.target, [text], begin=True)).detach())
        for text in candidates
    }
    best = float(model.model.log_prob(source, encode_sentences(model.target, [translation], begin=True)).detach())
    assert best >= max(log_prob.values()) - 1e-9


def test_translate_restores_training_mode() -> None:
    model = make_translator()
    model.train()
    model.translate(["a"])
    assert model.training


def test_invalid_arguments_raise_value_error() -> None:
    model = make_translator()
    with pytest.raises(ValueError, match="at most 11 tokens; got 30"):
        model.translate(["a " * 30])
    plain = WordTokeniser.fit("a b")
    with pytest.raises(ValueError, match="special tokens must begin with"):
        Translator(model.model, plain, plain)
    with pytest.raises(ValueError, match="got 7 tokens in the model, 6 in the tokeniser"):
        Translator(model.model, WordTokeniser.fit("a b", special=SPECIAL), model.target)
