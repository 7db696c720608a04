"""Writing on: the same as reading everything anew, within a window, and for prompts of unequal length."""

from dataclasses import dataclass, field

import pytest
import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.text import NGramModel, State, generate, generate_completions, greedy, stream_tokens, token_sampler
from parnassus.text.ngrams import NGramState

TOKENS = torch.randint(5, (400,), generator=torch.Generator().manual_seed(0))
MODEL = NGramModel.fit_interpolated(TOKENS, 3, vocabulary=5, smoothing=0.5)


@dataclass
class Held:
    """The memory of a model with a window: all it has read since it began anew."""

    tokens: Tensor

    def rows(self, index: Int[Tensor, " kept"]) -> "Held":
        return Held(self.tokens[index])


@dataclass
class Windowed:
    """A model that refuses more tokens than its window holds, and remembers what it was given to read."""

    window: int
    given: list[list[int]] = field(default_factory=list)

    def read(
        self, tokens: Int[Tensor, "batch time"], state: State | None = None
    ) -> tuple[Float[Tensor, "batch vocabulary"], Held]:
        held = tokens if state is None else torch.cat([state.tokens, tokens], 1)  # type: ignore[attr-defined]
        assert held.shape[1] <= self.window
        self.given.append(tokens[0].tolist())
        return torch.nn.functional.one_hot((held.sum(1) + 1) % 5, 5).double(), Held(held)


def test_each_token_is_the_likeliest_after_all_before_it() -> None:
    tokens = torch.tensor([[0, 1], [4, 2]])
    for _ in range(6):
        tokens = torch.cat([tokens, greedy(MODEL.read(tokens)[0])[:, None]], 1)
    assert torch.equal(generate(MODEL, tokens[:, :2], greedy, length=6), tokens[:, 2:])


def test_tokens_come_one_by_one() -> None:
    stream = stream_tokens(MODEL, torch.tensor([[0], [1], [2]]), greedy, length=10**9)
    assert next(stream).shape == next(stream).shape == (3,)


def test_rows_that_stop_go_on_with_the_stop_and_end_together() -> None:
    chosen = token_sampler(generator=torch.Generator().manual_seed(3))
    texts = generate(MODEL, torch.tensor([[0], [1], [2], [3]]), chosen, length=500, stop=4)
    assert texts.shape[1] < 500
    for row in texts.tolist():
        first = row.index(4)
        assert set(row[first:]) == {4}
    assert (texts[:, -1] == 4).all()
    assert not (texts[:, -2] == 4).all()


def test_a_full_window_is_begun_anew_with_its_last_half() -> None:
    model = Windowed(window=4)
    texts = generate(model, torch.tensor([[1, 1]]), greedy, length=6)[0].tolist()
    seen = [1, 1, *texts]
    assert model.given == [[1, 1], seen[2:3], seen[3:4], seen[3:5], seen[5:6], seen[6:7]]


def test_a_prompt_beyond_the_window_is_read_from_its_end() -> None:
    model = Windowed(window=4)
    generate(model, torch.arange(9)[None] % 5, greedy, length=2)
    assert model.given[0] == [0, 1, 2, 3]
    assert len(model.given[1]) == 2


def test_prompts_of_unequal_length_are_continued_as_if_alone() -> None:
    prompts = [TOKENS[:3], TOKENS[10:11], TOKENS[20:27]]
    together = generate_completions(MODEL, prompts, greedy, length=8)
    for prompt, text in zip(prompts, together, strict=True):
        assert torch.equal(text, generate(MODEL, prompt[None], greedy, length=8)[0])


def test_a_stop_ends_each_text_by_itself() -> None:
    prompts = [TOKENS[:3], TOKENS[10:11], TOKENS[20:27]]
    free = generate_completions(MODEL, prompts, greedy, length=12)
    stop = int(free[0][2])
    for text, whole in zip(generate_completions(MODEL, prompts, greedy, length=12, stop=stop), free, strict=True):
        row = whole.tolist()
        assert text.tolist() == (row[: row.index(stop)] if stop in row else row)


def test_what_cannot_work_gets_a_sentence() -> None:
    with pytest.raises(ValueError, match="a prompt must have at least one token"):
        stream_tokens(MODEL, torch.zeros(1, 0, dtype=torch.int64), greedy, length=1)
    with pytest.raises(ValueError, match="must not be negative; got length=-1"):
        stream_tokens(MODEL, torch.zeros(1, 1, dtype=torch.int64), greedy, length=-1)
    with pytest.raises(ValueError, match="every prompt must have at least one token; got an empty one"):
        generate_completions(MODEL, [TOKENS[:2], TOKENS[:0]], greedy, length=1)
    with pytest.raises(ValueError, match="must not be negative; got length=-1"):
        generate_completions(MODEL, [TOKENS[:2]], greedy, length=-1)
    assert generate_completions(MODEL, [], greedy, length=1) == []
    with pytest.raises(TypeError, match="state must be an NGramState; got Held"):
        MODEL.read(TOKENS[None], Held(TOKENS[None]))
    assert isinstance(NGramState(TOKENS[None]), State)
