"""Policy gradients of a tabular softmax policy: exact, and their REINFORCE estimates (book sec. 18.4)."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional

from parnassus.reinforcement.experience.generalised_advantage import td_errors
from parnassus.reinforcement.tabular.markov_decision_process import MarkovDecisionProcess
from parnassus.reinforcement.tabular.trajectories import TrajectoryDistribution


def softmax_policy(
    logits: Float[Tensor, "*batch states actions"], allowed: Bool[Tensor, "states actions"]
) -> Float[Tensor, "*batch states actions"]:
    """π_θ(a|s) = exp θ(s, a) / Σ_b exp θ(s, b) over the allowed actions; over all where none is allowed."""
    candidates = allowed | ~allowed.any(-1, keepdim=True)
    return logits.masked_fill(~candidates, -torch.inf).softmax(-1)


def expected_return(
    process: MarkovDecisionProcess, policy: Float[Tensor, "*batch states actions"], start: Float[Tensor, " states"]
) -> Float[Tensor, "*batch"]:
    """J(π) = Σ_s ρ(s) V^π(s), by solving Bellman's equations; differentiable with respect to π."""
    return process.state_values(policy) @ start


def policy_gradient(
    process: MarkovDecisionProcess, policy: Float[Tensor, "states actions"], start: Float[Tensor, " states"]
) -> Float[Tensor, "states actions"]:
    """∂J/∂θ(s, a) = d(s) π(a|s) A^π(s, a), the policy gradient theorem for a softmax policy (book eq. 18.9).

    d(s) = Σ_t γ^t P[s_t = s] contains the sum over t that the book's formula omits.
    """
    advantages = torch.where(policy > 0, process.advantages(policy), 0)
    return process.occupancy(policy, start)[:, None] * policy * advantages


def reinforce_estimates(
    paths: TrajectoryDistribution, policy: Float[Tensor, "states actions"], weights: Float[Tensor, "paths steps"]
) -> Float[Tensor, "paths states actions"]:
    """REINFORCE's gradient estimate from each path: Σ_t w_t ∇_θ log π_θ(a_t|s_t) (book eqs. 18.9-18.10).

        ∂ log π_θ(a|s) / ∂θ(s, b) = [a = b] − π_θ(b|s)

    With w_t = γ^t (G_t − b(s_t)) the expectation over paths is ∇J for any baseline b; see `return_weights`.
    """
    states = paths.states[:, :-1]
    scores = functional.one_hot(paths.actions, policy.shape[1]) - policy[states]
    scores = scores * (weights * paths.active)[..., None]
    estimates = policy.new_zeros(len(paths.states), *policy.shape)
    row = torch.arange(len(states), device=policy.device)[:, None].expand_as(states)
    return estimates.index_put_((row, states), scores, accumulate=True)


def return_weights(
    paths: TrajectoryDistribution, gamma: float, baseline: Float[Tensor, "paths steps"] | float = 0.0
) -> Float[Tensor, "paths steps"]:
    """w_t = γ^t (G_t − b_t), where G_t includes r_t, the reward of a_t (book sec. 18.4, corrected)."""
    steps = paths.actions.shape[1]
    powers = gamma ** torch.arange(steps, dtype=paths.rewards.dtype, device=paths.rewards.device)
    return powers * (paths.returns(gamma) - baseline)


def path_td_errors(
    paths: TrajectoryDistribution, values: Float[Tensor, " states"], gamma: float
) -> Float[Tensor, "paths steps"]:
    """δ_t = r_t + γ v(s_{t+1}) − v(s_t), for values that are 0 at terminal states (book sec. 18.5).

    As weights of `reinforce_estimates` they give the actor's gradient E[Σ_t δ_t ∇log π] (book eq. 18.11), which is the
    usual one in practice but not ∇J: it counts every visit of a state, however late, with weight 1.
    """
    before, after = values[paths.states[:, :-1]], values[paths.states[:, 1:]]
    return td_errors(paths.rewards, before, after, torch.zeros_like(paths.active), gamma=gamma)


def discounted_td_errors(
    paths: TrajectoryDistribution, values: Float[Tensor, " states"], gamma: float
) -> Float[Tensor, "paths steps"]:
    """γ^t δ_t, the weights whose mean is ∇J: eq. 18.11 lacks the γ^t of eq. 18.9 (book sec. 18.5, corrected)."""
    errors = path_td_errors(paths, values, gamma)
    return gamma ** torch.arange(errors.shape[1], dtype=errors.dtype, device=errors.device) * errors


def mean_and_variance(
    probabilities: Float[Tensor, " paths"], estimates: Float[Tensor, "paths states actions"]
) -> tuple[Float[Tensor, "states actions"], Float[Tensor, ""]]:
    """Exact mean of the estimate over all paths, and its total variance E‖g − E g‖²."""
    mean = torch.einsum("p,psa->sa", probabilities, estimates)
    return mean, probabilities @ (estimates - mean).square().sum((1, 2))


def optimal_baseline(
    paths: TrajectoryDistribution, policy: Float[Tensor, "states actions"], gamma: float
) -> Float[Tensor, " states"]:
    """The baseline b(s) with minimum variance (book sec. 18.4).

        b(s) = E⟨g, h_s⟩ / E‖h_s‖²,   g = Σ_t γ^t G_t ∇log π,   h_s = Σ_t [s_t = s] γ^t ∇log π

    Gradients of different states affect different rows of θ, so that each state has its own optimum. It is close to the
    value V(s), but weights returns by the squared norm of the gradient.
    """
    probabilities = paths.probabilities(policy)
    weights = return_weights(paths, gamma)
    g = reinforce_estimates(paths, policy, weights)
    h = reinforce_estimates(paths, policy, weights - return_weights(paths, gamma, 1.0))
    numerator = torch.einsum("p,psa,psa->s", probabilities, g, h)
    denominator = torch.einsum("p,psa,psa->s", probabilities, h, h)
    return numerator / denominator.clamp(min=torch.finfo(denominator.dtype).tiny)
