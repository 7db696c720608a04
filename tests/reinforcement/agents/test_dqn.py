"""DQN: loss, exploration, target network and resuming."""

from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.nn.utils import parameters_to_vector

from parnassus.losses import huber_loss
from parnassus.reinforcement.agents.dqn import (
    DQNSettings,
    count_discrete_actions,
    dqn_loss,
    epsilon_greedy,
    epsilon_greedy_actor,
    q_loss,
    update_target,
)
from parnassus.reinforcement.agents.q_learning_targets import squared_td_loss, values_of_actions
from parnassus.reinforcement.agents.q_network import DuelingQNetwork, QNetwork
from parnassus.reinforcement.environments import Continuous, Discrete
from parnassus.reinforcement.experience import replay_buffer
from parnassus.reinforcement.experience.replay_buffer import ReplaySample
from parnassus.reinforcement.experience.transitions import Transitions
from parnassus.reinforcement.experiments.dqn import Experiment
from parnassus.reinforcement.fast.dqn_backward import dqn_backward, q_loss_gradient
from parnassus.train import Options
from parnassus.train.execute import Recipe, execute, start

from ..numbered_transitions import numbered_transitions

OPTIONS = Options(quiet=True, device="cpu", save_steps=1)


def replay_sample(weights: torch.Tensor | None = None) -> ReplaySample:
    return ReplaySample(
        numbered_transitions(0, 6)._replace(actions=torch.randint(4, (2, 6))), weights, torch.zeros(2, 6).long()
    )


def test_q_loss_matches_squared_and_huber_loss() -> None:
    torch.manual_seed(0)
    q, targets, batch = torch.randn(2, 6, 4), 3 * torch.randn(2, 6), replay_sample()
    loss, predictions = q_loss(q, batch, targets), values_of_actions(q, batch.transitions.actions)
    for learner in range(2):
        torch.testing.assert_close(loss.total[learner], squared_td_loss(predictions[learner], targets[learner]))
    torch.testing.assert_close(loss.errors, targets - predictions)
    torch.testing.assert_close(
        q_loss(q, batch, targets, huber_delta=1.0).total, huber_loss(predictions, targets).mean(1)
    )
    weights = torch.rand(2, 6)
    weighted = q_loss(q, batch._replace(weights=weights), targets, huber_delta=1.0)
    torch.testing.assert_close(weighted.total, (weights * huber_loss(predictions, targets)).mean(1))


def test_q_loss_gradient_is_the_negative_mean_error() -> None:
    q = torch.randn(2, 6, 4).requires_grad_()
    targets, batch = 3 * torch.randn(2, 6), replay_sample()
    loss = q_loss(q, batch, targets)
    loss.total.sum().backward()
    assert q.grad is not None
    torch.testing.assert_close(values_of_actions(q.grad, batch.transitions.actions), -loss.errors / 6)


@pytest.mark.parametrize("huber_delta", [torch.inf, 1.0])
@pytest.mark.parametrize("weights", [None, torch.rand(2, 6)], ids=["unweighted", "weighted"])
def test_q_loss_gradient_matches_autograd(huber_delta: float, weights: torch.Tensor | None) -> None:
    torch.manual_seed(0)
    q = torch.randn(2, 6, 4).requires_grad_()
    targets, batch = 3 * torch.randn(2, 6), replay_sample(weights)
    loss = q_loss(q, batch, targets, huber_delta=huber_delta)
    (expected,) = torch.autograd.grad(loss.total.sum(), q)
    gradient, errors = q_loss_gradient(q.detach(), batch, targets, huber_delta=huber_delta)
    torch.testing.assert_close(gradient, expected)
    torch.testing.assert_close(errors, loss.errors)


@pytest.mark.parametrize("network", [QNetwork, DuelingQNetwork])
@pytest.mark.parametrize("weights", [None, torch.rand(2, 6)], ids=["unweighted", "weighted"])
def test_dqn_backward_matches_autograd(
    network: type[QNetwork] | type[DuelingQNetwork], weights: torch.Tensor | None
) -> None:
    torch.manual_seed(0)
    model, batch, targets = network(3, 4, hidden=(8, 8), num_learners=2), replay_sample(weights), 3 * torch.randn(2, 6)
    loss = dqn_loss(model, batch, targets, huber_delta=1.0)
    expected = torch.autograd.grad(loss.total.sum(), list(model.parameters()))
    torch.testing.assert_close(dqn_backward(model, batch, targets, huber_delta=1.0), loss.errors)
    for parameter, gradient in zip(model.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient, atol=1e-6, rtol=1e-5)


def test_epsilon_greedy_frequencies_and_schedule() -> None:
    torch.manual_seed(0)
    q = torch.tensor([0.0, 2.0, 1.0, 1.5]).expand(40_000, 4)
    frequencies = torch.bincount(epsilon_greedy(q, 0.4), minlength=4) / 40_000
    torch.testing.assert_close(frequencies, torch.tensor([0.1, 0.7, 0.1, 0.1]), atol=0.01, rtol=0)
    assert bool((epsilon_greedy(q, 0.0) == 1).all())
    settings = DQNSettings(total_timesteps=1_000, exploration_fraction=0.2, exploration_final_eps=0.1)
    assert [settings.epsilon_at(step) for step in (0, 100, 200, 900)] == pytest.approx([1.0, 0.55, 0.1, 0.1])


def test_epsilon_greedy_actor_follows_its_schedule() -> None:
    torch.manual_seed(0)
    epsilons = torch.tensor([1.0, 0.4, 0.0])[:, None, None].expand(3, 2, 20_000)
    act = epsilon_greedy_actor(lambda x: -(x - torch.arange(4.0)).abs(), 4, epsilons)
    for epsilon in (1.0, 0.4, 0.0):
        actions = act(torch.full((2, 20_000, 1), 2.0))
        for learner_actions in actions:
            frequencies = torch.bincount(learner_actions, minlength=4) / 20_000
            expected = torch.full((4,), epsilon / 4) + (1 - epsilon) * torch.eye(4)[2]
            torch.testing.assert_close(frequencies, expected, atol=0.02, rtol=0)


def test_target_network_changes_only_by_update_target() -> None:
    model = QNetwork(4, 2, hidden=(8,))
    target = deepcopy(model).requires_grad_(False)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(1)
    assert not torch.equal(parameters_to_vector(target.parameters()), parameters_to_vector(model.parameters()))
    update_target(target, model)
    assert torch.equal(parameters_to_vector(target.parameters()), parameters_to_vector(model.parameters()))


def test_soft_target_updates_compute_a_running_mean() -> None:
    model = QNetwork(4, 2, hidden=(8,))
    mean = deepcopy(model).requires_grad_(False)
    total = torch.zeros_like(parameters_to_vector(model.parameters()))
    for step in range(5):
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter))
        total += parameters_to_vector(model.parameters()).detach()
        update_target(mean, model, 1 / (step + 1))
    torch.testing.assert_close(parameters_to_vector(mean.parameters()), total / 5)
    with pytest.raises(ValueError, match=r"tau must be in \(0, 1\]; got tau=0"):
        update_target(mean, model, 0.0)


def test_continuous_actions_raise_value_error() -> None:
    assert count_discrete_actions(Discrete(3), "MountainCar-v0") == 3
    with pytest.raises(ValueError, match="a finite number of actions; Pendulum-v1 has continuous actions"):
        count_discrete_actions(Continuous((-2.0,), (2.0,)), "Pendulum-v1")


SMALL = Experiment(
    num_learners=2, n_eval_episodes=2, width=8, n_steps=1, double_q=False, total_timesteps=256, n_envs=2, train_freq=32,
    gradient_steps=4, batch_size=16, buffer_size=100, learning_starts=32, target_update_interval=50,
)  # fmt: skip


@pytest.mark.parametrize(
    "experiment",
    [SMALL, replace(SMALL, decay_learning_rate=False, double_q=True, dueling=True, prioritized_replay=True, n_steps=3)],
    ids=["plain", "all extensions"],
)
def test_resume_is_bit_identical(experiment: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = Recipe("dqn", "DQN", experiment, {})
    uninterrupted = start(recipe, OPTIONS, tmp_path / "uninterrupted")
    results = execute(recipe, OPTIONS, uninterrupted)

    add = replay_buffer.ReplayBuffer.add
    calls = 0

    def failing_add(self: replay_buffer.ReplayBuffer, transitions: Transitions) -> None:
        nonlocal calls
        calls += 1
        if calls == 6:
            raise ZeroDivisionError
        add(self, transitions)

    monkeypatch.setattr(replay_buffer.ReplayBuffer, "add", failing_add)
    folder = start(recipe, OPTIONS, tmp_path / "killed")
    with pytest.raises(ZeroDivisionError):
        execute(recipe, OPTIONS, folder)
    resumed = execute(recipe, OPTIONS, folder)
    for name in ("metrics.csv", "weights.safetensors"):
        assert (folder.path / name).read_bytes() == (uninterrupted.path / name).read_bytes()
    assert resumed["return_mean"] == results["return_mean"]


def test_network_is_not_evaluated_when_every_action_is_random() -> None:
    calls: list[int] = []

    def q(x: torch.Tensor) -> torch.Tensor:
        calls.append(len(x))
        return torch.zeros(*x.shape[:2], 3)

    act = epsilon_greedy_actor(q, 3, torch.tensor([1.0, 0.0, 1.0])[:, None, None].expand(3, 2, 5))
    for expected in (0, 1, 1):
        act(torch.zeros(2, 5, 4))
        assert len(calls) == expected
