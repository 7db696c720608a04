"""Beam search: at each step keep the `width` most likely prefixes and extend them (book sec. 9.3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from parnassus.text.autoregressive_model import AutoregressiveModel


@dataclass(frozen=True)
class Hypothesis:
    """A continuation of the prompt, its log-probability, and the score by which it is ranked.

    >>> Hypothesis(tokens=(1, 2), log_prob=-1.0, score=-0.5, is_complete=True).tokens
    (1, 2)
    """

    tokens: tuple[int, ...]
    log_prob: float
    score: float
    is_complete: bool


@dataclass(frozen=True)
class BeamStep:
    """The prefixes kept at one step: parent, last token and log-probability of each.

    Slots with log-probability −∞ are empty. `rank` is the value by which prefixes were selected.
    """

    parent: Int[Tensor, "batch width"]
    token: Int[Tensor, "batch width"]
    log_prob: Float[Tensor, "batch width"]
    rank: Float[Tensor, "batch width"]
    is_complete: Bool[Tensor, "batch width"]

    def cpu(self) -> "BeamStep":
        """A copy in CPU memory."""
        return BeamStep(
            self.parent.cpu(), self.token.cpu(), self.log_prob.cpu(), self.rank.cpu(), self.is_complete.cpu()
        )


@dataclass(frozen=True)
class BeamNode:
    """A kept prefix: its step, the index of its parent, its last token, log-probability and rank.

    >>> BeamNode(step=1, parent=0, token=7, log_prob=-0.5, rank=-0.5, is_complete=False).token
    7
    """

    step: int
    parent: int | None
    token: int
    log_prob: float
    rank: float
    is_complete: bool


@dataclass(frozen=True)
class BeamSearch:
    """All prefixes that a search kept: one tree for each prompt, one level per step.

    >>> model = NGramModel.fit(torch.tensor([0, 1, 2, 0, 1, 2]), order=2, vocabulary=3, smoothing=0.1)
    >>> search = beam_search(model, torch.tensor([[0]]), width=2, length=3)
    >>> search.best().tokens
    (1, 2, 0)
    """

    steps: tuple[BeamStep, ...]
    penalty: float

    def hypotheses(self, row: int = 0) -> list[Hypothesis]:
        """All complete continuations and those still open at the last step, best score first."""
        hypotheses: list[Hypothesis] = []
        for position, step in enumerate(self.steps):
            complete = (
                step.is_complete[row] if position < len(self.steps) - 1 else torch.ones_like(step.is_complete[row])
            )
            slots = (complete & (step.log_prob[row] > -inf)).nonzero()[:, 0].tolist()
            hypotheses += [self._hypothesis(row, position, slot) for slot in slots]
        return sorted(hypotheses, key=lambda each: -each.score)

    def best(self, row: int = 0) -> Hypothesis:
        """The continuation with the best score."""
        return self.hypotheses(row)[0]

    def tree(self, row: int = 0) -> list[BeamNode]:
        """The kept prefixes, parents before children."""
        return search_tree(self.steps, row)

    def _hypothesis(self, row: int, position: int, slot: int) -> Hypothesis:
        log_prob, is_complete = (
            float(self.steps[position].log_prob[row, slot]),
            bool(self.steps[position].is_complete[row, slot]),
        )
        tokens: list[int] = []
        for step in reversed(self.steps[: position + 1]):
            tokens.append(int(step.token[row, slot]))
            slot = int(step.parent[row, slot])
        return Hypothesis(tuple(reversed(tokens)), log_prob, log_prob / len(tokens) ** self.penalty, is_complete)


@torch.no_grad()
def beam_search(
    model: AutoregressiveModel,
    prompt: Int[Tensor, "batch time"],
    *,
    width: int,
    length: int,
    stop: int | None = None,
    penalty: float = 0.0,
) -> BeamSearch:
    """The most likely continuations of up to `length` tokens, for a batch of prompts (book sec. 9.3).

        score = log P(x_1 … x_L | prompt) / L^α,   α = `penalty`

    A prefix that ends in `stop` leaves the beam. Width 1 is greedy decoding; width V^{length−1} is exhaustive search.
    The search ends when no open prefix can beat the `width` best complete ones.
    """
    check_window(model, prompt, width=width, length=length)
    if not 0 <= penalty <= 10:  # a larger one lets L^α overflow
        raise ValueError(f"penalty must lie in [0, 10]; got penalty={penalty}")
    logits, state = model.read(prompt)
    batch, vocabulary = logits.shape
    open_log_prob = logits.new_zeros(batch, 1)
    closed = logits.new_full((batch, width), -inf)  # best scores of complete continuations
    steps: list[BeamStep] = []
    for position in range(1, length + 1):
        total = open_log_prob[:, :, None] + logits.log_softmax(1).view(batch, -1, vocabulary)
        log_prob, parent, token = top_extensions(total, width)
        is_complete = (
            (token == stop) & (log_prob > -inf) if stop is not None else torch.zeros_like(token, dtype=torch.bool)
        )
        steps.append(BeamStep(parent, token, log_prob, log_prob, is_complete).cpu())
        closed = torch.cat([closed, torch.where(is_complete, log_prob / position**penalty, -inf)], 1).topk(width).values
        open_log_prob = log_prob.masked_fill(is_complete, -inf)
        bound = open_log_prob.max(1).values / length**penalty  # upper bound on the scores of extensions
        if position == length or bool((bound <= closed[:, -1]).all()):
            break
        logits, state = model.read(token.view(-1, 1), state.rows(state_rows(parent, total.shape[1])))
    return BeamSearch(tuple(steps), penalty)


def search_tree(steps: Sequence[BeamStep], row: int = 0) -> list[BeamNode]:
    """All kept prefixes of a prompt, parents before children; those of the first step have no parent."""
    nodes: list[BeamNode] = []
    previous: dict[int, int] = {}
    for position, step in enumerate(steps):
        current: dict[int, int] = {}
        for slot in (step.log_prob[row] > -inf).nonzero()[:, 0].tolist():
            parent = previous.get(int(step.parent[row, slot]))
            if parent is not None and nodes[parent].is_complete:  # padding after its end
                current[slot] = parent
                continue
            current[slot] = len(nodes)
            values = float(step.log_prob[row, slot]), float(step.rank[row, slot]), bool(step.is_complete[row, slot])
            nodes.append(BeamNode(position, parent, int(step.token[row, slot]), *values))
        previous = current
    return nodes


def top_extensions(rank: Float[Tensor, "batch open vocabulary"], width: int) -> tuple[Tensor, Tensor, Tensor]:
    """Rank, parent and token of the `width` extensions of highest rank, or of all if there are fewer."""
    flat = rank.flatten(1)
    best = flat.topk(min(width, flat.shape[1]))
    return best.values, best.indices // rank.shape[2], best.indices % rank.shape[2]


def state_rows(parent: Int[Tensor, "batch width"], beams: int) -> Int[Tensor, " rows"]:
    """Row indices of the parents in a state that holds `beams` rows for each prompt."""
    return (torch.arange(len(parent), device=parent.device)[:, None] * beams + parent).flatten()


def check_window(model: AutoregressiveModel, prompt: Int[Tensor, "batch time"], *, width: int, length: int) -> None:
    """Raise unless prompt, width and length are positive and fit into the model's window."""
    if prompt.shape[1] == 0:
        raise ValueError("a prompt must have at least one token; got none")
    if width < 1 or length < 1:
        raise ValueError(f"width and length must be at least 1; got width={width}, length={length}")
    if model.window is not None and prompt.shape[1] + length - 1 > model.window:
        raise ValueError(
            "prompt and continuation must fit into the window; "
            f"got {prompt.shape[1]} + {length} tokens, window={model.window}"
        )
