"""TRPO's step: the natural direction, and a divergence that is really held on real experience."""

import pytest
import torch

from parnassus.reinforcement.agents.action_distributions import Categorical, DiagonalGaussian
from parnassus.reinforcement.agents.actor_critic import ActorCritic
from parnassus.reinforcement.agents.actor_parameters import ActorParameters
from parnassus.reinforcement.agents.trpo import detach_distribution, line_search, mean_kl, trust_region_update
from parnassus.reinforcement.environments import CartPole, Pendulum, TensorEnvironments
from parnassus.reinforcement.environments.tensor_environments import Physics
from parnassus.reinforcement.experience.collector import Collector
from parnassus.reinforcement.experience.rollout_batch import RolloutBatch, estimate_advantages


def begun(physics: Physics, num_learners: int = 2) -> tuple[ActorCritic, Collector]:
    torch.manual_seed(0)
    model = ActorCritic(physics.features, physics.actions, hidden=(8,), num_learners=num_learners)
    return model, Collector(TensorEnvironments(physics, 4 * num_learners), num_learners)


def seen_by(model: ActorCritic, collector: Collector) -> RolloutBatch:
    experience = collector.collect(lambda x: model.distribution(x).sample(), 40)
    return estimate_advantages(model, experience, gamma=0.9, gae_lambda=0.95)


@pytest.mark.parametrize("physics", [CartPole(), Pendulum()])
def test_the_divergence_is_held_and_the_surrogate_grows(physics: Physics) -> None:
    model, collector = begun(physics)
    used = []
    for _ in range(4):
        seen = seen_by(model, collector)
        old, before = detach_distribution(model.distribution(seen.observations)), ActorParameters(model).read()
        judge = model.values(seen.observations).detach()
        moved = trust_region_update(model, seen, target_kl=0.02)
        new = model.distribution(seen.observations)
        torch.testing.assert_close(mean_kl(old, new), moved.kl)
        assert float(moved.kl.max()) <= 0.02
        gain = (seen.advantages - seen.advantages.mean(1, keepdim=True)) / seen.advantages.std(1, keepdim=True)
        grown = ((new.log_prob(seen.actions) - seen.log_probs).exp() * gain).mean(1)
        torch.testing.assert_close(grown.detach(), moved.gain, atol=1e-5, rtol=1e-3)
        stayed = (ActorParameters(model).read() == before).all(1)
        assert torch.equal(stayed, moved.kl == 0)
        assert not bool(stayed.any())
        assert torch.equal(model.values(seen.observations), judge)
        used.append(moved.kl)
    assert float(torch.stack(used).median()) > 0.01  # much of what is allowed is used


@pytest.mark.parametrize("physics", [CartPole(), Pendulum()])
def test_the_direction_is_that_of_the_fisher_matrix(physics: Physics) -> None:
    """F = Jᵀ M J in full: J of the logits or the means, M the curvature of the divergence in them."""
    model, collector = begun(physics, num_learners=1)
    seen = RolloutBatch(*(part.double() if part.is_floating_point() else part for part in seen_by(model, collector)))
    model = model.double()
    actor = ActorParameters(model)
    before = actor.read()
    law = model.distribution(seen.observations)
    jacobian = torch.stack(
        [
            actor.gradient(part, retain_graph=True)[0]
            for part in (law.logits if isinstance(law, Categorical) else law.mean).flatten()
        ]
    )
    if isinstance(law, Categorical):
        chances = law.logits.softmax(-1)[0]
        inner = torch.block_diag(*(torch.diag(p) - torch.outer(p, p) for p in chances)).detach()
        fisher = jacobian.T @ inner @ jacobian / len(chances)
    else:
        fisher = jacobian.T @ jacobian / len(jacobian)  # σ = 1 in the beginning
        fisher[-1, -1] += 2.0  # of log σ
    gain = (seen.advantages - seen.advantages.mean(1, keepdim=True)) / (seen.advantages.std(1, keepdim=True) + 1e-8)
    slope = actor.gradient((law.log_prob(seen.actions) * gain).mean())[0]
    damped = fisher + 0.01 * torch.eye(len(fisher), dtype=torch.float64)
    wanted = torch.linalg.solve(damped, slope)
    length = (2 * 1e-6 / (wanted @ damped @ wanted)).sqrt()
    moved = trust_region_update(model, seen, target_kl=1e-6, cg_damping=0.01, cg_max_steps=len(fisher))
    assert moved.backtracks.tolist() == [0]
    torch.testing.assert_close((actor.read() - before)[0], length * wanted, rtol=1e-4, atol=1e-9)


def test_each_learner_steps_as_if_alone() -> None:
    model, collector = begun(CartPole())
    seen = seen_by(model, collector)
    alone = ActorCritic(4, CartPole.actions, hidden=(8,))
    learner = 1
    ActorParameters(alone).write(ActorParameters(model).read()[[learner]])
    trust_region_update(alone, RolloutBatch(*(part[[learner]] for part in seen)), target_kl=0.01)
    trust_region_update(model, seen, target_kl=0.01)
    torch.testing.assert_close(
        ActorParameters(model).read()[[learner]], ActorParameters(alone).read(), atol=1e-4, rtol=1e-3
    )


def test_a_step_that_can_keep_no_promise_is_not_made() -> None:
    model, collector = begun(CartPole())
    seen, before = seen_by(model, collector), ActorParameters(model).read()
    slope = ActorParameters(model).gradient(
        (
            model.distribution(seen.observations).log_prob(seen.actions)
            * (seen.advantages - seen.advantages.mean(1, keepdim=True))
        )
        .mean(1)
        .sum()
    )
    moved = line_search(model, seen, before, -1e-2 * slope, target_kl=0.01, shrinking_factor=0.5, max_backtracks=4)
    assert torch.equal(ActorParameters(model).read(), before)
    assert moved.kl.tolist() == moved.gain.tolist() == [0, 0]
    assert moved.backtracks.tolist() == [4, 4]


def test_wrong_input() -> None:
    model, collector = begun(CartPole())
    with pytest.raises(ValueError, match=r"target_kl > 0.*got target_kl=0"):
        trust_region_update(model, seen_by(model, collector), target_kl=0.0)
    with pytest.raises(ValueError, match="of one kind; got Categorical and DiagonalGaussian"):
        mean_kl(Categorical(torch.zeros(1, 1, 2)), DiagonalGaussian(torch.zeros(1, 1, 1), torch.zeros(1, 1, 1)))
