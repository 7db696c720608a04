"""Random walks, and the lift of a process to its histories, which is a Markov chain (Diehl sec. 5.1)."""

import torch
from jaxtyping import Int
from torch import Tensor


def random_walk(
    count: int, *, steps: int, up: float = 0.5, generator: torch.Generator | None = None
) -> Int[Tensor, "{count} {steps}+1"]:
    """Sample `count` paths Y_0, …, Y_n with independent steps, +1 with probability `up`, else −1 (Diehl ex. 5.10).

        Y_n = Σ_{i=0}^n X_i,   E Y_n = (n + 1)(2p − 1),   Var Y_n = 4p(1 − p)(n + 1)

    Y_0 = X_0 is already a step: it is ±1, not 0.
    """
    if count < 1 or steps < 0:
        raise ValueError(f"need count ≥ 1 and steps ≥ 0; got count={count}, steps={steps}")
    if not 0 <= up <= 1:
        raise ValueError(f"up must lie in [0, 1]; got up={up}")
    signs = 2 * (torch.rand(count, steps + 1, generator=generator) < up).long() - 1
    return signs.cumsum(1)


def lift_to_histories(paths: Int[Tensor, "count time"]) -> Int[Tensor, "count time time"]:
    """Y_n = (X_0, …, X_n, 0, 0, …): the history as the state, which makes any process Markov (Diehl ex. 5.10).

    States are numbered from 1, as 0 pads future times; the notes omit the 0 from the new state space ({0} ∪ [n])ᴺ.
    """
    if paths.numel() and int(paths.min()) < 1:
        raise ValueError(f"states must be at least 1, as 0 is the padding value; got a state {int(paths.min())}")
    time = paths.shape[1]
    return paths[:, None, :] * torch.ones(time, time, dtype=paths.dtype, device=paths.device).tril()
