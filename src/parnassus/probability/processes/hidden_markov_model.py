"""Hidden Markov models, and a lumped chain whose observations are not Markov (Diehl sec. 5.1)."""

from dataclasses import dataclass
from fractions import Fraction

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.arrays import accepts_arrays
from parnassus.errors import check_indices
from parnassus.probability.distributions.simplex import check_distribution
from parnassus.probability.processes.markov_chain import MarkovChain

LUMPED_CHAIN = {
    1: {3: Fraction(1, 2), 5: Fraction(1, 2)},
    2: {1: Fraction(1)},
    3: {2: Fraction(1)},
    4: {state: Fraction(1, 5) for state in range(1, 6)},
    5: {4: Fraction(1)},
}
"""Transitions of a five-state chain that is not lumpable (Diehl ex. 5.10, printed transposed and for "n = 2")."""

LUMPING = {1: 1, 2: 1, 3: 1, 4: 2, 5: 2}
"""The observation map f of that example: it merges the states 1, 2, 3 and the states 4, 5."""


@dataclass(frozen=True)
class HiddenMarkovModel:
    """A hidden chain X_n and observed symbols Y_n, each drawn given the current state (Diehl ex. 5.10).

        P[Y_n = k | X_n = i] = B_ik
        α_n(i) = P[Y_0 = y_0, …, Y_n = y_n, X_n = i]
        α_0 = ν ∘ B_{·y_0},   α_{n+1} = (α_n A) ∘ B_{·y_{n+1}},   P[y_0, …, y_N] = Σ_i α_N(i)

    B is `emission`; Y_n = f(X_n) is the case of one-hot rows. States and symbols are numbered from 0.
    """

    chain: MarkovChain
    emission: Float[Tensor, "states symbols"]

    def __post_init__(self) -> None:
        check_distribution(self.emission, "emission")
        if len(self.emission) != len(self.chain.start):
            raise ValueError(
                f"emission must have one row per state; got {len(self.emission)} rows, {len(self.chain.start)} states"
            )

    def sample(
        self, count: int, *, steps: int, generator: torch.Generator | None = None
    ) -> tuple[Int[Tensor, "count time"], Int[Tensor, "count time"]]:
        """Sample paths of hidden states and of observed symbols."""
        hidden = self.chain.sample(count, steps=steps, generator=generator)
        observations = torch.multinomial(self.emission[hidden.flatten()], 1, generator=generator)
        return hidden, observations.reshape(hidden.shape)

    def filter_states(
        self, observations: Int[Tensor, "count time"]
    ) -> tuple[Float[Tensor, "count time states"], Float[Tensor, "count time"]]:
        """P[X_n | y_0, …, y_n] and log P[y_n | y_0, …, y_{n−1}] for every time n, by the forward algorithm.

        α is normalised at every step, so that long paths do not underflow.
        """
        self._check_symbols(observations)
        predicted = self.chain.start.expand(len(observations), -1)
        posteriors, log_evidences = [], []
        for symbol in observations.T:
            joint = predicted * self.emission.T[symbol]
            evidence = joint.sum(1, keepdim=True)
            posteriors.append(joint / evidence.clamp(min=torch.finfo(joint.dtype).tiny))  # 0, not NaN, if impossible
            log_evidences.append(evidence[:, 0].log())
            predicted = posteriors[-1] @ self.chain.transition
        return torch.stack(posteriors, 1), torch.stack(log_evidences, 1)

    @accepts_arrays
    def log_prob(self, observations: Int[Tensor, "count time"]) -> Float[Tensor, " count"]:
        """The log-likelihood log P[y_0, …, y_N] by the forward algorithm; −∞ if impossible."""
        return self.filter_states(observations)[1].sum(1)

    @accepts_arrays
    def predict(self, observations: Int[Tensor, "count time"]) -> Float[Tensor, "count symbols"]:
        """P[Y_{N+1} = · | y_0, …, y_N], the distribution of the next symbol."""
        posteriors, log_evidences = self.filter_states(observations)
        if not bool(log_evidences.isfinite().all()):
            raise ValueError("observations must have positive probability; some path has probability 0")
        return posteriors[:, -1] @ self.chain.transition @ self.emission

    def _check_symbols(self, observations: Tensor) -> None:
        if observations.numel() == 0:
            raise ValueError(f"observations must not be empty; got shape {tuple(observations.shape)}")
        check_indices(self.emission.shape[1], symbols=observations)


def lumped_chain(start: Float[Tensor, " 5"]) -> HiddenMarkovModel:
    """The example as tensors, with states 0 … 4 and symbols 0, 1 for the notes' 1 … 5 and 1, 2 (Diehl ex. 5.10)."""
    transition, emission = start.new_zeros(5, 5), start.new_zeros(5, 2)
    for state, row in LUMPED_CHAIN.items():
        emission[state - 1, LUMPING[state] - 1] = 1.0
        for following, probability in row.items():
            transition[state - 1, following - 1] = float(probability)
    return HiddenMarkovModel(MarkovChain(start, transition), emission)
