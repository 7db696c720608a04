"""Writing on from a prompt, token by token, with any model that can read (book sec. 9.2)."""

from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Int
from torch import Tensor

from parnassus.text.choosing import Choose
from parnassus.text.reading import Reader, State


def generate(
    reader: Reader, prompt: Int[Tensor, "batch time"], choose: Choose, length: int, *, stop: int | None = None
) -> Iterator[Int[Tensor, " batch"]]:
    """`length` more tokens for each row, as they come; ends early when every row has chosen `stop`.

    A row that has stopped goes on with `stop`. When the model's window is full, it reads the last half of it anew.
    """
    if prompt.shape[1] == 0:
        raise ValueError("a prompt needs at least one token to read on from; got none")
    if length < 0:
        raise ValueError(f"the length must not be negative; got length={length}")
    return _tokens(reader, prompt, choose, length, stop)


def written(
    reader: Reader, prompt: Int[Tensor, "batch time"], choose: Choose, length: int, *, stop: int | None = None
) -> Int[Tensor, "batch written"]:
    """All that `generate` yields, without the prompt."""
    tokens = list(generate(reader, prompt, choose, length, stop=stop))
    return torch.stack(tokens, 1) if tokens else prompt[:, :0]


@torch.no_grad()
def complete(
    reader: Reader,
    prompts: Sequence[Int[Tensor, " _time"]],
    choose: Choose,
    length: int,
    *,
    stop: int | None = None,
) -> list[Int[Tensor, " _written"]]:
    """`length` tokens after each of several prompts of unequal length, read side by side; a `stop` ends a row's text.

    Rows do not know each other, so no filler is needed: while a long prompt is still being read, its row takes its
    next token from the prompt, and not from `choose`.
    """
    if not prompts:
        return []
    shortest = min(map(len, prompts))
    if shortest == 0:
        raise ValueError("every prompt needs at least one token to read on from; got an empty one")
    if length < 0:
        raise ValueError(f"the length must not be negative; got length={length}")
    rows = [prompt.tolist() for prompt in prompts]
    goals = [len(prompt) + length for prompt in prompts]
    stopped: set[int] = set()
    device = prompts[0].device
    reading = _Reading(reader, torch.tensor([row[:shortest] for row in rows], device=device))
    for place in range(shortest, max(goals)):
        if place > shortest:
            reading.on(torch.tensor([row[place - 1] for row in rows], device=device))
        for index, chosen in enumerate(choose(reading.logits).tolist()):
            if place == len(rows[index]):  # its prompt is read
                rows[index].append(chosen)
                stopped |= {index} if chosen == stop else set()
        if len(stopped) == len(rows):
            break
    texts = [row[len(prompt) : goal] for row, prompt, goal in zip(rows, prompts, goals, strict=True)]
    ended = [text[: text.index(stop)] if stop is not None and stop in text else text for text in texts]
    return [torch.tensor(text, dtype=torch.int64, device=device) for text in ended]


@torch.no_grad()
def _tokens(reader: Reader, prompt: Tensor, choose: Choose, length: int, stop: int | None) -> Iterator[Tensor]:
    reading = _Reading(reader, prompt)
    token = prompt[:, -1]
    stopped = torch.zeros_like(token, dtype=torch.bool)
    for step in range(length):
        if step > 0:
            reading.on(token)
        token = choose(reading.logits)
        if stop is not None:
            token = torch.where(stopped, stop, token)
            stopped = token == stop
        yield token
        if stop is not None and bool(stopped.all()):
            return


class _Reading:
    """A reader at work: what it read, and its logits for what comes next."""

    def __init__(self, reader: Reader, tokens: Int[Tensor, "batch time"]) -> None:
        self.reader, self.window = reader, reader.window
        seen = tokens if self.window is None else tokens[:, -self.window :]
        self.seen = [seen]  # in pieces, joined when the window is full
        self.count = seen.shape[1]  # of tokens that the state holds
        self.logits, self.state = reader.read(seen)

    def on(self, token: Int[Tensor, " batch"]) -> None:
        """Read one more token."""
        state: State | None = self.state
        new = token[:, None]
        if self.window is not None:
            self.seen.append(new)
            if self.count == self.window:
                new = torch.cat(self.seen, 1)[:, -max(1, self.window // 2) :]
                self.seen, state, self.count = [new], None, 0
        self.count += new.shape[1]
        self.logits, self.state = self.reader.read(new, state)
