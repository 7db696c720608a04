"""Rollouts as training batches: old log-probabilities, advantages and value targets."""

from typing import NamedTuple

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from parnassus.reinforcement.agents.actor_critic import ActorCritic
from parnassus.reinforcement.experience.collector import Experience
from parnassus.reinforcement.experience.generalised_advantage import generalised_advantages
from parnassus.reinforcement.fast.actor_critic_backward import ActorCriticActivations


class RolloutBatch(NamedTuple):
    """A flattened rollout of each learner, one row per step and environment.

    `log_probs` are those of the policy that acted, `returns` the targets of the critic: Â + v.

    >>> ones = torch.ones(1, 64)
    >>> RolloutBatch(torch.zeros(1, 64, 4), ones.long(), -ones, ones, ones).returns.shape
    torch.Size([1, 64])
    """

    observations: Float[Tensor, "learners rows features"]
    actions: Shaped[Tensor, "learners rows *action"]
    log_probs: Float[Tensor, "learners rows"]
    advantages: Float[Tensor, "learners rows"]
    returns: Float[Tensor, "learners rows"]

    def select_rows(self, index: Shaped[Tensor, "learners some"]) -> "RolloutBatch":
        """The rows with these indices, chosen for each learner separately."""
        learner = torch.arange(len(index), device=index.device)[:, None]
        return RolloutBatch(*(part[learner, index] for part in self))


@torch.no_grad()
def estimate_advantages(
    model: ActorCritic,
    experience: Experience,
    activations: ActorCriticActivations | None = None,
    *,
    gamma: float,
    gae_lambda: float,
) -> RolloutBatch:
    """Generalised advantages by the critic, bootstrapping where an episode was truncated.

    `activations` is the model's forward pass on `visited_states(experience)`, if there is one already.
    """
    steps, x = len(experience.rewards), visited_states(experience)
    activations = model.forward_with_activations(x) if activations is None else activations
    all_values = group_by_step(activations.values.squeeze(-1), steps + 1)
    values, next_values = all_values[:-1], all_values[1:]
    truncated = experience.truncated.flatten(1)
    if not truncated.is_cpu or bool(truncated[:-1].any()):  # the next state visited is then of another episode
        bootstrap = group_by_step(model.values(group_by_learner(experience.next_observations)), steps)
        next_values = torch.where(truncated, bootstrap, next_values)
    estimates = generalised_advantages(
        experience.rewards.flatten(1), values, next_values, experience.terminated.flatten(1), truncated,
        gamma=gamma, gae_lambda=gae_lambda,
    )  # fmt: skip
    advantages, returns = (
        group_by_learner(part.view_as(experience.rewards)) for part in (estimates, estimates + values)
    )
    actions, rows = group_by_learner(experience.actions), advantages.shape[1]
    distribution, _ = model.read_activations(activations, rows)
    return RolloutBatch(x[:, :rows], actions, distribution.log_prob(actions), advantages, returns)


def visited_states(experience: Experience) -> Float[Tensor, "learners rows features"]:
    """All states in which an action was chosen, then the successors of the last ones.

    The successor of a step is the next step's state, except at the end of an episode, where it matters only after a
    truncation.
    """
    return group_by_learner(torch.cat([experience.observations, experience.next_observations[-1:]]))


def group_by_learner(x: Shaped[Tensor, "steps learners envs *rest"]) -> Shaped[Tensor, "learners rows *rest"]:
    """All rows of a learner together, step by step."""
    return x.transpose(0, 1).flatten(1, 2)


def group_by_step(x: Float[Tensor, "learners rows"], steps: int) -> Float[Tensor, "steps envs"]:
    """The inverse, with the environments of all learners on one axis."""
    return x.view(len(x), steps, -1).transpose(0, 1).flatten(1)


def standardise(advantages: Float[Tensor, "learners rows"]) -> Float[Tensor, "learners rows"]:
    """Mean 0 and standard deviation 1 for each learner, which removes the scale of the rewards."""
    deviation = advantages - advantages.mean(1, keepdim=True)
    return deviation / (advantages.std(1, keepdim=True) + 1e-8)
