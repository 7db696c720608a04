"""Beam search: of all beginnings keep the likeliest few, extend them, and keep the likeliest few (book sec. 9.3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from parnassus.text.reading import Reader


@dataclass(frozen=True)
class Hypothesis:
    """A continuation of the prompt, its log-probability, and the score by which it is ranked."""

    tokens: tuple[int, ...]
    log_prob: float
    score: float
    ended: bool


@dataclass(frozen=True)
class Step:
    """The beginnings kept at one step: whose extension each is, by which token, and how likely it is.

    Those of log-probability −∞ are empty places. `rank` is what they were chosen by.
    """

    parent: Int[Tensor, "batch width"]
    token: Int[Tensor, "batch width"]
    log_prob: Float[Tensor, "batch width"]
    rank: Float[Tensor, "batch width"]
    ended: Bool[Tensor, "batch width"]

    def cpu(self) -> "Step":
        """The same where it can be looked at number by number."""
        return Step(self.parent.cpu(), self.token.cpu(), self.log_prob.cpu(), self.rank.cpu(), self.ended.cpu())


@dataclass(frozen=True)
class Node:
    """A beginning that was kept: the step, the number of its parent, its last token, and how good it was."""

    step: int
    parent: int | None
    token: int
    log_prob: float
    rank: float
    ended: bool


@dataclass(frozen=True)
class Search:
    """All that a search kept on its way: a tree for each prompt, one level a step."""

    steps: tuple[Step, ...]
    penalty: float

    def hypotheses(self, row: int = 0) -> list[Hypothesis]:
        """Every continuation that ended, and those still open at the last step, best score first."""
        found: list[Hypothesis] = []
        for place, step in enumerate(self.steps):
            whole = step.ended[row] if place < len(self.steps) - 1 else torch.ones_like(step.ended[row])
            slots = (whole & (step.log_prob[row] > -inf)).nonzero()[:, 0].tolist()
            found += [self._hypothesis(row, place, slot) for slot in slots]
        return sorted(found, key=lambda each: -each.score)

    def best(self, row: int = 0) -> Hypothesis:
        """The continuation of best score."""
        return self.hypotheses(row)[0]

    def tree(self, row: int = 0) -> list[Node]:
        """The beginnings kept, parents before children."""
        return kept_tree(self.steps, row)

    def _hypothesis(self, row: int, place: int, slot: int) -> Hypothesis:
        log_prob, ended = float(self.steps[place].log_prob[row, slot]), bool(self.steps[place].ended[row, slot])
        tokens: list[int] = []
        for step in reversed(self.steps[: place + 1]):
            tokens.append(int(step.token[row, slot]))
            slot = int(step.parent[row, slot])
        return Hypothesis(tuple(reversed(tokens)), log_prob, log_prob / len(tokens) ** self.penalty, ended)


@torch.no_grad()
def beam_search(
    reader: Reader,
    prompt: Int[Tensor, "batch time"],
    *,
    width: int,
    length: int,
    stop: int | None = None,
    penalty: float = 0.0,
) -> Search:
    """The likeliest continuations by at most `length` tokens, for every prompt at once (book sec. 9.3).

        score = log P(x_1 … x_L | prompt) / L^α,   α = `penalty`

    A beginning that ends in `stop` leaves the beam and is kept apart. Width 1 is greedy decoding, V^{length−1} tries
    everything. The search ends when no open beginning can still beat the `width` best that ended.
    """
    demand_room(reader, prompt, width=width, length=length)
    if not 0 <= penalty <= 10:  # a larger one lets L^α overflow
        raise ValueError(f"the length penalty must lie in [0, 10]; got penalty={penalty}")
    logits, state = reader.read(prompt)
    batch, vocabulary = logits.shape
    open_log_prob = logits.new_zeros(batch, 1)
    closed = logits.new_full((batch, width), -inf)  # scores of the best that ended
    steps: list[Step] = []
    for place in range(1, length + 1):
        total = open_log_prob[:, :, None] + logits.log_softmax(1).view(batch, -1, vocabulary)
        log_prob, parent, token = best_extensions(total, width)
        ended = (token == stop) & (log_prob > -inf) if stop is not None else torch.zeros_like(token, dtype=torch.bool)
        steps.append(Step(parent, token, log_prob, log_prob, ended).cpu())
        closed = torch.cat([closed, torch.where(ended, log_prob / place**penalty, -inf)], 1).topk(width).values
        open_log_prob = log_prob.masked_fill(ended, -inf)
        hope = open_log_prob.max(1).values / length**penalty  # no extension scores higher
        if place == length or bool((hope <= closed[:, -1]).all()):
            break
        logits, state = reader.read(token.view(-1, 1), state.rows(slots(parent, total.shape[1])))
    return Search(tuple(steps), penalty)


def kept_tree(steps: Sequence[Step], row: int = 0) -> list[Node]:
    """All beginnings that were kept for a prompt, parents before children; those of the first step have no parent."""
    nodes: list[Node] = []
    above: dict[int, int] = {}
    for place, step in enumerate(steps):
        here: dict[int, int] = {}
        for slot in (step.log_prob[row] > -inf).nonzero()[:, 0].tolist():
            parent = above.get(int(step.parent[row, slot]))
            if parent is not None and nodes[parent].ended:  # it only waits
                here[slot] = parent
                continue
            here[slot] = len(nodes)
            numbers = float(step.log_prob[row, slot]), float(step.rank[row, slot]), bool(step.ended[row, slot])
            nodes.append(Node(place, parent, int(step.token[row, slot]), *numbers))
        above = here
    return nodes


def best_extensions(rank: Float[Tensor, "batch open vocabulary"], width: int) -> tuple[Tensor, Tensor, Tensor]:
    """The `width` extensions of highest rank, fewer if there are fewer: their rank, parent and token."""
    flat = rank.flatten(1)
    best = flat.topk(min(width, flat.shape[1]))
    return best.values, best.indices // rank.shape[2], best.indices % rank.shape[2]


def slots(parent: Int[Tensor, "batch width"], places: int) -> Int[Tensor, " rows"]:
    """The rows of a state that has `places` of them for each prompt, one for each parent."""
    return (torch.arange(len(parent), device=parent.device)[:, None] * places + parent).flatten()


def demand_room(reader: Reader, prompt: Int[Tensor, "batch time"], *, width: int, length: int) -> None:
    """A search needs a prompt, a width, a length, and a window that holds them."""
    if prompt.shape[1] == 0:
        raise ValueError("a prompt needs at least one token to read on from; got none")
    if width < 1 or length < 1:
        raise ValueError(f"width and length must be at least 1; got width={width}, length={length}")
    if reader.window is not None and prompt.shape[1] + length - 1 > reader.window:
        raise ValueError(
            f"the window holds {reader.window} tokens, too few for a prompt of {prompt.shape[1]} and {length} more"
        )
