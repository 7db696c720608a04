"""Whole episodes and the gradient they give: weights, a known gradient, the worth of a baseline."""

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


def played(num_learners: int = 2, n_envs: int = 4, max_episode_steps: int = 25) -> tuple[ActorCritic, EpisodeBatch]:
    torch.manual_seed(0)
    model = ActorCritic(4, Discrete(2), hidden=(6,), num_learners=num_learners)
    worlds = TensorEnvironments(CartPole(max_episode_steps=max_episode_steps), num_learners * n_envs)
    return model, collect_episodes(worlds, lambda x: model.distribution(x).sample(), num_learners)


def test_episodes_go_from_their_beginning_to_their_end() -> None:
    _, seen = played()
    lengths = seen.live.sum(0)
    assert torch.equal(seen.total_rewards, lengths.float())  # 1 a step
    assert int(lengths.max()) == len(seen.rewards) <= 25
    assert bool(seen.live[0].all())
    assert not bool((seen.live[1:] & ~seen.live[:-1]).any())  # once over, over
    assert bool((seen.observations[0].abs() <= 0.05).all())


def test_weights_are_what_followed() -> None:
    _, seen = played()
    baseline = torch.randn_like(seen.rewards)
    found = reinforce_weights(seen, baseline, gamma=0.9)
    for learner in range(2):
        for copy in range(4):
            length = int(seen.live[:, learner, copy].sum())
            for step in range(len(seen.rewards)):
                ahead = sum(0.9 ** (k - step) for k in range(step, length))
                wanted = 0.9**step * (ahead - float(baseline[step, learner, copy])) if step < length else 0.0
                assert float(found[step, learner, copy]) == pytest.approx(wanted, abs=1e-5)


def test_the_slope_of_the_objective_is_that_of_the_return() -> None:
    """One step, action 1 pays 1: J = π(1|s), whose slope enumeration gives; the mean over many draws agrees."""
    torch.manual_seed(0)
    model, n_envs = ActorCritic(1, Discrete(2), hidden=(3,)).double(), 40_000
    ActorParameters(model).write(torch.randn_like(ActorParameters(model).read()))
    states = torch.ones(1, 1, n_envs, 1, dtype=torch.float64)
    with torch.no_grad():
        actions = model.distribution(states[0]).sample()[None]
    seen = EpisodeBatch(states, actions, actions.double(), torch.ones(1, 1, n_envs, dtype=torch.bool))
    actor = ActorParameters(model)
    exact = actor.gradient(
        model.distribution(states[0, :, :1]).log_prob(torch.ones(1, 1, dtype=torch.int64)).exp().sum()
    )
    slopes: list[Tensor] = []
    for baseline in (0.0, 0.7):
        weights = reinforce_weights(seen, baseline, gamma=0.9)
        slopes.append(actor.gradient(reinforce_objective(model, seen, weights).mean(1).sum()))
        torch.testing.assert_close(slopes[-1], exact, atol=0.02 * float(exact.norm()), rtol=0)
    assert not torch.equal(slopes[0], slopes[1])


def test_the_variance_is_that_of_slopes_one_by_one() -> None:
    model, seen = played(n_envs=5)
    weights = reinforce_weights(seen, gamma=0.95)
    found = gradient_variance(model, seen, weights)
    actor, each = ActorParameters(model), []
    for copy in range(5):
        alone = torch.zeros_like(weights)
        alone[..., copy] = weights[..., copy]
        each.append(actor.gradient(reinforce_objective(model, seen, alone).sum()))
    mean = torch.stack(each).mean(0)
    wanted = torch.stack([(own - mean).square().sum(1) for own in each]).sum(0) / 4
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)


def test_the_critic_sees_living_states_alone() -> None:
    _, seen = played()
    states, returned = sample_critic_batch(seen, 200, gamma=1.0)
    assert states.shape == (2, 200, 4)
    assert float(returned.min()) >= 1  # after the end it would be 0
    for learner in range(2):
        assert float(returned[learner].max()) <= float(seen.total_rewards[learner].max())


def test_wrong_input() -> None:
    model, seen = played(n_envs=1)
    with pytest.raises(ValueError, match="at least two episodes per learner; got 1"):
        gradient_variance(model, seen, reinforce_weights(seen, gamma=0.9))
    with pytest.raises(ValueError, match="n_envs must be divisible by num_learners; got n_envs=3, num_learners=2"):
        collect_episodes(TensorEnvironments(CartPole(), 3), lambda x: model.distribution(x).sample(), 2)
