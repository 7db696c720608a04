"""N-grams: the next token by what followed the same few tokens before (Zhao sec. 9)."""

from dataclasses import dataclass
from math import log

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.text.reading import State


@dataclass(frozen=True)
class LastTokens:
    """What an n-gram model remembers: the last few tokens of each row. A `State`."""

    tokens: Int[Tensor, "batch seen"]

    def rows(self, index: Int[Tensor, " kept"]) -> "LastTokens":
        return LastTokens(self.tokens[index])


@dataclass(frozen=True)
class NGrams:
    """p(x | c) = (n(c, x) + ε p_lower(x)) / (n(c) + ε), with c the `order` − 1 tokens before x (Zhao sec. 9).

    n(c, x) counts how often x followed c, and n(c) = Σ_x n(c, x): only places that have a successor count, else the
    rows would not sum to one. `lower` is the model that the counts are mixed with: None is the uniform law, and then
    ε = k · vocabulary adds k to every count. A context that was never seen, or is too short, leaves all to `lower`.
    A `Reader`: it has no window, and remembers order − 1 tokens.
    """

    order: int
    vocabulary: int
    smoothing: float
    contexts: Int[Tensor, " contexts"]
    """Sorted; tokens c_1 … c_{n−1} as the number Σ_i c_i Vⁿ⁻¹⁻ⁱ."""
    totals: Float[Tensor, " contexts"]
    grams: Int[Tensor, " grams"]
    """Sorted; context and next token as the number c V + x."""
    counts: Float[Tensor, " grams"]
    lower: "NGrams | None" = None
    window: int | None = None

    @classmethod
    def fit(
        cls,
        tokens: Int[Tensor, " time"],
        order: int,
        *,
        vocabulary: int,
        smoothing: float = 1.0,
        lower: "NGrams | None" = None,
    ) -> "NGrams":
        """Count every run of `order` tokens; `smoothing` is ε."""
        if order < 1 or len(tokens) < order:
            raise ValueError(f"the order must lie between 1 and the number of tokens, {len(tokens)}; got order={order}")
        if not smoothing >= 0:
            raise ValueError(f"the smoothing must not be negative; got smoothing={smoothing}")
        if int(tokens.min()) < 0 or int(tokens.max()) >= vocabulary:
            raise ValueError(f"tokens must lie between 0 and {vocabulary - 1}; got {tokens.min()} to {tokens.max()}")
        if order * log(vocabulary) > 63 * log(2):
            raise ValueError(f"vocabulary^order must stay below 2⁶³; got {vocabulary}^{order}")
        if lower is not None and (lower.order >= order or lower.vocabulary != vocabulary):
            raise ValueError(
                f"the lower model must have a lower order than {order} and {vocabulary} tokens; "
                f"got order {lower.order} and {lower.vocabulary}"
            )
        keys = _numbers(tokens.unfold(0, order, 1), vocabulary)
        grams, counts = keys.unique(return_counts=True)
        contexts, totals = (keys // vocabulary).unique(return_counts=True)
        return cls(order, vocabulary, smoothing, contexts, totals.double(), grams, counts.double(), lower)

    @classmethod
    def backed_off(
        cls, tokens: Int[Tensor, " time"], order: int, *, vocabulary: int, smoothing: float = 1.0
    ) -> "NGrams":
        """Each order smoothed by the next lower one, down to single tokens and the uniform law."""
        lower = None
        for size in range(1, order + 1):
            lower = cls.fit(tokens, size, vocabulary=vocabulary, smoothing=smoothing, lower=lower)
        if lower is None:
            raise ValueError(f"the order must be at least 1; got order={order}")
        return lower

    def distribution(self, context: Int[Tensor, "batch seen"]) -> Float[Tensor, "batch vocabulary"]:
        """p(· | context) for each row; only the last order − 1 tokens matter."""
        prior = self._prior(context)
        if context.shape[1] < self.order - 1:
            return prior
        key = _numbers(context[:, context.shape[1] - self.order + 1 :], self.vocabulary)
        counts = torch.zeros_like(prior)
        first = torch.searchsorted(self.grams, key * self.vocabulary)
        last = torch.searchsorted(self.grams, (key + 1) * self.vocabulary)
        row = torch.arange(len(key), device=key.device).repeat_interleave(last - first)
        place = torch.arange(len(row), device=key.device) + (first - (last - first).cumsum(0) + last - first)[row]
        counts[row, self.grams[place] % self.vocabulary] = self.counts[place]
        return self._mixed(counts, counts.sum(1, keepdim=True), prior)

    def read(
        self, tokens: Int[Tensor, "batch time"], state: State | None = None
    ) -> tuple[Float[Tensor, "batch vocabulary"], LastTokens]:
        """Log-probabilities of the token after these."""
        if state is not None and not isinstance(state, LastTokens):
            raise TypeError(f"n-grams read on from LastTokens; got {type(state).__name__}")
        seen = tokens if state is None else torch.cat([state.tokens, tokens], 1)
        kept = seen[:, max(0, seen.shape[1] - self.order + 1) :]
        return self.distribution(kept).log(), LastTokens(kept)

    def token_log_probs(self, tokens: Int[Tensor, "batch time"]) -> Float[Tensor, "batch time"]:
        """The log p(x_t | x_{t−n+1} … x_{t−1}) for every token, the first included."""
        batch, time = tokens.shape
        short = [self._chance(tokens[:, :place], tokens[:, place]) for place in range(min(self.order - 1, time))]
        chances = [chance[:, None] for chance in short]
        if time >= self.order:
            runs = tokens.unfold(1, self.order, 1).flatten(0, 1)
            chances.append(self._chance(runs[:, :-1], runs[:, -1]).view(batch, -1))
        return torch.cat(chances, 1).log()

    def log_prob(self, tokens: Int[Tensor, "batch time"]) -> Float[Tensor, " batch"]:
        """The log p(x_1 … x_T) for each row."""
        return self.token_log_probs(tokens).sum(1)

    def perplexity(self, tokens: Int[Tensor, " time"]) -> Float[Tensor, ""]:
        """The exp of the mean of −log p a token (Zhao sec. 9)."""
        return perplexity(self.token_log_probs(tokens[None])[0])

    def _chance(self, context: Tensor, token: Tensor) -> Tensor:
        """p(token | context) for each row, without the rest of the row."""
        if self.lower is None:
            prior = torch.full((len(token),), 1 / self.vocabulary, dtype=self.counts.dtype, device=token.device)
        else:
            prior = self.lower._chance(context, token)
        if context.shape[1] < self.order - 1:
            return prior
        key = _numbers(context[:, context.shape[1] - self.order + 1 :], self.vocabulary)
        count = _looked_up(self.grams, self.counts, key * self.vocabulary + token)
        return self._mixed(count, _looked_up(self.contexts, self.totals, key), prior)

    def _prior(self, context: Tensor) -> Tensor:
        if self.lower is None:
            shape = len(context), self.vocabulary
            return torch.full(shape, 1 / self.vocabulary, dtype=self.counts.dtype, device=context.device)
        return self.lower.distribution(context)

    def _mixed(self, count: Tensor, total: Tensor, prior: Tensor) -> Tensor:
        weight = total + self.smoothing
        return torch.where(weight > 0, (count + self.smoothing * prior) / weight.clamp(min=1e-300), prior)


def perplexity(log_probs: Float[Tensor, " time"]) -> Float[Tensor, ""]:
    """exp(−(1/n) Σ_t log p(x_t | x_1 … x_{t−1})): the number of equally likely tokens it is as unsure as (Zhao sec. 9).

    1 for a model that knows, m for the uniform law over m tokens, ∞ after one impossible token.
    """
    if len(log_probs) == 0:
        raise ValueError("the perplexity of nothing is not defined; got no tokens")
    return (-log_probs.mean()).exp()


def _numbers(tokens: Tensor, vocabulary: int) -> Tensor:
    """Each row of tokens as one whole number in base `vocabulary`."""
    number = torch.zeros(tokens.shape[:-1], dtype=torch.int64, device=tokens.device)
    for column in tokens.unbind(-1):
        number = number * vocabulary + column
    return number


def _looked_up(keys: Tensor, values: Tensor, wanted: Tensor) -> Tensor:
    """The value of each wanted key, zero for a key that is not there."""
    place = torch.searchsorted(keys, wanted).clamp(max=len(keys) - 1)
    return torch.where(keys[place] == wanted, values[place], 0)
