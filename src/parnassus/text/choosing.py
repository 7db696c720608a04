"""Choosing the next token from its logits: the likeliest, or a draw from a law that was cooled or cut (book sec. 9.2).

`cooled`, `likeliest` and `nucleus` turn logits into logits, so they can follow one another; cut tokens have −∞.
"""

from collections.abc import Callable
from math import inf, isfinite
from typing import TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor

Choose: TypeAlias = Callable[[Tensor], Tensor]
"""From the logits (batch, vocabulary) of the next token to a token for each row."""


def greedy(logits: Float[Tensor, "*batch vocabulary"]) -> Int[Tensor, "*batch"]:
    """argmax_i p_i, of equal ones the first (book sec. 9.3)."""
    return logits.argmax(-1)


def cooled(logits: Float[Tensor, "*batch vocabulary"], temperature: float) -> Float[Tensor, "*batch vocabulary"]:
    """Logits of p_i^{1/T} / Σ_j p_j^{1/T}: T → 0 takes the best, T → ∞ makes all equal (book sec. 9.2)."""
    if not (temperature > 0 and isfinite(temperature)):
        raise ValueError(f"the temperature must be positive and finite; got temperature={temperature}")
    return logits / temperature


def likeliest(logits: Float[Tensor, "*batch vocabulary"], count: int) -> Float[Tensor, "*batch vocabulary"]:
    """Only the `count` likeliest tokens, exactly so many: of equal ones the first (Fan et al. 2018)."""
    if count < 1:
        raise ValueError(f"at least one token must be left (top-k); got {count}")
    ranked = logits.argsort(dim=-1, descending=True, stable=True)
    return logits.scatter(-1, ranked[..., count:], -inf)


def nucleus(logits: Float[Tensor, "*batch vocabulary"], mass: float) -> Float[Tensor, "*batch vocabulary"]:
    """The fewest likeliest tokens that together have at least the probability `mass` (Holtzman et al. 2020)."""
    if not 0 < mass <= 1:
        raise ValueError(f"a nucleus (top-p) has a probability above 0 and not above 1; got {mass}")
    if mass == 1:
        return logits
    probabilities, ranked = logits.softmax(-1).sort(dim=-1, descending=True, stable=True)
    before = probabilities.cumsum(-1) - probabilities  # what those ahead already have
    left_out = before >= mass
    left_out[..., 0] = False
    return logits.masked_fill(torch.zeros_like(left_out).scatter(-1, ranked, left_out), -inf)


def draw(logits: Float[Tensor, "*batch vocabulary"], generator: torch.Generator | None = None) -> Int[Tensor, "*batch"]:
    """A token from softmax(logits) for each row."""
    rows = logits.softmax(-1).reshape(-1, logits.shape[-1])
    return torch.multinomial(rows, 1, generator=generator).view(logits.shape[:-1])


def chooser(
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
) -> Choose:
    """A draw after cooling, among the `top_k` likeliest, of those the nucleus of `top_p`; temperature 0 is greedy."""
    law = cut_law(temperature=temperature or 1.0, top_k=top_k, top_p=top_p)
    law(torch.zeros(1, 2))  # a bad setting should be told now, not at the first token
    if temperature == 0:
        return greedy
    return lambda logits: draw(law(logits), generator)


def cut_law(
    *, temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None
) -> Callable[[Tensor], Tensor]:
    """From logits to the logits that a `chooser` draws from."""

    def law(logits: Tensor) -> Tensor:
        logits = cooled(logits, temperature)
        if top_k is not None:
            logits = likeliest(logits, top_k)
        return logits if top_p is None else nucleus(logits, top_p)

    return law
