"""Hidden Markov models: a chain seen through a blur, and why what is seen is no Markov chain (Diehl sec. 5.1)."""

from dataclasses import dataclass
from fractions import Fraction

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.probability.markov_chains import MarkovChain
from parnassus.probability.simplex import require_distribution

BLURRED_CHAIN = {
    1: {3: Fraction(1, 2), 5: Fraction(1, 2)},
    2: {1: Fraction(1)},
    3: {2: Fraction(1)},
    4: {state: Fraction(1, 5) for state in range(1, 6)},
    5: {4: Fraction(1)},
}
"""The five-state chain whose blur remembers, by its moves (Diehl ex. 5.10; printed as columns, and for "n = 2")."""

BLUR = {1: 1, 2: 1, 3: 1, 4: 2, 5: 2}
"""f of that example: 1, 2 and 3 look alike, and so do 4 and 5."""


@dataclass(frozen=True)
class HiddenMarkov:
    """A chain X_n of which only symbols are seen, each drawn given the present state alone (Diehl ex. 5.10).

        P[Y_n = k | X_n = i] = B_ik
        α_n(i) = P[Y_0 = y_0, …, Y_n = y_n, X_n = i]
        α_0 = ν ∘ B_{·y_0},   α_{n+1} = (α_n A) ∘ B_{·y_{n+1}},   P[y_0, …, y_N] = Σ_i α_N(i)

    B is `emission`; Y_n = f(X_n) is the case of rows with a single one. States and symbols count from 0.
    """

    chain: MarkovChain
    emission: Float[Tensor, "states symbols"]

    def __post_init__(self) -> None:
        require_distribution(self.emission, "emission")
        if len(self.emission) != len(self.chain.start):
            raise ValueError(
                f"need a row of symbols for every state; got {len(self.emission)} rows, {len(self.chain.start)} states"
            )

    def sample(
        self, count: int, *, steps: int, generator: torch.Generator | None = None
    ) -> tuple[Int[Tensor, "count time"], Int[Tensor, "count time"]]:
        """Paths of hidden states and what is seen of them."""
        hidden = self.chain.sample(count, steps=steps, generator=generator)
        seen = torch.multinomial(self.emission[hidden.flatten()], 1, generator=generator)
        return hidden, seen.reshape(hidden.shape)

    def filtered(
        self, seen: Int[Tensor, "count time"]
    ) -> tuple[Float[Tensor, "count time states"], Float[Tensor, "count time"]]:
        """P[X_n | y_0, …, y_n] and log P[y_n | y_0, …, y_{n−1}] for every moment n, by the forward recursion.

        α is scaled to sum to one at every step, so that long paths do not underflow.
        """
        self._require_seen(seen)
        before = self.chain.start.expand(len(seen), -1)
        beliefs, surprises = [], []
        for symbol in seen.T:
            joint = before * self.emission.T[symbol]
            evidence = joint.sum(1, keepdim=True)
            beliefs.append(joint / evidence.clamp(min=torch.finfo(joint.dtype).tiny))  # 0, not NaN, where impossible
            surprises.append(evidence[:, 0].log())
            before = beliefs[-1] @ self.chain.transition
        return torch.stack(beliefs, 1), torch.stack(surprises, 1)

    def log_prob(self, seen: Int[Tensor, "count time"]) -> Float[Tensor, " count"]:
        """The logarithm of P[y_0, …, y_N], a sum over all hidden paths, by the forward algorithm; −∞ if impossible."""
        return self.filtered(seen)[1].sum(1)

    def predict(self, seen: Int[Tensor, "count time"]) -> Float[Tensor, "count symbols"]:
        """P[Y_{N+1} = · | y_0, …, y_N]: what is seen next, given everything seen."""
        beliefs, surprises = self.filtered(seen)
        if not bool(surprises.isfinite().all()):
            raise ValueError("nothing follows from what cannot happen: a path that was given has probability 0")
        return beliefs[:, -1] @ self.chain.transition @ self.emission

    def _require_seen(self, seen: Tensor) -> None:
        symbols = self.emission.shape[1]
        if seen.numel() == 0 or not (int(seen.min()) >= 0 and int(seen.max()) < symbols):
            raise ValueError(f"need symbols from 0 to {symbols - 1} at one moment or more; got {seen.tolist()}")


def blurred_chain(start: Float[Tensor, " 5"]) -> HiddenMarkov:
    """The example as tensors: states 0 … 4 and symbols 0, 1 for the notes' 1 … 5 and 1, 2 (Diehl ex. 5.10)."""
    transition, emission = start.new_zeros(5, 5), start.new_zeros(5, 2)
    for state, row in BLURRED_CHAIN.items():
        emission[state - 1, BLUR[state] - 1] = 1.0
        for following, share in row.items():
            transition[state - 1, following - 1] = float(share)
    return HiddenMarkov(MarkovChain(start, transition), emission)
