"""A2C's loss: the book's two gradients, learner by learner."""

from dataclasses import replace

import torch

from parnassus.reinforcement.a2c import TUNED, Settings, a2c_backward, a2c_loss
from parnassus.reinforcement.actor_critic import ActorCritic
from parnassus.reinforcement.collector import Collector
from parnassus.reinforcement.environments import CartPole, Continuous, Discrete, Simulated
from parnassus.reinforcement.judged import Judged, judged, visited
from parnassus.reinforcement.tuned import settled


def test_the_loss_of_each_learner() -> None:
    torch.manual_seed(0)
    model = ActorCritic(4, Discrete(3), learners=2)
    batch = Judged(
        torch.randn(2, 30, 4),
        torch.randint(3, (2, 30)),
        torch.zeros(2, 30),
        torch.randn(2, 30) * torch.tensor([[1.0], [20.0]]),
        torch.randn(2, 30),
    )
    found = a2c_loss(model, batch, value_weight=0.3, entropy_weight=0.2)
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
    model = ActorCritic(4, Discrete(2), learners=2)
    collector = Collector(Simulated(CartPole(), 8), learners=2)
    seen = collector.collect(lambda x: model.law(x).draw(), 30)
    assert bool(seen.terminated.any())
    batch = judged(model, seen, discount=0.9, decay=0.0)
    a2c_loss(model, batch).sum().backward()
    found = [p.grad.clone() for p in model.parameters() if p.grad is not None]

    states, later, actions = (
        part.transpose(0, 1).flatten(1, 2) for part in (seen.observations, seen.led_to, seen.actions)
    )
    rewards, ended = (part.transpose(0, 1).flatten(1, 2) for part in (seen.rewards, seen.terminated))
    values = model.values(states)
    delta = (rewards + 0.9 * model.values(later) * ~ended - values).detach()
    chosen = model.law(states).log_prob(actions)
    wanted = torch.autograd.grad(-(delta * (chosen + values)).mean(1).sum(), list(model.parameters()))
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)


def test_slopes_written_down_are_those_of_the_loss() -> None:
    torch.manual_seed(0)
    model = ActorCritic(3, Continuous((-2.0, -2.0), (2.0, 2.0)), learners=2)
    numbers = torch.randn(2, 10), torch.randn(2, 10), torch.randn(2, 10)
    batch = Judged(torch.randn(2, 10, 3), torch.randn(2, 10, 2), *numbers)
    a2c_loss(model, batch, value_weight=0.3, entropy_weight=0.2).sum().backward()
    wanted = [p.grad.clone() for p in model.parameters() if p.grad is not None]
    model.zero_grad()
    a2c_backward(model, batch, value_weight=0.3, entropy_weight=0.2)
    for p, other in zip(model.parameters(), wanted, strict=True):
        torch.testing.assert_close(p.grad, other, atol=1e-6, rtol=1e-5)


def test_actions_may_be_vectors() -> None:
    torch.manual_seed(0)
    model = ActorCritic(3, Continuous((-2.0, -2.0), (2.0, 2.0)), learners=2)
    numbers = torch.randn(2, 10), torch.randn(2, 10), torch.randn(2, 10)
    loss = a2c_loss(model, Judged(torch.randn(2, 10, 3), torch.randn(2, 10, 2), *numbers))
    loss.sum().backward()
    assert model.log_std is not None
    assert model.log_std.grad is not None
    assert bool((model.log_std.grad != 0).all())


def test_settings_suit_the_environment() -> None:
    assert settled(TUNED["Pendulum-v1"], object()).discount == 0.9
    assert Settings().horizon == 5


def test_states_judged_already_need_not_be_asked_about_again() -> None:
    """One pass over all states visited gives both the advantages and, from its first rows, the gradient."""
    torch.manual_seed(0)
    model = ActorCritic(4, Discrete(2), learners=2).double()
    collector = Collector(Simulated(CartPole(longest=12), 6), learners=2)
    collector.observation = collector.observation.double()
    experience = collector.collect(lambda x: model.law(x.double()).draw(), 20)
    experience = replace(experience, observations=experience.observations.double(), led_to=experience.led_to.double())
    assert bool(experience.truncated[:-1].any())
    trace = model.traced(visited(experience))
    batch = judged(model, experience, trace, discount=0.9, decay=0.7)
    again = judged(model, experience, discount=0.9, decay=0.7)
    assert all(torch.equal(one, other) for one, other in zip(batch, again, strict=True))
    a2c_loss(model, batch, entropy_weight=0.2).sum().backward()
    wanted = [p.grad.clone() for p in model.parameters() if p.grad is not None]
    a2c_backward(model, batch, trace, entropy_weight=0.2)
    for p, other in zip(model.parameters(), wanted, strict=True):
        torch.testing.assert_close(p.grad, other, atol=1e-12, rtol=0)
