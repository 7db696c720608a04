"""Markov chains with finitely many states: an initial distribution and transition matrices (Diehl sec. 5.1).

States are numbered from 0 here, from 1 in the notes. Distributions are row vectors, with transitions on their right.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain, repeat

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.arrays import accepts_arrays
from parnassus.errors import check_indices, check_non_negative, check_positive
from parnassus.probability.distributions.simplex import check_distribution


@dataclass(frozen=True)
class MarkovChain:
    """A time-homogeneous Markov chain (Diehl ex. 5.10).

        P[X_0 = i] = ν_i,   P[X_{n+1} = j | X_n = i] = A_ij,   Σ_j A_ij = 1
        P[X_n = j] = (ν Aⁿ)_j

    Here ν is `start` and A is `transition`. Only the rows of A need to sum to one.
    """

    start: Float[Tensor, " states"]
    transition: Float[Tensor, "states states"]

    def __post_init__(self) -> None:
        check_distribution(self.start, "start")
        check_transition(self.transition, states=len(self.start))

    @classmethod
    @accepts_arrays
    def fit(cls, paths: Int[Tensor, "count time"], *, states: int, smoothing: float = 0.0) -> "MarkovChain":
        """Maximum likelihood estimate: relative frequencies of initial states and of transitions.

        `smoothing` is added to every count. Without it a state without outgoing transitions is an error.
        """
        _check_paths(paths, states)
        check_non_negative(smoothing=smoothing)
        first = torch.bincount(paths[:, 0], minlength=states).double() + smoothing
        transitions = (paths[:, :-1] * states + paths[:, 1:]).flatten()
        counts = torch.bincount(transitions, minlength=states**2).double().reshape(states, states) + smoothing
        missing = (counts.sum(1) == 0).nonzero()[:, 0].tolist()
        if missing:
            raise ValueError(
                f"every state needs an outgoing transition or smoothing > 0; got none for states {missing}"
            )
        return cls(first / first.sum(), counts / counts.sum(1, keepdim=True))

    def marginal(self, steps: int) -> Float[Tensor, " states"]:
        """ν Aⁿ, the distribution of X_n after n `steps` (Diehl ex. 5.10)."""
        check_non_negative(steps=steps)
        power: Tensor = torch.linalg.matrix_power(self.transition, steps)
        return self.start @ power

    def marginals(self, steps: int) -> Float[Tensor, "time states"]:
        """The distributions of X_0, …, X_n, one per row."""
        check_non_negative(steps=steps)
        return propagate_distribution(self.start, repeat(self.transition, steps))

    def sample(
        self, count: int, *, steps: int, generator: torch.Generator | None = None
    ) -> Int[Tensor, "{count} {steps}+1"]:
        """Sample `count` independent paths X_0, …, X_n."""
        check_non_negative(steps=steps)
        return sample_chain(self.start, repeat(self.transition, steps), count=count, generator=generator)

    @accepts_arrays
    def log_prob(self, paths: Int[Tensor, "count time"]) -> Float[Tensor, " count"]:
        """The log-probability log ν(x_0) + Σ_n log A(x_n, x_{n+1}); −∞ for a path of probability 0."""
        _check_paths(paths, len(self.start))
        return self.start.log()[paths[:, 0]] + self.transition.log()[paths[:, :-1], paths[:, 1:]].sum(1)


@dataclass(frozen=True)
class InhomogeneousMarkovChain:
    """A time-inhomogeneous Markov chain, with a matrix A_n for each step (Diehl ex. 5.10).

    P[X_{n+1} = j | X_n = i] = A_{n,ij}
    P[X_n = j] = (ν A_0 A_1 … A_{n−1})_j
    """

    start: Float[Tensor, " states"]
    transitions: Float[Tensor, "steps states states"]

    def __post_init__(self) -> None:
        check_distribution(self.start, "start")
        check_transition(self.transitions, states=len(self.start))

    def marginals(self) -> Float[Tensor, "time states"]:
        """The distributions of X_0, …, X_N, one per row."""
        return propagate_distribution(self.start, self.transitions)

    def sample(self, count: int, *, generator: torch.Generator | None = None) -> Int[Tensor, "{count} time"]:
        """Sample `count` independent paths X_0, …, X_N."""
        return sample_chain(self.start, self.transitions, count=count, generator=generator)


def propagate_distribution(
    start: Float[Tensor, " states"], transitions: Iterable[Float[Tensor, "states states"]]
) -> Float[Tensor, "time states"]:
    """ν, ν A_0, ν A_0 A_1, …: the distribution at every time, the start included (Diehl ex. 5.10)."""
    distributions = [start]
    for transition in transitions:
        distributions.append(distributions[-1] @ transition)
    return torch.stack(distributions)


def sample_chain(
    start: Float[Tensor, " states"],
    transitions: Iterable[Float[Tensor, "states states"]],
    *,
    count: int,
    generator: torch.Generator | None = None,
) -> Int[Tensor, "{count} time"]:
    """Sample paths: the initial state from `start`, each next state from the row of the current one."""
    check_positive(count=count)
    states, path = torch.zeros(count, dtype=torch.int64, device=start.device), []
    for rows in chain([start.expand(len(start), -1)], transitions):
        states = torch.multinomial(rows[states], 1, generator=generator)[:, 0]
        path.append(states)
    return torch.stack(path, 1)


def stationary_distribution(transition: Float[Tensor, "states states"]) -> Float[Tensor, " states"]:
    """π with π A = π and Σ_i π_i = 1, where it is unique (Diehl sec. 5.1).

    Solved as [A − 1, 1]ᵀ πᵀ = (0, …, 0, 1)ᵀ in float64. Several closed classes of states are an error.
    """
    check_transition(transition, states=len(transition))
    states = len(transition)
    rows = transition.double() / transition.double().sum(1, keepdim=True)  # float32 rows sum to one only approximately
    step = rows - torch.eye(states, dtype=torch.float64, device=transition.device)
    classes = states - int(torch.linalg.matrix_rank(step))
    if classes != 1:
        raise ValueError(f"the stationary distribution must be unique; the chain has {classes} closed classes")
    system = torch.cat([step.T, step.new_ones(1, states)])
    target = torch.cat([step.new_zeros(states), step.new_ones(1)])
    solution: Tensor = torch.linalg.lstsq(system, target[:, None]).solution[:, 0]
    return solution.clamp(min=0).to(transition)


def check_transition(transition: Float[Tensor, "*batch rows columns"], *, states: int) -> None:
    """Raise a ValueError unless the matrix is square with `states` rows that are distributions."""
    if transition.shape[-2:] != (states, states):
        raise ValueError(
            f"a transition matrix needs a row and a column for each of {states} states; "
            f"got {transition.shape[-2]} × {transition.shape[-1]}"
        )
    check_distribution(transition, "transition")


def _check_paths(paths: Tensor, states: int) -> None:
    if paths.numel() == 0:
        raise ValueError(f"paths must not be empty; got shape {tuple(paths.shape)}")
    check_indices(states, states=paths)
