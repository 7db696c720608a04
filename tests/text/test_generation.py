"""Generation compared with full passes, with limited windows and prompts of unequal lengths."""

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
class WindowState:
    """The tokens in the current context."""

    tokens: Tensor

    def rows(self, index: Int[Tensor, " kept"]) -> "WindowState":
        return WindowState(self.tokens[index])


@dataclass
class WindowModel:
    """A model that records its inputs and fails on contexts longer than its window."""

    window: int
    inputs: list[list[int]] = field(default_factory=list)

    def read(
        self, tokens: Int[Tensor, "batch time"], state: State | None = None
    ) -> tuple[Float[Tensor, "batch vocabulary"], WindowState]:
        context = tokens if state is None else torch.cat([state.tokens, tokens], 1)  # type: ignore[attr-defined]
        assert context.shape[1] <= self.window
        self.inputs.append(tokens[0].tolist())
        return torch.nn.functional.one_hot((context.sum(1) + 1) % 5, 5).double(), WindowState(context)


def test_greedy_generation_matches_full_passes() -> None:
    tokens = torch.tensor([[0, 1], [4, 2]])
    for _ in range(6):
        tokens = torch.cat([tokens, greedy(MODEL.read(tokens)[0])[:, None]], 1)
    assert torch.equal(generate(MODEL, tokens[:, :2], greedy, length=6), tokens[:, 2:])


def test_tokens_are_streamed_one_at_a_time() -> None:
    stream = stream_tokens(MODEL, torch.tensor([[0], [1], [2]]), greedy, length=10**9)
    assert next(stream).shape == next(stream).shape == (3,)


def test_stopped_rows_are_padded_with_the_stop_token() -> None:
    sampler = token_sampler(generator=torch.Generator().manual_seed(3))
    texts = generate(MODEL, torch.tensor([[0], [1], [2], [3]]), sampler, length=500, stop=4)
    assert texts.shape[1] < 500
    for row in texts.tolist():
        first = row.index(4)
        assert set(row[first:]) == {4}
    assert (texts[:, -1] == 4).all()
    assert not (texts[:, -2] == 4).all()


def test_second_half_of_a_full_window_is_read_again() -> None:
    model = WindowModel(window=4)
    texts = generate(model, torch.tensor([[1, 1]]), greedy, length=6)[0].tolist()
    tokens = [1, 1, *texts]
    assert model.inputs == [[1, 1], tokens[2:3], tokens[3:4], tokens[3:5], tokens[5:6], tokens[6:7]]


def test_long_prompt_is_truncated_to_its_end() -> None:
    model = WindowModel(window=4)
    generate(model, torch.arange(9)[None] % 5, greedy, length=2)
    assert model.inputs[0] == [0, 1, 2, 3]
    assert len(model.inputs[1]) == 2


def test_prompts_of_unequal_length_are_continued_independently() -> None:
    prompts = [TOKENS[:3], TOKENS[10:11], TOKENS[20:27]]
    batched = generate_completions(MODEL, prompts, greedy, length=8)
    for prompt, text in zip(prompts, batched, strict=True):
        assert torch.equal(text, generate(MODEL, prompt[None], greedy, length=8)[0])


def test_texts_end_before_their_first_stop_token() -> None:
    prompts = [TOKENS[:3], TOKENS[10:11], TOKENS[20:27]]
    without_stop = generate_completions(MODEL, prompts, greedy, length=12)
    stop = int(without_stop[0][2])
    for text, expected in zip(
        generate_completions(MODEL, prompts, greedy, length=12, stop=stop), without_stop, strict=True
    ):
        row = expected.tolist()
        assert text.tolist() == (row[: row.index(stop)] if stop in row else row)


def test_invalid_arguments_raise() -> None:
    with pytest.raises(ValueError, match="a prompt must have at least one token"):
        stream_tokens(MODEL, torch.zeros(1, 0, dtype=torch.int64), greedy, length=1)
    with pytest.raises(ValueError, match="must not be negative; got length=-1"):
        stream_tokens(MODEL, torch.zeros(1, 1, dtype=torch.int64), greedy, length=-1)
    with pytest.raises(ValueError, match="every prompt must have at least one token; got an empty one"):
        generate_completions(MODEL, [TOKENS[:2], TOKENS[:0]], greedy, length=1)
    with pytest.raises(ValueError, match="must not be negative; got length=-1"):
        generate_completions(MODEL, [TOKENS[:2]], greedy, length=-1)
    assert generate_completions(MODEL, [], greedy, length=1) == []
    with pytest.raises(TypeError, match="state must be an NGramState; got WindowState"):
        MODEL.read(TOKENS[None], WindowState(TOKENS[None]))
    assert isinstance(NGramState(TOKENS[None]), State)
