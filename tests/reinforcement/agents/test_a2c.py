"""A2C's loss: the book's two gradients, learner by learner."""

from dataclasses import replace

import torch

from parnassus.reinforcement.agents.a2c import a2c_loss
from parnassus.reinforcement.agents.actor_critic import ActorCritic
from parnassus.reinforcement.environments import CartPole, Continuous, Discrete, TensorEnvironments
from parnassus.reinforcement.experience.collector import Collector
from parnassus.reinforcement.experience.rollout_batch import RolloutBatch, estimate_advantages, visited_states
from parnassus.reinforcement.fast.a2c_backward import a2c_backward


def test_the_loss_of_each_learner() -> None:
    torch.manual_seed(0)
    model = ActorCritic(4, Discrete(3), num_learners=2)
    batch = RolloutBatch(
        torch.randn(2, 30, 4),
        torch.randint(3, (2, 30)),
        torch.zeros(2, 30),
        torch.randn(2, 30) * torch.tensor([[1.0], [20.0]]),
        torch.randn(2, 30),
    )
    found = a2c_loss(model, batch, vf_coef=0.3, ent_coef=0.2)
    law, values = model(batch.observations)
    for learner in range(2):
        logs = law.logits[learner].log_softmax(1)
        gain = (batch.advantages[learner] * logs.gather(1, batch.actions[learner, :, None])[:, 0]).mean()
        error = (values[learner] - batch.returns[learner]).square().mean()
        entropy = -(logs.exp() * logs).sum(1).mean()
        assert torch.allclose(found[learner], -gain + 0.3 * error - 0.2 * entropy, atol=1e-5)


def test_one_step_errors_give_the_gradients_of_the_book() -> None:
    """λ = 0: −E[δ ∇log π] for the actor and −E[δ ∇v] for the critic, the target held (book eqs. 18.11-18.12)."""
    torch.manual_seed(0)
    model = ActorCritic(4, Discrete(2), num_learners=2)
    collector = Collector(TensorEnvironments(CartPole(), 8), num_learners=2)
    seen = collector.collect(lambda x: model.distribution(x).sample(), 30)
    assert bool(seen.terminated.any())
    batch = estimate_advantages(model, seen, gamma=0.9, gae_lambda=0.0)
    a2c_loss(model, batch).sum().backward()
    found = [p.grad.clone() for p in model.parameters() if p.grad is not None]

    states, later, actions = (
        part.transpose(0, 1).flatten(1, 2) for part in (seen.observations, seen.next_observations, seen.actions)
    )
    rewards, ended = (part.transpose(0, 1).flatten(1, 2) for part in (seen.rewards, seen.terminated))
    values = model.values(states)
    delta = (rewards + 0.9 * model.values(later) * ~ended - values).detach()
    chosen = model.distribution(states).log_prob(actions)
    wanted = torch.autograd.grad(-(delta * (chosen + values)).mean(1).sum(), list(model.parameters()))
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)


def test_the_fast_backward_pass_is_that_of_autograd() -> None:
    torch.manual_seed(0)
    model = ActorCritic(3, Continuous((-2.0, -2.0), (2.0, 2.0)), num_learners=2)
    numbers = torch.randn(2, 10), torch.randn(2, 10), torch.randn(2, 10)
    batch = RolloutBatch(torch.randn(2, 10, 3), torch.randn(2, 10, 2), *numbers)
    a2c_loss(model, batch, vf_coef=0.3, ent_coef=0.2).sum().backward()
    wanted = [p.grad.clone() for p in model.parameters() if p.grad is not None]
    model.zero_grad()
    a2c_backward(model, batch, vf_coef=0.3, ent_coef=0.2)
    for p, other in zip(model.parameters(), wanted, strict=True):
        torch.testing.assert_close(p.grad, other, atol=1e-6, rtol=1e-5)


def test_actions_may_be_vectors() -> None:
    torch.manual_seed(0)
    model = ActorCritic(3, Continuous((-2.0, -2.0), (2.0, 2.0)), num_learners=2)
    numbers = torch.randn(2, 10), torch.randn(2, 10), torch.randn(2, 10)
    loss = a2c_loss(model, RolloutBatch(torch.randn(2, 10, 3), torch.randn(2, 10, 2), *numbers))
    loss.sum().backward()
    assert model.log_std is not None
    assert model.log_std.grad is not None
    assert bool((model.log_std.grad != 0).all())


def test_states_judged_already_need_not_be_asked_about_again() -> None:
    """One pass over all states visited gives both the advantages and, from its first rows, the gradient."""
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
    trace = model.forward_with_trace(visited_states(experience))
    batch = estimate_advantages(model, experience, trace, gamma=0.9, gae_lambda=0.7)
    again = estimate_advantages(model, experience, gamma=0.9, gae_lambda=0.7)
    assert all(torch.equal(one, other) for one, other in zip(batch, again, strict=True))
    a2c_loss(model, batch, ent_coef=0.2).sum().backward()
    wanted = [p.grad.clone() for p in model.parameters() if p.grad is not None]
    a2c_backward(model, batch, trace, ent_coef=0.2)
    for p, other in zip(model.parameters(), wanted, strict=True):
        torch.testing.assert_close(p.grad, other, atol=1e-12, rtol=0)
