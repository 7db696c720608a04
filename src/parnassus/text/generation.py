"""Token-by-token generation from a prompt with any `AutoregressiveModel` (book sec. 9.2)."""

from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Int
from torch import Tensor

from parnassus.errors import check_non_negative
from parnassus.text.autoregressive_model import AutoregressiveModel, State
from parnassus.text.sampling import TokenSampler


def stream_tokens(
    model: AutoregressiveModel,
    prompt: Int[Tensor, "batch time"],
    sampler: TokenSampler,
    length: int,
    *,
    stop: int | None = None,
) -> Iterator[Int[Tensor, " batch"]]:
    """Yield up to `length` new tokens for each row, one step at a time; ends early when every row has reached `stop`.

    A row that has stopped is padded with `stop`. When the model's window is full, its last half is read again.
    """
    if prompt.shape[1] == 0:
        raise ValueError("a prompt must have at least one token; got none")
    check_non_negative(length=length)
    return _tokens(model, prompt, sampler, length, stop)


def generate(
    model: AutoregressiveModel,
    prompt: Int[Tensor, "batch time"],
    sampler: TokenSampler,
    length: int,
    *,
    stop: int | None = None,
) -> Int[Tensor, "batch generated"]:
    """All tokens that `stream_tokens` yields, without the prompt."""
    tokens = list(stream_tokens(model, prompt, sampler, length, stop=stop))
    return torch.stack(tokens, 1) if tokens else prompt[:, :0]


@torch.no_grad()
def generate_completions(
    model: AutoregressiveModel,
    prompts: Sequence[Int[Tensor, " _time"]],
    sampler: TokenSampler,
    length: int,
    *,
    stop: int | None = None,
) -> list[Int[Tensor, " _generated"]]:
    """Continue prompts of different lengths in one batch by up to `length` tokens; `stop` ends a row and is dropped.

    Rows are independent, so no padding is needed: while a longer prompt is still being read, its row takes the next
    token from the prompt instead of from `sampler`.
    """
    if not prompts:
        return []
    shortest = min(map(len, prompts))
    if shortest == 0:
        raise ValueError("every prompt must have at least one token; got an empty one")
    check_non_negative(length=length)
    rows = [prompt.tolist() for prompt in prompts]
    ends = [len(prompt) + length for prompt in prompts]
    stopped: set[int] = set()
    device = prompts[0].device
    context = _Context(model, torch.tensor([row[:shortest] for row in rows], device=device))
    for position in range(shortest, max(ends)):
        if position > shortest:
            context.append(torch.tensor([row[position - 1] for row in rows], device=device))
        for index, token in enumerate(sampler(context.logits).tolist()):
            if position == len(rows[index]):  # the prompt is exhausted
                rows[index].append(token)
                stopped |= {index} if token == stop else set()
        if len(stopped) == len(rows):
            break
    texts = [row[len(prompt) : end] for row, prompt, end in zip(rows, prompts, ends, strict=True)]
    ended = [text[: text.index(stop)] if stop is not None and stop in text else text for text in texts]
    return [torch.tensor(text, dtype=torch.int64, device=device) for text in ended]


@torch.no_grad()
def _tokens(
    model: AutoregressiveModel, prompt: Tensor, sampler: TokenSampler, length: int, stop: int | None
) -> Iterator[Tensor]:
    context = _Context(model, prompt)
    token = prompt[:, -1]
    stopped = torch.zeros_like(token, dtype=torch.bool)
    for step in range(length):
        if step > 0:
            context.append(token)
        token = sampler(context.logits)
        if stop is not None:
            token = torch.where(stopped, stop, token)
            stopped = token == stop
        yield token
        if stop is not None and bool(stopped.all()):
            return


class _Context:
    """Tokens read so far, the model's state, and its logits of the next token."""

    def __init__(self, model: AutoregressiveModel, tokens: Int[Tensor, "batch time"]) -> None:
        self.model, self.window = model, model.window
        recent = tokens if self.window is None else tokens[:, -self.window :]
        self.recent = [recent]  # chunks, concatenated when the window is full
        self.count = recent.shape[1]  # tokens in the state
        self.logits, self.state = model.read(recent)

    def append(self, token: Int[Tensor, " batch"]) -> None:
        """Read one more token."""
        state: State | None = self.state
        new = token[:, None]
        if self.window is not None:
            self.recent.append(new)
            if self.count == self.window:
                new = torch.cat(self.recent, 1)[:, -max(1, self.window // 2) :]
                self.recent, state, self.count = [new], None, 0
        self.count += new.shape[1]
        self.logits, self.state = self.model.read(new, state)
