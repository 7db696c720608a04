"""Selection of the next token from its logits: greedy, temperature, top-k and top-p (nucleus) sampling (book sec. 9.2).

`apply_temperature`, `keep_top_k` and `keep_top_p` map logits to logits, so they compose; removed tokens get −∞.
"""

from collections.abc import Callable
from math import inf, isfinite
from typing import TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.errors import check_at_least_one

TokenSampler: TypeAlias = Callable[[Tensor], Tensor]
"""From the logits (batch, vocabulary) of the next token to one token for each row."""


def greedy(logits: Float[Tensor, "*batch vocabulary"]) -> Int[Tensor, "*batch"]:
    """argmax_i p_i; ties go to the smallest index (book sec. 9.3)."""
    return logits.argmax(-1)


def apply_temperature(
    logits: Float[Tensor, "*batch vocabulary"], temperature: float
) -> Float[Tensor, "*batch vocabulary"]:
    """Logits of p_i^{1/T} / Σ_j p_j^{1/T}: T → 0 is greedy, T → ∞ is uniform (book sec. 9.2)."""
    if not (temperature > 0 and isfinite(temperature)):
        raise ValueError(f"temperature must be positive and finite; got temperature={temperature}")
    return logits / temperature


def keep_top_k(logits: Float[Tensor, "*batch vocabulary"], top_k: int) -> Float[Tensor, "*batch vocabulary"]:
    """Top-k filtering: keep the k most likely tokens; ties go to the smallest index (Fan et al. 2018)."""
    check_at_least_one(top_k=top_k)
    ranked = logits.argsort(dim=-1, descending=True, stable=True)
    return logits.scatter(-1, ranked[..., top_k:], -inf)


def keep_top_p(logits: Float[Tensor, "*batch vocabulary"], top_p: float) -> Float[Tensor, "*batch vocabulary"]:
    """Top-p (nucleus) filtering: keep the smallest set of tokens with total probability ≥ p (Holtzman et al. 2020)."""
    if not 0 < top_p <= 1:
        raise ValueError(f"top_p must lie in (0, 1]; got top_p={top_p}")
    if top_p == 1:
        return logits
    probabilities, ranked = logits.softmax(-1).sort(dim=-1, descending=True, stable=True)
    preceding = probabilities.cumsum(-1) - probabilities
    removed = preceding >= top_p
    removed[..., 0] = False
    return logits.masked_fill(torch.zeros_like(removed).scatter(-1, ranked, removed), -inf)


def sample_tokens(
    logits: Float[Tensor, "*batch vocabulary"], generator: torch.Generator | None = None
) -> Int[Tensor, "*batch"]:
    """Sample one token from softmax(logits) for each row."""
    rows = logits.softmax(-1).reshape(-1, logits.shape[-1])
    return torch.multinomial(rows, 1, generator=generator).view(logits.shape[:-1])


def token_sampler(
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
) -> TokenSampler:
    """Sampling with temperature, then top-k, then top-p (nucleus) filtering; temperature 0 is greedy."""
    process = logits_processor(temperature=temperature or 1.0, top_k=top_k, top_p=top_p)
    process(torch.zeros(1, 2))  # invalid settings raise here, not at the first token
    if temperature == 0:
        return greedy
    return lambda logits: sample_tokens(process(logits), generator)


def skip_special_tokens(sampler: TokenSampler, count: int) -> TokenSampler:
    """A sampler that never selects the first `count` tokens, such as padding, start and mask."""
    return lambda logits: count + sampler(logits[..., count:])


def logits_processor(
    *, temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None
) -> Callable[[Tensor], Tensor]:
    """The map from a model's logits to those that `token_sampler` samples from."""

    def process(logits: Tensor) -> Tensor:
        logits = apply_temperature(logits, temperature)
        if top_k is not None:
            logits = keep_top_k(logits, top_k)
        return logits if top_p is None else keep_top_p(logits, top_p)

    return process
