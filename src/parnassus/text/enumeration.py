"""All continuations of a prompt with their probabilities: the exact answer for small cases (book sec. 9.3)."""

from dataclasses import dataclass
from itertools import permutations
from math import log

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.text.reading import Reader

LARGEST = 200_000
"""How many continuations are still tried one by one."""


@dataclass(frozen=True)
class Continuations:
    """Every continuation and its log-probability; one that ends early goes on with `stop`."""

    tokens: Int[Tensor, "count length"]
    log_probs: Float[Tensor, " count"]
    stop: int | None = None

    @property
    def lengths(self) -> Int[Tensor, " count"]:
        """How many tokens each has, its `stop` included."""
        if self.stop is None:
            return torch.full_like(self.tokens[:, 0], self.tokens.shape[1])
        before = (self.tokens == self.stop).cumsum(1) - (self.tokens == self.stop).long()  # stops before this place
        return (before == 0).sum(1)

    def scores(self, penalty: float = 0.0) -> Float[Tensor, " count"]:
        """The score log P / L^α with α = `penalty`."""
        return self.log_probs / self.lengths.to(self.log_probs) ** penalty

    def best(self, penalty: float = 0.0) -> Int[Tensor, " length"]:
        """The argmax over w_n … w_{n+k−1} of P(w_n … w_{n+k−1} | w_1 … w_{n−1})  (book eq. 9.9)."""
        return self.tokens[self.scores(penalty).argmax()]


@torch.no_grad()
def every_continuation(
    reader: Reader, prompt: Int[Tensor, " time"], *, length: int, stop: int | None = None
) -> Continuations:
    """All V^length continuations by `length` tokens; those that reach `stop` before end there."""
    if length < 1:
        raise ValueError(f"a continuation has at least one token; got length={length}")
    logits, state = reader.read(prompt[None])
    vocabulary = logits.shape[1]
    if length * log(vocabulary) > log(LARGEST):
        raise ValueError(f"{vocabulary}^{length} continuations are too many to try; at most {LARGEST:,} are tried")
    tokens = prompt[None, :0]
    log_probs = logits.new_zeros(1)
    closed: list[tuple[Tensor, Tensor]] = []
    for place in range(length):
        each = torch.arange(len(tokens), device=tokens.device).repeat_interleave(vocabulary)
        chosen = torch.arange(vocabulary, device=tokens.device).repeat(len(tokens))
        tokens = torch.cat([tokens[each], chosen[:, None]], 1)
        log_probs = log_probs[each] + logits.log_softmax(1).flatten()
        if stop is not None:
            ended = chosen == stop
            closed.append(
                (torch.nn.functional.pad(tokens[ended], (0, length - place - 1), value=stop), log_probs[ended])
            )
            tokens, log_probs, each = tokens[~ended], log_probs[~ended], each[~ended]
        if place < length - 1:
            logits, state = reader.read(tokens[:, -1:], state.rows(each))
    closed.append((tokens, log_probs))
    return Continuations(torch.cat([part for part, _ in closed]), torch.cat([part for _, part in closed]), stop)


def draws_without_replacement(probabilities: Float[Tensor, " count"], draws: int) -> dict[tuple[int, ...], float]:
    """P(i_1, …, i_k) = Π_j p_{i_j} / (1 − Σ_{l<j} p_{i_l}): the law of k draws when none is put back."""
    p = probabilities.tolist()
    if not 1 <= draws <= len(p):
        raise ValueError(f"draws must lie between 1 and the number of things, {len(p)}; got draws={draws}")
    law = {}
    for order in permutations(range(len(p)), draws):
        chance, left = 1.0, sum(p)
        for index in order:
            chance *= p[index] / left
            left -= p[index]
        law[order] = chance
    return law


def inclusion_probabilities(probabilities: Float[Tensor, " count"], draws: int) -> Float[Tensor, " count"]:
    """How likely each is among k draws when none is put back."""
    included = torch.zeros_like(probabilities)
    for order, chance in draws_without_replacement(probabilities, draws).items():
        included[list(order)] += chance
    return included
