"""Random walks, and the lift that turns any process into a Markov chain (Diehl sec. 5.1)."""

import torch
from jaxtyping import Int
from torch import Tensor


def random_walk(
    count: int, *, steps: int, up: float = 0.5, generator: torch.Generator | None = None
) -> Int[Tensor, "{count} {steps}+1"]:
    """`count` paths Y_0, …, Y_n of sums of independent steps, +1 with probability `up`, else −1 (Diehl ex. 5.10).

        Y_n = Σ_{i=0}^n X_i,   E Y_n = (n + 1)(2p − 1),   Var Y_n = 4p(1 − p)(n + 1)

    Y_0 is a step already: it is ±1, not 0.
    """
    if count < 1 or steps < 0:
        raise ValueError(f"need count ≥ 1 and steps ≥ 0; got count={count}, steps={steps}")
    if not 0 <= up <= 1:
        raise ValueError(f"a probability lies in [0, 1]; got up={up}")
    signs = 2 * (torch.rand(count, steps + 1, generator=generator) < up).long() - 1
    return signs.cumsum(1)


def lift(paths: Int[Tensor, "count time"]) -> Int[Tensor, "count time time"]:
    """Y_n = (X_0, …, X_n, 0, 0, …): the path so far as one state, which no past can add to (Diehl ex. 5.10).

    States count from 1, for 0 says "not yet"; the notes forget that the new states are made of {0} ∪ [n].
    """
    if paths.numel() and int(paths.min()) < 1:
        raise ValueError(f"states must count from 1, for 0 says 'not yet'; got a state {int(paths.min())}")
    time = paths.shape[1]
    return paths[:, None, :] * torch.ones(time, time, dtype=paths.dtype, device=paths.device).tril()
