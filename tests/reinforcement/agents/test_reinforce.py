"""REINFORCE: episodes, weights, gradient and its variance."""

import pytest
import torch
from torch import Tensor

from parnassus.reinforcement.agents.actor_critic import ActorCritic
from parnassus.reinforcement.agents.actor_parameters import ActorParameters
from parnassus.reinforcement.agents.reinforce import (
    EpisodeBatch,
    collect_episodes,
    gradient_variance,
    reinforce_objective,
    reinforce_weights,
    sample_critic_batch,
)
from parnassus.reinforcement.environments import CartPole, Discrete, TensorEnvironments


def collect_batch(
    num_learners: int = 2, n_envs: int = 4, max_episode_steps: int = 25
) -> tuple[ActorCritic, EpisodeBatch]:
    torch.manual_seed(0)
    model = ActorCritic(4, Discrete(2), hidden=(6,), num_learners=num_learners)
    envs = TensorEnvironments(CartPole(max_episode_steps=max_episode_steps), num_learners * n_envs)
    return model, collect_episodes(envs, lambda x: model.distribution(x).sample(), num_learners)


def test_collect_episodes_returns_complete_episodes() -> None:
    _, episodes = collect_batch()
    lengths = episodes.active.sum(0)
    assert torch.equal(episodes.total_rewards, lengths.float())  # reward 1 per step
    assert int(lengths.max()) == len(episodes.rewards) <= 25
    assert bool(episodes.active[0].all())
    assert not bool((episodes.active[1:] & ~episodes.active[:-1]).any())  # no steps after the end
    assert bool((episodes.observations[0].abs() <= 0.05).all())


def test_weights_are_discounted_returns_minus_baseline() -> None:
    _, episodes = collect_batch()
    baseline = torch.randn_like(episodes.rewards)
    weights = reinforce_weights(episodes, baseline, gamma=0.9)
    for learner in range(2):
        for env in range(4):
            length = int(episodes.active[:, learner, env].sum())
            for step in range(len(episodes.rewards)):
                future_return = sum(0.9 ** (k - step) for k in range(step, length))
                expected = 0.9**step * (future_return - float(baseline[step, learner, env])) if step < length else 0.0
                assert float(weights[step, learner, env]) == pytest.approx(expected, abs=1e-5)


def test_objective_gradient_matches_gradient_of_expected_return() -> None:
    """One step with reward 1 for action 1: J = π(1|s), whose gradient is known exactly."""
    torch.manual_seed(0)
    model, n_envs = ActorCritic(1, Discrete(2), hidden=(3,)).double(), 40_000
    ActorParameters(model).write(torch.randn_like(ActorParameters(model).read()))
    states = torch.ones(1, 1, n_envs, 1, dtype=torch.float64)
    with torch.no_grad():
        actions = model.distribution(states[0]).sample()[None]
    episodes = EpisodeBatch(states, actions, actions.double(), torch.ones(1, 1, n_envs, dtype=torch.bool))
    actor = ActorParameters(model)
    exact = actor.gradient(
        model.distribution(states[0, :, :1]).log_prob(torch.ones(1, 1, dtype=torch.int64)).exp().sum()
    )
    gradients: list[Tensor] = []
    for baseline in (0.0, 0.7):
        weights = reinforce_weights(episodes, baseline, gamma=0.9)
        gradients.append(actor.gradient(reinforce_objective(model, episodes, weights).mean(1).sum()))
        torch.testing.assert_close(gradients[-1], exact, atol=0.02 * float(exact.norm()), rtol=0)
    assert not torch.equal(gradients[0], gradients[1])


def test_gradient_variance_matches_per_episode_gradients() -> None:
    model, episodes = collect_batch(n_envs=5)
    weights = reinforce_weights(episodes, gamma=0.95)
    variance = gradient_variance(model, episodes, weights)
    actor, gradients = ActorParameters(model), []
    for env in range(5):
        env_weights = torch.zeros_like(weights)
        env_weights[..., env] = weights[..., env]
        gradients.append(actor.gradient(reinforce_objective(model, episodes, env_weights).sum()))
    mean = torch.stack(gradients).mean(0)
    expected = torch.stack([(gradient - mean).square().sum(1) for gradient in gradients]).sum(0) / 4
    torch.testing.assert_close(variance, expected, rtol=1e-4, atol=1e-5)


def test_critic_batch_excludes_states_after_the_end() -> None:
    _, episodes = collect_batch()
    states, returns = sample_critic_batch(episodes, 200, gamma=1.0)
    assert states.shape == (2, 200, 4)
    assert float(returns.min()) >= 1  # returns are 0 after the end of an episode
    for learner in range(2):
        assert float(returns[learner].max()) <= float(episodes.total_rewards[learner].max())


def test_invalid_arguments_raise_value_error() -> None:
    model, episodes = collect_batch(n_envs=1)
    with pytest.raises(ValueError, match="at least two episodes per learner; got 1"):
        gradient_variance(model, episodes, reinforce_weights(episodes, gamma=0.9))
    with pytest.raises(ValueError, match="n_envs must be divisible by num_learners; got n_envs=3, num_learners=2"):
        collect_episodes(TensorEnvironments(CartPole(), 3), lambda x: model.distribution(x).sample(), 2)
