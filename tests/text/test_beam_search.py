"""Beam search between greedy decoding and trying everything."""

from dataclasses import replace
from math import nan

import pytest
import torch

from parnassus.text import NGramModel, beam_search, enumerate_continuations, generate, greedy

TOKENS = torch.randint(4, (120,), generator=torch.Generator().manual_seed(0))
MODEL = NGramModel.fit_interpolated(TOKENS, 3, vocabulary=4, smoothing=0.3)
PROMPTS = torch.tensor([[0, 1], [2, 2], [3, 0]])


def test_width_one_is_greedy() -> None:
    found = beam_search(MODEL, PROMPTS, width=1, length=7)
    texts = generate(MODEL, PROMPTS, greedy, length=7)
    assert [list(found.best(row).tokens) for row in range(3)] == texts.tolist()


@pytest.mark.parametrize("stop", [None, 3])
@pytest.mark.parametrize("penalty", [0.0, 0.75, 1.5])
def test_wide_enough_it_is_exact(stop: int | None, penalty: float) -> None:
    found = beam_search(MODEL, PROMPTS, width=4**3, length=4, stop=stop, penalty=penalty)
    for row, prompt in enumerate(PROMPTS):
        every = enumerate_continuations(MODEL, prompt, length=4, stop=stop)
        best = found.best(row)
        assert best.score == pytest.approx(float(every.scores(penalty).max()), abs=1e-12)
        assert list(best.tokens) == every.best(penalty).tolist()[: len(best.tokens)]


def test_a_batch_is_searched_as_its_rows_would_be() -> None:
    together = beam_search(MODEL, PROMPTS, width=3, length=6, stop=3, penalty=0.5)
    for row in range(3):
        alone = beam_search(MODEL, PROMPTS[row : row + 1], width=3, length=6, stop=3, penalty=0.5)
        assert together.best(row).tokens == alone.best().tokens
        assert together.best(row).score == pytest.approx(alone.best().score)


def test_scores_are_the_model_s_own() -> None:
    found = beam_search(MODEL, PROMPTS, width=3, length=6, stop=3, penalty=0.5)
    for row, prompt in enumerate(PROMPTS):
        before = float(MODEL.log_prob(prompt[None]))
        for each in found.hypotheses(row):
            whole = torch.cat([prompt, torch.tensor(each.tokens)])
            assert each.log_prob == pytest.approx(float(MODEL.log_prob(whole[None])) - before)
            assert each.score == pytest.approx(each.log_prob / len(each.tokens) ** 0.5)
            assert each.ended == (each.tokens[-1] == 3)
            assert 3 not in each.tokens[:-1]


def test_the_tree_holds_every_beginning_once() -> None:
    found = beam_search(MODEL, PROMPTS[:1], width=3, length=4, stop=3)
    nodes = found.tree()
    words: list[tuple[int, ...]] = []
    for node in nodes:
        words.append((*(() if node.parent is None else words[node.parent]), node.token))
        assert node.parent is None or nodes[node.parent].log_prob >= node.log_prob
        assert node.parent is None or not nodes[node.parent].ended
    assert len(set(words)) == len(words)
    assert {each.tokens for each in found.hypotheses()} <= set(words)
    assert all(sum(node.step == step for node in nodes) <= 3 for step in range(4))


def test_a_longer_answer_wins_under_a_penalty() -> None:
    short = beam_search(MODEL, PROMPTS, width=64, length=4, stop=3)
    long = beam_search(MODEL, PROMPTS, width=64, length=4, stop=3, penalty=1.0)
    assert all(len(short.best(row).tokens) <= len(long.best(row).tokens) for row in range(3))
    assert any(len(short.best(row).tokens) < len(long.best(row).tokens) for row in range(3))


def test_what_cannot_work_gets_a_sentence() -> None:
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
