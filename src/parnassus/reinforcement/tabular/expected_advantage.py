"""The exact expectation of generalised advantage estimates, for any critic (Schulman et al. 2016)."""

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.reinforcement.experience.generalised_advantage import check_lambda
from parnassus.reinforcement.tabular.markov_decision_process import MarkovDecisionProcess
from parnassus.reinforcement.tabular.markov_reward_process import solve_bellman


def expected_advantages(
    process: MarkovDecisionProcess,
    policy: Float[Tensor, "states actions"],
    values: Float[Tensor, " states"],
    gae_lambda: float,
) -> Float[Tensor, "states actions"]:
    """E[Σ_l (γλ)^l δ_l | s_0 = s, a_0 = a] for a critic v, which `generalised_advantages` estimates.

        δ̄(s, a) = r̄(s, a) + γ E v(s') − v(s),   w = δ̄_π + γλ P_π w
        E Â(s, a) = δ̄(s, a) + γλ Σ_s' P(s, a, s') w(s')

    With λ = 1 it is Q^π(s, a) − v(s): the critic acts only as a baseline. With λ < 1 its errors cause a bias.
    The result is −∞ where a is not allowed, and 0 at a terminal state.
    """
    check_lambda(gae_lambda)
    critic = values.masked_fill(process.terminal, 0)
    errors = process.q_values(critic) - critic[:, None]
    chain = process.reward_process(policy)
    decay = process.gamma * gae_lambda
    mean_errors = (policy * torch.where(policy > 0, errors, 0)).sum(-1)
    future_errors = solve_bellman(chain.transition, mean_errors, decay, process.terminal)
    return errors + decay * torch.einsum("sat,t->sa", process.transition, future_errors)
