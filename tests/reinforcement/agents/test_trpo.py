"""TRPO update: natural gradient direction and KL constraint."""

import pytest
import torch

from parnassus.reinforcement.agents.action_distributions import Categorical, DiagonalGaussian
from parnassus.reinforcement.agents.actor_critic import ActorCritic
from parnassus.reinforcement.agents.actor_parameters import ActorParameters
from parnassus.reinforcement.agents.trpo import detach_distribution, line_search, mean_kl, trust_region_update
from parnassus.reinforcement.environments import CartPole, Pendulum, TensorEnvironments
from parnassus.reinforcement.environments.tensor_environments import Dynamics
from parnassus.reinforcement.experience.collector import Collector
from parnassus.reinforcement.experience.rollout_batch import RolloutBatch, estimate_advantages


def make_model(dynamics: Dynamics, num_learners: int = 2) -> tuple[ActorCritic, Collector]:
    torch.manual_seed(0)
    model = ActorCritic(dynamics.features, dynamics.actions, hidden=(8,), num_learners=num_learners)
    return model, Collector(TensorEnvironments(dynamics, 4 * num_learners), num_learners)


def collect_batch(model: ActorCritic, collector: Collector) -> RolloutBatch:
    experience = collector.collect(lambda x: model.distribution(x).sample(), 40)
    return estimate_advantages(model, experience, gamma=0.9, gae_lambda=0.95)


@pytest.mark.parametrize("dynamics", [CartPole(), Pendulum()])
def test_update_respects_the_kl_limit_and_improves_the_surrogate(dynamics: Dynamics) -> None:
    model, collector = make_model(dynamics)
    divergences = []
    for _ in range(4):
        batch = collect_batch(model, collector)
        old, before = detach_distribution(model.distribution(batch.observations)), ActorParameters(model).read()
        values = model.values(batch.observations).detach()
        update = trust_region_update(model, batch, target_kl=0.02)
        new = model.distribution(batch.observations)
        torch.testing.assert_close(mean_kl(old, new), update.kl)
        assert float(update.kl.max()) <= 0.02
        advantages = (batch.advantages - batch.advantages.mean(1, keepdim=True)) / batch.advantages.std(1, keepdim=True)
        surrogate = ((new.log_prob(batch.actions) - batch.log_probs).exp() * advantages).mean(1)
        torch.testing.assert_close(surrogate.detach(), update.gain, atol=1e-5, rtol=1e-3)
        unchanged = (ActorParameters(model).read() == before).all(1)
        assert torch.equal(unchanged, update.kl == 0)
        assert not bool(unchanged.any())
        assert torch.equal(model.values(batch.observations), values)
        divergences.append(update.kl)
    assert float(torch.stack(divergences).median()) > 0.01  # most of the trust region is used


@pytest.mark.parametrize("dynamics", [CartPole(), Pendulum()])
def test_update_direction_solves_the_fisher_system(dynamics: Dynamics) -> None:
    """F = Jᵀ M J with J the Jacobian of the logits or means and M the Hessian of the KL divergence in them."""
    model, collector = make_model(dynamics, num_learners=1)
    batch = RolloutBatch(
        *(part.double() if part.is_floating_point() else part for part in collect_batch(model, collector))
    )
    model = model.double()
    actor = ActorParameters(model)
    before = actor.read()
    distribution = model.distribution(batch.observations)
    jacobian = torch.stack(
        [
            actor.gradient(part, retain_graph=True)[0]
            for part in (distribution.logits if isinstance(distribution, Categorical) else distribution.mean).flatten()
        ]
    )
    if isinstance(distribution, Categorical):
        probabilities = distribution.logits.softmax(-1)[0]
        hessian = torch.block_diag(*(torch.diag(p) - torch.outer(p, p) for p in probabilities)).detach()
        fisher = jacobian.T @ hessian @ jacobian / len(probabilities)
    else:
        fisher = jacobian.T @ jacobian / len(jacobian)  # σ = 1 initially
        fisher[-1, -1] += 2.0  # Hessian in log σ
    advantages = (batch.advantages - batch.advantages.mean(1, keepdim=True)) / (
        batch.advantages.std(1, keepdim=True) + 1e-8
    )
    gradient = actor.gradient((distribution.log_prob(batch.actions) * advantages).mean())[0]
    damped = fisher + 0.01 * torch.eye(len(fisher), dtype=torch.float64)
    direction = torch.linalg.solve(damped, gradient)
    step_size = (2 * 1e-6 / (direction @ damped @ direction)).sqrt()
    update = trust_region_update(model, batch, target_kl=1e-6, cg_damping=0.01, cg_max_steps=len(fisher))
    assert update.backtracks.tolist() == [0]
    torch.testing.assert_close((actor.read() - before)[0], step_size * direction, rtol=1e-4, atol=1e-9)


def test_learners_are_updated_independently() -> None:
    model, collector = make_model(CartPole())
    batch = collect_batch(model, collector)
    single = ActorCritic(4, CartPole.actions, hidden=(8,))
    learner = 1
    ActorParameters(single).write(ActorParameters(model).read()[[learner]])
    trust_region_update(single, RolloutBatch(*(part[[learner]] for part in batch)), target_kl=0.01)
    trust_region_update(model, batch, target_kl=0.01)
    torch.testing.assert_close(
        ActorParameters(model).read()[[learner]], ActorParameters(single).read(), atol=1e-4, rtol=1e-3
    )


def test_failed_line_search_leaves_parameters_unchanged() -> None:
    model, collector = make_model(CartPole())
    batch, before = collect_batch(model, collector), ActorParameters(model).read()
    gradient = ActorParameters(model).gradient(
        (
            model.distribution(batch.observations).log_prob(batch.actions)
            * (batch.advantages - batch.advantages.mean(1, keepdim=True))
        )
        .mean(1)
        .sum()
    )
    update = line_search(model, batch, before, -1e-2 * gradient, target_kl=0.01, shrinking_factor=0.5, max_backtracks=4)
    assert torch.equal(ActorParameters(model).read(), before)
    assert update.kl.tolist() == update.gain.tolist() == [0, 0]
    assert update.backtracks.tolist() == [4, 4]


def test_invalid_arguments_raise_value_error() -> None:
    model, collector = make_model(CartPole())
    with pytest.raises(ValueError, match=r"target_kl > 0.*got target_kl=0"):
        trust_region_update(model, collect_batch(model, collector), target_kl=0.0)
    with pytest.raises(ValueError, match="the same type; got Categorical and DiagonalGaussian"):
        mean_kl(Categorical(torch.zeros(1, 1, 2)), DiagonalGaussian(torch.zeros(1, 1, 1), torch.zeros(1, 1, 1)))
