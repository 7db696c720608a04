"""Markov chains with finitely many states: a starting law and matrices whose rows sum to one (Diehl sec. 5.1).

States count from 0 here, from 1 in the notes. Laws are row vectors, so that a step multiplies from the right.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain, repeat

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.probability.simplex import require_distribution


@dataclass(frozen=True)
class MarkovChain:
    """A chain that follows the same rule at every step (Diehl ex. 5.10).

        P[X_0 = i] = ν_i,   P[X_{n+1} = j | X_n = i] = A_ij,   Σ_j A_ij = 1
        P[X_n = j] = (ν Aⁿ)_j

    Here ν is `start` and A is `transition`. A is not made symmetric, nor need its columns sum to anything.
    """

    start: Float[Tensor, " states"]
    transition: Float[Tensor, "states states"]

    def __post_init__(self) -> None:
        require_distribution(self.start, "start")
        require_transition(self.transition, states=len(self.start))

    @classmethod
    def fit(cls, paths: Int[Tensor, "count time"], *, states: int, smoothing: float = 0.0) -> "MarkovChain":
        """The likeliest chain for the paths: shares of first states, and of the moves out of each state.

        `smoothing` is added to every count. Without it a state that is never left has no likeliest row.
        """
        _require_paths(paths, states)
        if not smoothing >= 0:
            raise ValueError(f"smoothing must not be negative; got smoothing={smoothing}")
        first = torch.bincount(paths[:, 0], minlength=states).double() + smoothing
        moves = (paths[:, :-1] * states + paths[:, 1:]).flatten()
        counts = torch.bincount(moves, minlength=states**2).double().reshape(states, states) + smoothing
        unseen = (counts.sum(1) == 0).nonzero()[:, 0].tolist()
        if unseen:
            raise ValueError(
                f"no path leaves the states {unseen}, so their rows are unknown: give a positive smoothing"
            )
        return cls(first / first.sum(), counts / counts.sum(1, keepdim=True))

    def law(self, steps: int) -> Float[Tensor, " states"]:
        """ν Aⁿ, the law of the state after n `steps` (Diehl ex. 5.10)."""
        _require_steps(steps)
        power: Tensor = torch.linalg.matrix_power(self.transition, steps)
        return self.start @ power

    def laws(self, steps: int) -> Float[Tensor, "time states"]:
        """The laws of X_0, …, X_n one below the other."""
        _require_steps(steps)
        return laws_along(self.start, repeat(self.transition, steps))

    def sample(
        self, count: int, *, steps: int, generator: torch.Generator | None = None
    ) -> Int[Tensor, "{count} {steps}+1"]:
        """`count` independent paths X_0, …, X_n, all walked at once."""
        _require_steps(steps)
        return paths_along(self.start, repeat(self.transition, steps), count=count, generator=generator)

    def log_prob(self, paths: Int[Tensor, "count time"]) -> Float[Tensor, " count"]:
        """The logarithm log ν(x_0) + Σ_n log A(x_n, x_{n+1}); −∞ for a path that cannot happen."""
        _require_paths(paths, len(self.start))
        return self.start.log()[paths[:, 0]] + self.transition.log()[paths[:, :-1], paths[:, 1:]].sum(1)


@dataclass(frozen=True)
class TimedChain:
    """A chain whose rule changes with time, a matrix A_n for each step (Diehl ex. 5.10).

        P[X_{n+1} = j | X_n = i] = A_{n,ij}
        law of X_n = ν A_0 A_1 … A_{n−1}

    It has as many steps as matrices.
    """

    start: Float[Tensor, " states"]
    transitions: Float[Tensor, "steps states states"]

    def __post_init__(self) -> None:
        require_distribution(self.start, "start")
        require_transition(self.transitions, states=len(self.start))

    def laws(self) -> Float[Tensor, "time states"]:
        """The laws of X_0, …, X_N one below the other."""
        return laws_along(self.start, self.transitions)

    def sample(self, count: int, *, generator: torch.Generator | None = None) -> Int[Tensor, "{count} time"]:
        """`count` independent paths X_0, …, X_N."""
        return paths_along(self.start, self.transitions, count=count, generator=generator)


def laws_along(
    start: Float[Tensor, " states"], transitions: Iterable[Float[Tensor, "states states"]]
) -> Float[Tensor, "time states"]:
    """ν, ν A_0, ν A_0 A_1, …: a law for every moment, the start included (Diehl ex. 5.10)."""
    laws = [start]
    for transition in transitions:
        laws.append(laws[-1] @ transition)
    return torch.stack(laws)


def paths_along(
    start: Float[Tensor, " states"],
    transitions: Iterable[Float[Tensor, "states states"]],
    *,
    count: int,
    generator: torch.Generator | None = None,
) -> Int[Tensor, "{count} time"]:
    """Paths drawn from the start and then row by row: the next state from the row of the present one."""
    if count < 1:
        raise ValueError(f"count must be positive; got count={count}")
    states, path = torch.zeros(count, dtype=torch.int64, device=start.device), []
    for rows in chain([start.expand(len(start), -1)], transitions):
        states = torch.multinomial(rows[states], 1, generator=generator)[:, 0]
        path.append(states)
    return torch.stack(path, 1)


def stationary_law(transition: Float[Tensor, "states states"]) -> Float[Tensor, " states"]:
    """π with π A = π and Σ_i π_i = 1, where there is only one (Diehl sec. 5.1).

    Solved as [A − 1, 1]ᵀ πᵀ = (0, …, 0, 1)ᵀ in float64. A chain that falls into parts has several, and is an error.
    """
    require_transition(transition, states=len(transition))
    states = len(transition)
    rows = transition.double() / transition.double().sum(1, keepdim=True)  # float32 rows sum to one only nearly
    step = rows - torch.eye(states, dtype=torch.float64, device=transition.device)
    parts = states - int(torch.linalg.matrix_rank(step))
    if parts != 1:
        raise ValueError(f"the stationary law is not unique: {parts} parts of the chain cannot be left")
    system = torch.cat([step.T, step.new_ones(1, states)])
    target = torch.cat([step.new_zeros(states), step.new_ones(1)])
    law: Tensor = torch.linalg.lstsq(system, target[:, None]).solution[:, 0]
    return law.clamp(min=0).to(transition)


def require_transition(transition: Float[Tensor, "*batch rows columns"], *, states: int) -> None:
    """Raise a ValueError unless the matrix is square with `states` rows that are distributions."""
    if transition.shape[-2:] != (states, states):
        raise ValueError(
            f"a transition matrix needs a row and a column for each of {states} states; "
            f"got {transition.shape[-2]} × {transition.shape[-1]}"
        )
    require_distribution(transition, "transition")


def _require_steps(steps: int) -> None:
    if steps < 0:
        raise ValueError(f"steps must not be negative; got steps={steps}")


def _require_paths(paths: Tensor, states: int) -> None:
    if paths.numel() == 0:
        raise ValueError(f"need at least one path with at least one state; got shape {tuple(paths.shape)}")
    if not (int(paths.min()) >= 0 and int(paths.max()) < states):
        raise ValueError(f"states count from 0 to {states - 1}; got {int(paths.min())} … {int(paths.max())}")
