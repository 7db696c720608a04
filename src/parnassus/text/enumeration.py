"""Exhaustive enumeration of continuations with their probabilities, for small cases (book sec. 9.3)."""

from dataclasses import dataclass
from itertools import permutations
from math import log

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.errors import check_at_least_one
from parnassus.text.autoregressive_model import AutoregressiveModel

MAX_CONTINUATIONS = 200_000
"""Largest number of continuations that are enumerated."""


@dataclass(frozen=True)
class Continuations:
    """Every continuation and its log-probability; one that ends early is padded with `stop`.

    >>> found = Continuations(torch.tensor([[1, 2], [3, 4]]), torch.tensor([-1.0, -0.5]))
    >>> found.best()
    tensor([3, 4])
    """

    tokens: Int[Tensor, "count length"]
    log_probs: Float[Tensor, " count"]
    stop: int | None = None

    @property
    def lengths(self) -> Int[Tensor, " count"]:
        """Number of tokens of each, including its `stop`."""
        if self.stop is None:
            return torch.full_like(self.tokens[:, 0], self.tokens.shape[1])
        before = (self.tokens == self.stop).cumsum(1) - (self.tokens == self.stop).long()
        return (before == 0).sum(1)

    def scores(self, penalty: float = 0.0) -> Float[Tensor, " count"]:
        """The score log P / L^α with α = `penalty`."""
        return self.log_probs / self.lengths.to(self.log_probs) ** penalty

    def best(self, penalty: float = 0.0) -> Int[Tensor, " length"]:
        """The argmax over w_n … w_{n+k−1} of P(w_n … w_{n+k−1} | w_1 … w_{n−1})  (book eq. 9.9)."""
        return self.tokens[self.scores(penalty).argmax()]


@torch.no_grad()
def enumerate_continuations(
    model: AutoregressiveModel, prompt: Int[Tensor, " time"], *, length: int, stop: int | None = None
) -> Continuations:
    """All V^length continuations of `length` tokens; those that contain `stop` end there."""
    check_at_least_one(length=length)
    logits, state = model.read(prompt[None])
    vocabulary = logits.shape[1]
    if length * log(vocabulary) > log(MAX_CONTINUATIONS):
        raise ValueError(f"vocabulary^length must be at most {MAX_CONTINUATIONS:,}; got {vocabulary}^{length}")
    tokens = prompt[None, :0]
    log_probs = logits.new_zeros(1)
    closed: list[tuple[Tensor, Tensor]] = []
    for position in range(length):
        each = torch.arange(len(tokens), device=tokens.device).repeat_interleave(vocabulary)
        chosen = torch.arange(vocabulary, device=tokens.device).repeat(len(tokens))
        tokens = torch.cat([tokens[each], chosen[:, None]], 1)
        log_probs = log_probs[each] + logits.log_softmax(1).flatten()
        if stop is not None:
            ended = chosen == stop
            closed.append(
                (torch.nn.functional.pad(tokens[ended], (0, length - position - 1), value=stop), log_probs[ended])
            )
            tokens, log_probs, each = tokens[~ended], log_probs[~ended], each[~ended]
        if position < length - 1:
            logits, state = model.read(tokens[:, -1:], state.rows(each))
    closed.append((tokens, log_probs))
    return Continuations(torch.cat([part for part, _ in closed]), torch.cat([part for _, part in closed]), stop)


def without_replacement_probabilities(
    probabilities: Float[Tensor, " count"], num_draws: int
) -> dict[tuple[int, ...], float]:
    """P(i_1, …, i_k) = Π_j p_{i_j} / (1 − Σ_{l<j} p_{i_l}) of k ordered draws without replacement."""
    p = probabilities.tolist()
    if not 1 <= num_draws <= len(p):
        raise ValueError(f"num_draws must lie between 1 and the number of items, {len(p)}; got num_draws={num_draws}")
    distribution = {}
    for order in permutations(range(len(p)), num_draws):
        probability, remaining = 1.0, sum(p)
        for index in order:
            probability *= p[index] / remaining
            remaining -= p[index]
        distribution[order] = probability
    return distribution


def inclusion_probabilities(probabilities: Float[Tensor, " count"], num_draws: int) -> Float[Tensor, " count"]:
    """Probability that each item is among k draws without replacement."""
    included = torch.zeros_like(probabilities)
    for order, probability in without_replacement_probabilities(probabilities, num_draws).items():
        included[list(order)] += probability
    return included
