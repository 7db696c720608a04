"""TRPO's step: the natural direction, and a divergence that is really held on real experience."""

import pytest
import torch

from parnassus.reinforcement.actor_critic import ActorCritic
from parnassus.reinforcement.actor_vector import ActorVector
from parnassus.reinforcement.collector import Collector
from parnassus.reinforcement.environments import CartPole, Pendulum, Simulated
from parnassus.reinforcement.environments.simulated import Physics
from parnassus.reinforcement.judged import Judged, judged
from parnassus.reinforcement.laws import Choice, Spread
from parnassus.reinforcement.trpo import held, kl_between, longest_that_keeps, natural_step


def begun(physics: Physics, learners: int = 2) -> tuple[ActorCritic, Collector]:
    torch.manual_seed(0)
    model = ActorCritic(physics.features, physics.actions, hidden=(8,), learners=learners)
    return model, Collector(Simulated(physics, 4 * learners), learners)


def seen_by(model: ActorCritic, collector: Collector) -> Judged:
    experience = collector.collect(lambda x: model.law(x).draw(), 40)
    return judged(model, experience, discount=0.9, decay=0.95)


@pytest.mark.parametrize("physics", [CartPole(), Pendulum()])
def test_the_divergence_is_held_and_the_surrogate_grows(physics: Physics) -> None:
    model, collector = begun(physics)
    used = []
    for _ in range(4):
        seen = seen_by(model, collector)
        old, before = held(model.law(seen.observations)), ActorVector(model).read()
        judge = model.values(seen.observations).detach()
        moved = natural_step(model, seen, threshold=0.02)
        new = model.law(seen.observations)
        torch.testing.assert_close(kl_between(old, new), moved.kl)
        assert float(moved.kl.max()) <= 0.02
        gain = (seen.advantages - seen.advantages.mean(1, keepdim=True)) / seen.advantages.std(1, keepdim=True)
        grown = ((new.log_prob(seen.actions) - seen.log_probs).exp() * gain).mean(1)
        torch.testing.assert_close(grown.detach(), moved.gain, atol=1e-5, rtol=1e-3)
        stayed = (ActorVector(model).read() == before).all(1)
        assert torch.equal(stayed, moved.kl == 0)
        assert not bool(stayed.any())
        assert torch.equal(model.values(seen.observations), judge)
        used.append(moved.kl)
    assert float(torch.stack(used).median()) > 0.01  # much of what is allowed is used


@pytest.mark.parametrize("physics", [CartPole(), Pendulum()])
def test_the_direction_is_that_of_the_fisher_matrix(physics: Physics) -> None:
    """F = Jᵀ M J in full: J of the logits or the means, M the curvature of the divergence in them."""
    model, collector = begun(physics, learners=1)
    seen = Judged(*(part.double() if part.is_floating_point() else part for part in seen_by(model, collector)))
    model = model.double()
    actor = ActorVector(model)
    before = actor.read()
    law = model.law(seen.observations)
    jacobian = torch.stack(
        [actor.slope(part, keep=True)[0] for part in (law.logits if isinstance(law, Choice) else law.mean).flatten()]
    )
    if isinstance(law, Choice):
        chances = law.logits.softmax(-1)[0]
        inner = torch.block_diag(*(torch.diag(p) - torch.outer(p, p) for p in chances)).detach()
        fisher = jacobian.T @ inner @ jacobian / len(chances)
    else:
        fisher = jacobian.T @ jacobian / len(jacobian)  # σ = 1 in the beginning
        fisher[-1, -1] += 2.0  # of log σ
    gain = (seen.advantages - seen.advantages.mean(1, keepdim=True)) / (seen.advantages.std(1, keepdim=True) + 1e-8)
    slope = actor.slope((law.log_prob(seen.actions) * gain).mean())[0]
    damped = fisher + 0.01 * torch.eye(len(fisher), dtype=torch.float64)
    wanted = torch.linalg.solve(damped, slope)
    length = (2 * 1e-6 / (wanted @ damped @ wanted)).sqrt()
    moved = natural_step(model, seen, threshold=1e-6, damping=0.01, products=len(fisher))
    assert moved.shortened.tolist() == [0]
    torch.testing.assert_close((actor.read() - before)[0], length * wanted, rtol=1e-4, atol=1e-9)


def test_each_learner_steps_as_if_alone() -> None:
    model, collector = begun(CartPole())
    seen = seen_by(model, collector)
    alone = ActorCritic(4, CartPole.actions, hidden=(8,))
    learner = 1
    ActorVector(alone).write(ActorVector(model).read()[[learner]])
    natural_step(alone, Judged(*(part[[learner]] for part in seen)), threshold=0.01)
    natural_step(model, seen, threshold=0.01)
    torch.testing.assert_close(ActorVector(model).read()[[learner]], ActorVector(alone).read(), atol=1e-4, rtol=1e-3)


def test_a_step_that_can_keep_no_promise_is_not_made() -> None:
    model, collector = begun(CartPole())
    seen, before = seen_by(model, collector), ActorVector(model).read()
    slope = ActorVector(model).slope(
        (
            model.law(seen.observations).log_prob(seen.actions)
            * (seen.advantages - seen.advantages.mean(1, keepdim=True))
        )
        .mean(1)
        .sum()
    )
    moved = longest_that_keeps(model, seen, before, -1e-2 * slope, threshold=0.01, shrink=0.5, tries=4)
    assert torch.equal(ActorVector(model).read(), before)
    assert moved.kl.tolist() == moved.gain.tolist() == [0, 0]
    assert moved.shortened.tolist() == [4, 4]


def test_wrong_input() -> None:
    model, collector = begun(CartPole())
    with pytest.raises(ValueError, match=r"a positive threshold.*got threshold=0"):
        natural_step(model, seen_by(model, collector), threshold=0.0)
    with pytest.raises(ValueError, match="laws of one kind can be compared; got Choice and Spread"):
        kl_between(Choice(torch.zeros(1, 1, 2)), Spread(torch.zeros(1, 1, 1), torch.zeros(1, 1, 1)))
