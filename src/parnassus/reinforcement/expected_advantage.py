"""What an estimate of the advantage is on average, when its critic is wrong (Schulman et al. 2016)."""

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.reinforcement.decision import MarkovDecisionProcess
from parnassus.reinforcement.markov_reward import solve_bellman


def expected_advantages(
    process: MarkovDecisionProcess,
    policy: Float[Tensor, "states actions"],
    values: Float[Tensor, " states"],
    decay: float,
) -> Float[Tensor, "states actions"]:
    """E[Σ_l (γλ)^l δ_l | s_0 = s, a_0 = a] for a critic v, exactly: of what `generalised_advantages` is an estimate.

        δ̄(s, a) = r̄(s, a) + γ E v(s') − v(s),   w = δ̄_π + γλ P_π w
        E Â(s, a) = δ̄(s, a) + γλ Σ_s' P(s, a, s') w(s')

    With λ = 1 it is Q^π(s, a) − v(s): a wrong critic is only a baseline. With λ < 1 its mistakes stay.
    It is −∞ where a is not allowed, and 0 at a terminal state.
    """
    if not 0 <= decay <= 1:
        raise ValueError(f"the decay must satisfy 0 ≤ λ ≤ 1; got decay={decay}")
    critic = values.masked_fill(process.terminal, 0)
    error = process.q_values(critic) - critic[:, None]
    followed = process.under(policy)
    onward = process.discount * decay
    drift = (policy * torch.where(policy > 0, error, 0)).sum(-1)
    later = solve_bellman(followed.transition, drift, onward, process.terminal)
    return error + onward * torch.einsum("sat,t->sa", process.transition, later)
