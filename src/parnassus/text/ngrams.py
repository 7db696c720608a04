"""N-gram language models with interpolated smoothing, and perplexity (Zhao sec. 9)."""

from dataclasses import dataclass
from math import log

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.arrays import accepts_arrays
from parnassus.errors import check_indices, check_non_negative
from parnassus.text.autoregressive_model import State


@dataclass(frozen=True)
class NGramState:
    """The last order − 1 tokens of each row. A `State`."""

    tokens: Int[Tensor, "batch context"]

    def rows(self, index: Int[Tensor, " kept"]) -> "NGramState":
        return NGramState(self.tokens[index])


@dataclass(frozen=True)
class NGramModel:
    """p(x | c) = (n(c, x) + ε p_lower(x)) / (n(c) + ε), with c the `order` − 1 tokens before x (Zhao sec. 9).

    n(c, x) counts how often x followed c, and n(c) = Σ_x n(c, x) counts only occurrences with a successor, so that
    rows sum to one. `lower` is the model of lower order that the counts are interpolated with; None is the uniform
    distribution, and then ε = k · vocabulary is add-k smoothing. Unseen or shorter contexts use `lower` alone.
    An `AutoregressiveModel`: its window is unlimited, its state holds order − 1 tokens.
    """

    order: int
    vocabulary: int
    smoothing: float
    contexts: Int[Tensor, " contexts"]
    """Sorted keys Σ_i c_i Vⁿ⁻¹⁻ⁱ of the contexts c_1 … c_{n−1}."""
    totals: Float[Tensor, " contexts"]
    grams: Int[Tensor, " grams"]
    """Sorted keys c V + x of context and next token."""
    counts: Float[Tensor, " grams"]
    lower: "NGramModel | None" = None
    window: int | None = None

    @classmethod
    @accepts_arrays
    def fit(
        cls,
        tokens: Int[Tensor, " time"],
        order: int,
        *,
        vocabulary: int,
        smoothing: float = 1.0,
        lower: "NGramModel | None" = None,
    ) -> "NGramModel":
        """Count all n-grams of this order; `smoothing` is ε."""
        if order < 1 or len(tokens) < order:
            raise ValueError(f"order must lie between 1 and the number of tokens, {len(tokens)}; got order={order}")
        check_non_negative(smoothing=smoothing)
        check_indices(vocabulary, tokens=tokens)
        if order * log(vocabulary) > 63 * log(2):
            raise ValueError(f"vocabulary^order must be below 2⁶³; got {vocabulary}^{order}")
        if lower is not None and (lower.order >= order or lower.vocabulary != vocabulary):
            raise ValueError(
                f"lower must have an order below {order} and a vocabulary of {vocabulary}; "
                f"got order={lower.order}, vocabulary={lower.vocabulary}"
            )
        keys = _context_keys(tokens.unfold(0, order, 1), vocabulary)
        grams, counts = keys.unique(return_counts=True)
        contexts, totals = (keys // vocabulary).unique(return_counts=True)
        return cls(order, vocabulary, smoothing, contexts, totals.double(), grams, counts.double(), lower)

    @classmethod
    @accepts_arrays
    def fit_interpolated(
        cls, tokens: Int[Tensor, " time"], order: int, *, vocabulary: int, smoothing: float = 1.0
    ) -> "NGramModel":
        """Each order smoothed by the next lower one, down to unigrams and the uniform distribution."""
        lower = None
        for size in range(1, order + 1):
            lower = cls.fit(tokens, size, vocabulary=vocabulary, smoothing=smoothing, lower=lower)
        if lower is None:
            raise ValueError(f"order must be at least 1; got order={order}")
        return lower

    def distribution(self, context: Int[Tensor, "batch context"]) -> Float[Tensor, "batch vocabulary"]:
        """p(· | context) for each row; only the last order − 1 tokens matter."""
        prior = self._lower_distribution(context)
        if context.shape[1] < self.order - 1:
            return prior
        key = self._key(context)
        counts = torch.zeros_like(prior)
        first = torch.searchsorted(self.grams, key * self.vocabulary)
        last = torch.searchsorted(self.grams, (key + 1) * self.vocabulary)
        row = torch.arange(len(key), device=key.device).repeat_interleave(last - first)
        position = torch.arange(len(row), device=key.device) + (first - (last - first).cumsum(0) + last - first)[row]
        counts[row, self.grams[position] % self.vocabulary] = self.counts[position]
        return self._interpolate(counts, counts.sum(1, keepdim=True), prior)

    def read(
        self, tokens: Int[Tensor, "batch time"], state: State | None = None
    ) -> tuple[Float[Tensor, "batch vocabulary"], NGramState]:
        """Log-probabilities of the next token."""
        if state is not None and not isinstance(state, NGramState):
            raise TypeError(f"state must be an NGramState; got {type(state).__name__}")
        context = tokens if state is None else torch.cat([state.tokens, tokens], 1)
        recent = context[:, max(0, context.shape[1] - self.order + 1) :]
        return self.distribution(recent).log(), NGramState(recent)

    def token_log_probs(self, tokens: Int[Tensor, "batch time"]) -> Float[Tensor, "batch time"]:
        """The values log p(x_t | x_{t−n+1} … x_{t−1}) of every token, including the first."""
        batch, time = tokens.shape
        initial = [
            self._token_probability(tokens[:, :position], tokens[:, position])
            for position in range(min(self.order - 1, time))
        ]
        probabilities = [probability[:, None] for probability in initial]
        if time >= self.order:
            grams = tokens.unfold(1, self.order, 1).flatten(0, 1)
            probabilities.append(self._token_probability(grams[:, :-1], grams[:, -1]).view(batch, -1))
        return torch.cat(probabilities, 1).log()

    @accepts_arrays
    def log_prob(self, tokens: Int[Tensor, "batch time"]) -> Float[Tensor, " batch"]:
        """The log-likelihood log p(x_1 … x_T) of each row."""
        return self.token_log_probs(tokens).sum(1)

    def perplexity(self, tokens: Int[Tensor, " time"]) -> Float[Tensor, ""]:
        """The perplexity of these tokens (Zhao sec. 9)."""
        return perplexity(self.token_log_probs(tokens[None])[0])

    def _token_probability(self, context: Tensor, token: Tensor) -> Tensor:
        """p(token | context) of one token per row."""
        if self.lower is None:
            prior = torch.full((len(token),), 1 / self.vocabulary, dtype=self.counts.dtype, device=token.device)
        else:
            prior = self.lower._token_probability(context, token)
        if context.shape[1] < self.order - 1:
            return prior
        key = self._key(context)
        count = _lookup(self.grams, self.counts, key * self.vocabulary + token)
        return self._interpolate(count, _lookup(self.contexts, self.totals, key), prior)

    def _key(self, context: Tensor) -> Tensor:
        """The key of the last order − 1 tokens of each row."""
        return _context_keys(context[:, context.shape[1] - self.order + 1 :], self.vocabulary)

    def _lower_distribution(self, context: Tensor) -> Tensor:
        if self.lower is None:
            shape = len(context), self.vocabulary
            return torch.full(shape, 1 / self.vocabulary, dtype=self.counts.dtype, device=context.device)
        return self.lower.distribution(context)

    def _interpolate(self, count: Tensor, total: Tensor, prior: Tensor) -> Tensor:
        weight = total + self.smoothing
        return torch.where(weight > 0, (count + self.smoothing * prior) / weight.clamp(min=1e-300), prior)


def perplexity(log_probs: Float[Tensor, " time"]) -> Float[Tensor, ""]:
    """exp(−(1/n) Σ_t log p(x_t | x_1 … x_{t−1})), the effective number of equally likely tokens (Zhao sec. 9).

    It is 1 for certain predictions, m for a uniform distribution over m tokens, ∞ if one token has probability 0.
    """
    if len(log_probs) == 0:
        raise ValueError("perplexity needs at least one token; got none")
    return (-log_probs.mean()).exp()


def _context_keys(tokens: Tensor, vocabulary: int) -> Tensor:
    """Each row of tokens as one integer in base `vocabulary`."""
    key = torch.zeros(tokens.shape[:-1], dtype=torch.int64, device=tokens.device)
    for column in tokens.unbind(-1):
        key = key * vocabulary + column
    return key


def _lookup(keys: Tensor, values: Tensor, query: Tensor) -> Tensor:
    """The value of each query key, 0 if it is missing."""
    position = torch.searchsorted(keys, query).clamp(max=len(keys) - 1)
    return torch.where(keys[position] == query, values[position], 0)
