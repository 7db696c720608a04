"""Gradients of the expected return of a softmax policy: exact, and as REINFORCE estimates them (book sec. 18.4)."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional

from parnassus.reinforcement.decision import MarkovDecisionProcess
from parnassus.reinforcement.trajectories import Trajectories


def softmax_policy(
    logits: Float[Tensor, "*batch states actions"], allowed: Bool[Tensor, "states actions"]
) -> Float[Tensor, "*batch states actions"]:
    """π_θ(a|s) = exp θ(s, a) / Σ_b exp θ(s, b) over the allowed actions; where none is, over all."""
    among = allowed | ~allowed.any(-1, keepdim=True)
    return logits.masked_fill(~among, -torch.inf).softmax(-1)


def expected_return(
    process: MarkovDecisionProcess, policy: Float[Tensor, "*batch states actions"], start: Float[Tensor, " states"]
) -> Float[Tensor, "*batch"]:
    """J(π) = Σ_s ρ(s) V^π(s), by solving Bellman's equations; differentiable in π."""
    return process.values_of(policy) @ start


def policy_gradient(
    process: MarkovDecisionProcess, policy: Float[Tensor, "states actions"], start: Float[Tensor, " states"]
) -> Float[Tensor, "states actions"]:
    """∂J/∂θ(s, a) = d(s) π(a|s) A^π(s, a) for a softmax policy: the theorem, exactly (book eq. 18.9).

    d(s) = Σ_t γ^t P[s_t = s] holds the sum over t that the book's formula leaves out.
    """
    advantages = torch.where(policy > 0, process.advantages_of(policy), 0)
    return process.occupancy(policy, start)[:, None] * policy * advantages


def reinforce(
    paths: Trajectories, policy: Float[Tensor, "states actions"], weights: Float[Tensor, "paths steps"]
) -> Float[Tensor, "paths states actions"]:
    """What REINFORCE estimates from each path alone: Σ_t w_t ∇_θ log π_θ(a_t|s_t) (book eqs. 18.9-18.10).

        ∂ log π_θ(a|s) / ∂θ(s, b) = [a = b] − π_θ(b|s)

    With w_t = γ^t (G_t − b(s_t)) the mean over paths is ∇J, whatever the baseline b; see `return_weights`.
    """
    before = paths.states[:, :-1]
    scores = functional.one_hot(paths.actions, policy.shape[1]) - policy[before]
    scores = scores * (weights * paths.live)[..., None]
    estimates = policy.new_zeros(len(paths.states), *policy.shape)
    row = torch.arange(len(before), device=policy.device)[:, None].expand_as(before)
    return estimates.index_put_((row, before), scores, accumulate=True)


def return_weights(
    paths: Trajectories, discount: float, baseline: Float[Tensor, "paths steps"] | float = 0.0
) -> Float[Tensor, "paths steps"]:
    """w_t = γ^t (G_t − b_t), with G_t from r_t on, which a_t earned (book sec. 18.4, put right)."""
    steps = paths.actions.shape[1]
    powers = discount ** torch.arange(steps, dtype=paths.rewards.dtype, device=paths.rewards.device)
    return powers * (paths.returns(discount) - baseline)


def mean_and_variance(
    probabilities: Float[Tensor, " paths"], estimates: Float[Tensor, "paths states actions"]
) -> tuple[Float[Tensor, "states actions"], Float[Tensor, ""]]:
    """Mean of an estimate over all paths, and its mean squared distance from it, both exact."""
    mean = torch.einsum("p,psa->sa", probabilities, estimates)
    return mean, probabilities @ (estimates - mean).square().sum((1, 2))


def quietest_baseline(
    paths: Trajectories, policy: Float[Tensor, "states actions"], discount: float
) -> Float[Tensor, " states"]:
    """The b(s) with which the estimates vary least (book sec. 18.4).

        b(s) = E⟨g, h_s⟩ / E‖h_s‖²,   g = Σ_t γ^t G_t ∇log π,   h_s = Σ_t [s_t = s] γ^t ∇log π

    Gradients of different states touch different rows of θ, so that each state has its own best number. It is near the
    value V(s), but weighs the returns by how large the gradient is.
    """
    probabilities = paths.probabilities(policy)
    plain = reinforce(paths, policy, return_weights(paths, discount))
    unit = reinforce(paths, policy, return_weights(paths, discount) - return_weights(paths, discount, 1.0))
    together = torch.einsum("p,psa,psa->s", probabilities, plain, unit)
    size = torch.einsum("p,psa,psa->s", probabilities, unit, unit)
    return together / size.clamp(min=torch.finfo(size.dtype).tiny)
