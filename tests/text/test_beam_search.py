"""Beam search compared with greedy decoding and exhaustive enumeration."""

from dataclasses import replace
from math import nan

import pytest
import torch

from parnassus.text import NGramModel, beam_search, enumerate_continuations, generate, greedy

TOKENS = torch.randint(4, (120,), generator=torch.Generator().manual_seed(0))
MODEL = NGramModel.fit_interpolated(TOKENS, 3, vocabulary=4, smoothing=0.3)
PROMPTS = torch.tensor([[0, 1], [2, 2], [3, 0]])


def test_width_one_is_greedy_decoding() -> None:
    result = beam_search(MODEL, PROMPTS, width=1, length=7)
    texts = generate(MODEL, PROMPTS, greedy, length=7)
    assert [list(result.best(row).tokens) for row in range(3)] == texts.tolist()


@pytest.mark.parametrize("stop", [None, 3])
@pytest.mark.parametrize("penalty", [0.0, 0.75, 1.5])
def test_wide_beam_is_exact(stop: int | None, penalty: float) -> None:
    result = beam_search(MODEL, PROMPTS, width=4**3, length=4, stop=stop, penalty=penalty)
    for row, prompt in enumerate(PROMPTS):
        continuations = enumerate_continuations(MODEL, prompt, length=4, stop=stop)
        best = result.best(row)
        assert best.score == pytest.approx(float(continuations.scores(penalty).max()), abs=1e-12)
        assert list(best.tokens) == continuations.best(penalty).tolist()[: len(best.tokens)]


def test_batched_search_matches_single_searches() -> None:
    batched = beam_search(MODEL, PROMPTS, width=3, length=6, stop=3, penalty=0.5)
    for row in range(3):
        single = beam_search(MODEL, PROMPTS[row : row + 1], width=3, length=6, stop=3, penalty=0.5)
        assert batched.best(row).tokens == single.best().tokens
        assert batched.best(row).score == pytest.approx(single.best().score)


def test_scores_are_log_probabilities_of_the_model() -> None:
    result = beam_search(MODEL, PROMPTS, width=3, length=6, stop=3, penalty=0.5)
    for row, prompt in enumerate(PROMPTS):
        prompt_log_prob = float(MODEL.log_prob(prompt[None]))
        for hypothesis in result.hypotheses(row):
            text = torch.cat([prompt, torch.tensor(hypothesis.tokens)])
            assert hypothesis.log_prob == pytest.approx(float(MODEL.log_prob(text[None])) - prompt_log_prob)
            assert hypothesis.score == pytest.approx(hypothesis.log_prob / len(hypothesis.tokens) ** 0.5)
            assert hypothesis.is_complete == (hypothesis.tokens[-1] == 3)
            assert 3 not in hypothesis.tokens[:-1]


def test_tree_contains_every_prefix_once() -> None:
    result = beam_search(MODEL, PROMPTS[:1], width=3, length=4, stop=3)
    nodes = result.tree()
    prefixes: list[tuple[int, ...]] = []
    for node in nodes:
        prefixes.append((*(() if node.parent is None else prefixes[node.parent]), node.token))
        assert node.parent is None or nodes[node.parent].log_prob >= node.log_prob
        assert node.parent is None or not nodes[node.parent].is_complete
    assert len(set(prefixes)) == len(prefixes)
    assert {hypothesis.tokens for hypothesis in result.hypotheses()} <= set(prefixes)
    assert all(sum(node.step == step for node in nodes) <= 3 for step in range(4))


def test_length_penalty_favours_longer_texts() -> None:
    short = beam_search(MODEL, PROMPTS, width=64, length=4, stop=3)
    long = beam_search(MODEL, PROMPTS, width=64, length=4, stop=3, penalty=1.0)
    assert all(len(short.best(row).tokens) <= len(long.best(row).tokens) for row in range(3))
    assert any(len(short.best(row).tokens) < len(long.best(row).tokens) for row in range(3))


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match="width and length must be at least 1; got width=0, length=4"):
        beam_search(MODEL, PROMPTS, width=0, length=4)
    for penalty in (-1.0, nan, 1e3):
        with pytest.raises(ValueError, match=rf"penalty must lie in \[0, 10\]; got penalty={penalty}"):
            beam_search(MODEL, PROMPTS, width=1, length=4, penalty=penalty)
    with pytest.raises(ValueError, match="a prompt must have at least one token"):
        beam_search(MODEL, PROMPTS[:, :0], width=1, length=4)
    narrow = replace(MODEL, window=5)
    with pytest.raises(ValueError, match=r"must fit into the window; got 2 \+ 5 tokens, window=5"):
        beam_search(narrow, PROMPTS, width=1, length=5)
    assert beam_search(narrow, PROMPTS, width=1, length=4).steps
