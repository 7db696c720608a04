"""REINFORCE with networks: policy gradients from complete episodes (book sec. 18.4; Williams 1992)."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor

from parnassus.reinforcement.agents.actor_critic import ActorCritic
from parnassus.reinforcement.agents.actor_parameters import ActorParameters
from parnassus.reinforcement.environments.interface import Environments, check_divisible, endless_episode_error
from parnassus.reinforcement.experience.returns import discounted_returns
from parnassus.reinforcement.experience.rollout_batch import group_by_learner


@dataclass(frozen=True)
class EpisodeBatch:
    """One complete episode in every environment of each learner; steps after its end are not `active`.

    An episode truncated by a time limit ends there, and its return is that of the steps taken.

    >>> ones = torch.ones(10, 1, 8)
    >>> EpisodeBatch(torch.zeros(10, 1, 8, 4), ones.long(), ones, active=ones.bool()).rewards.sum().item()
    80.0
    """

    observations: Float[Tensor, "steps learners envs features"]
    actions: Shaped[Tensor, "steps learners envs *action"]
    rewards: Float[Tensor, "steps learners envs"]
    active: Bool[Tensor, "steps learners envs"]

    @property
    def total_rewards(self) -> Float[Tensor, "learners envs"]:
        """The undiscounted return of every episode."""
        return (self.rewards * self.active).sum(0)

    def returns(self, gamma: float) -> Float[Tensor, "steps learners envs"]:
        """G_t = Σ_{k≥t} γ^{k−t} r_k, with r_k following a_k; 0 after the end."""
        rewards = (self.rewards * self.active).flatten(1)
        returns = discounted_returns(rewards, torch.zeros_like(rewards, dtype=torch.bool), gamma=gamma)
        return returns.view_as(self.rewards)


@torch.no_grad()
def collect_episodes(
    environments: Environments,
    act: Callable[[Float[Tensor, "learners envs features"]], Shaped[Tensor, "..."]],
    num_learners: int = 1,
) -> EpisodeBatch:
    """Reset all environments and act until the first episode of each has ended."""
    check_divisible(environments.n_envs, num_learners)
    observation = environments.reset()
    active = torch.ones(environments.n_envs, dtype=torch.bool, device=observation.device)
    steps: list[tuple[Tensor, ...]] = []
    for _ in range(environments.max_episode_steps):
        here = observation.unflatten(0, (num_learners, -1))
        action = act(here)
        observation, reward, terminated, truncated, _ = environments.step(action.flatten(0, 1))
        steps.append((here, action, reward.unflatten(0, (num_learners, -1)), active.unflatten(0, (num_learners, -1))))
        active = active & ~(terminated | truncated)
        if not bool(active.any()):
            break
    else:
        raise endless_episode_error(environments.max_episode_steps)
    return EpisodeBatch(*(torch.stack(column) for column in zip(*steps, strict=True)))


def reinforce_weights(
    episodes: EpisodeBatch, baseline: Float[Tensor, "steps learners envs"] | float = 0.0, *, gamma: float
) -> Float[Tensor, "steps learners envs"]:
    """w_t = γ^t (G_t − b(s_t)), and 0 after the end (book sec. 18.4, corrected)."""
    steps = torch.arange(len(episodes.rewards), device=episodes.rewards.device)
    powers = (gamma ** steps.to(episodes.rewards))[:, None, None]
    return powers * (episodes.returns(gamma) - baseline) * episodes.active


def reinforce_objective(
    model: ActorCritic, episodes: EpisodeBatch, weights: Float[Tensor, "steps learners envs"]
) -> Float[Tensor, "learners envs"]:
    """Σ_t w_t log π(a_t|s_t) of each episode, whose gradient estimates ∇J (book eqs. 18.9-18.10)."""
    steps, _, envs = weights.shape
    distribution = model.distribution(group_by_learner(episodes.observations))
    log_probs = distribution.log_prob(group_by_learner(episodes.actions)).view(-1, steps, envs)
    return (weights.transpose(0, 1) * log_probs).sum(1)


def gradient_variance(
    model: ActorCritic, episodes: EpisodeBatch, weights: Float[Tensor, "steps learners envs"]
) -> Float[Tensor, " learners"]:
    """E‖g − E g‖² of the one-episode gradient estimate g, over the given episodes."""
    if weights.shape[2] < 2:
        raise ValueError(f"a variance needs at least two episodes per learner; got {weights.shape[2]}")
    actor, objective = ActorParameters(model), reinforce_objective(model, episodes, weights)
    gradients = torch.stack([actor.gradient(one.sum(), retain_graph=True) for one in objective.unbind(1)])
    return gradients.var(0).sum(1)


def sample_critic_batch(
    episodes: EpisodeBatch, rows: int, *, gamma: float
) -> tuple[Float[Tensor, "learners rows features"], Float[Tensor, "learners rows"]]:
    """States sampled from each learner's episodes, and their returns."""
    index = torch.multinomial(group_by_learner(episodes.active).float(), rows, replacement=True)
    learner = torch.arange(len(index), device=index.device)[:, None]
    returns = group_by_learner(episodes.returns(gamma))
    return group_by_learner(episodes.observations)[learner, index], returns[learner, index]
