"""A2C loss and its gradients."""

from dataclasses import replace

import torch

from parnassus.reinforcement.agents.a2c import a2c_loss
from parnassus.reinforcement.agents.actor_critic import ActorCritic
from parnassus.reinforcement.environments import CartPole, Continuous, Discrete, TensorEnvironments
from parnassus.reinforcement.experience.collector import Collector
from parnassus.reinforcement.experience.rollout_batch import RolloutBatch, estimate_advantages, visited_states
from parnassus.reinforcement.fast.a2c_backward import a2c_backward


def test_loss_of_each_learner_matches_definition() -> None:
    torch.manual_seed(0)
    model = ActorCritic(4, Discrete(3), num_learners=2)
    batch = RolloutBatch(
        torch.randn(2, 30, 4),
        torch.randint(3, (2, 30)),
        torch.zeros(2, 30),
        torch.randn(2, 30) * torch.tensor([[1.0], [20.0]]),
        torch.randn(2, 30),
    )
    losses = a2c_loss(model, batch, vf_coef=0.3, ent_coef=0.2)
    distribution, values = model(batch.observations)
    for learner in range(2):
        log_probs = distribution.logits[learner].log_softmax(1)
        policy_gain = (batch.advantages[learner] * log_probs.gather(1, batch.actions[learner, :, None])[:, 0]).mean()
        value_error = (values[learner] - batch.returns[learner]).square().mean()
        entropy = -(log_probs.exp() * log_probs).sum(1).mean()
        assert torch.allclose(losses[learner], -policy_gain + 0.3 * value_error - 0.2 * entropy, atol=1e-5)


def test_gradients_with_lambda_zero_match_the_book() -> None:
    """λ = 0: −E[δ ∇log π] for the actor and −E[δ ∇v] for the critic, with fixed targets (book eqs. 18.11-18.12)."""
    torch.manual_seed(0)
    model = ActorCritic(4, Discrete(2), num_learners=2)
    collector = Collector(TensorEnvironments(CartPole(), 8), num_learners=2)
    experience = collector.collect(lambda x: model.distribution(x).sample(), 30)
    assert bool(experience.terminated.any())
    batch = estimate_advantages(model, experience, gamma=0.9, gae_lambda=0.0)
    a2c_loss(model, batch).sum().backward()
    actual = [p.grad.clone() for p in model.parameters() if p.grad is not None]

    states, next_states, actions = (
        tensor.transpose(0, 1).flatten(1, 2)
        for tensor in (experience.observations, experience.next_observations, experience.actions)
    )
    rewards, terminated = (
        tensor.transpose(0, 1).flatten(1, 2) for tensor in (experience.rewards, experience.terminated)
    )
    values = model.values(states)
    delta = (rewards + 0.9 * model.values(next_states) * ~terminated - values).detach()
    log_probs = model.distribution(states).log_prob(actions)
    expected = torch.autograd.grad(-(delta * (log_probs + values)).mean(1).sum(), list(model.parameters()))
    for gradient, expected_gradient in zip(actual, expected, strict=True):
        torch.testing.assert_close(gradient, expected_gradient, atol=1e-5, rtol=1e-4)


def test_fast_backward_matches_autograd() -> None:
    torch.manual_seed(0)
    model = ActorCritic(3, Continuous((-2.0, -2.0), (2.0, 2.0)), num_learners=2)
    columns = torch.randn(2, 10), torch.randn(2, 10), torch.randn(2, 10)
    batch = RolloutBatch(torch.randn(2, 10, 3), torch.randn(2, 10, 2), *columns)
    a2c_loss(model, batch, vf_coef=0.3, ent_coef=0.2).sum().backward()
    expected = [p.grad.clone() for p in model.parameters() if p.grad is not None]
    model.zero_grad()
    a2c_backward(model, batch, vf_coef=0.3, ent_coef=0.2)
    for p, gradient in zip(model.parameters(), expected, strict=True):
        torch.testing.assert_close(p.grad, gradient, atol=1e-6, rtol=1e-5)


def test_loss_supports_continuous_actions() -> None:
    torch.manual_seed(0)
    model = ActorCritic(3, Continuous((-2.0, -2.0), (2.0, 2.0)), num_learners=2)
    columns = torch.randn(2, 10), torch.randn(2, 10), torch.randn(2, 10)
    loss = a2c_loss(model, RolloutBatch(torch.randn(2, 10, 3), torch.randn(2, 10, 2), *columns))
    loss.sum().backward()
    assert model.log_std is not None
    assert model.log_std.grad is not None
    assert bool((model.log_std.grad != 0).all())


def test_reusing_activations_gives_equal_advantages_and_gradients() -> None:
    """One forward pass over all visited states yields the advantages and, from its first rows, the gradient."""
    torch.manual_seed(0)
    model = ActorCritic(4, Discrete(2), num_learners=2).double()
    collector = Collector(TensorEnvironments(CartPole(max_episode_steps=12), 6), num_learners=2)
    collector.observation = collector.observation.double()
    experience = collector.collect(lambda x: model.distribution(x.double()).sample(), 20)
    experience = replace(
        experience,
        observations=experience.observations.double(),
        next_observations=experience.next_observations.double(),
    )
    assert bool(experience.truncated[:-1].any())
    activations = model.forward_with_activations(visited_states(experience))
    batch = estimate_advantages(model, experience, activations, gamma=0.9, gae_lambda=0.7)
    recomputed = estimate_advantages(model, experience, gamma=0.9, gae_lambda=0.7)
    assert all(torch.equal(a, b) for a, b in zip(batch, recomputed, strict=True))
    a2c_loss(model, batch, ent_coef=0.2).sum().backward()
    expected = [p.grad.clone() for p in model.parameters() if p.grad is not None]
    a2c_backward(model, batch, activations, ent_coef=0.2)
    for p, gradient in zip(model.parameters(), expected, strict=True):
        torch.testing.assert_close(p.grad, gradient, atol=1e-12, rtol=0)
