"""Stopping once the reward threshold is reached."""

from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.reinforcement.environments import CartPole, Environments, TensorEnvironments
from parnassus.reinforcement.evaluation.episode_returns import MultiLearnerExperiment
from parnassus.reinforcement.evaluation.reward_thresholds import REWARD_THRESHOLDS
from parnassus.reinforcement.evaluation.stop_on_reward_threshold import StopOnRewardThreshold, has_reached_threshold
from parnassus.reinforcement.experience.collector import RECENT, Collector
from parnassus.reinforcement.experiments import ppo
from parnassus.runs.metrics import read_metrics
from parnassus.train import Options
from parnassus.train.execute import Recipe, execute, start


def balance(x: Float[Tensor, "learners envs 4"]) -> Int[Tensor, "learners envs"]:
    """A linear policy that balances the pole for 500 steps."""
    position, velocity, angle, angular_velocity = x.unbind(-1)
    return (angle + 0.3 * angular_velocity + 0.03 * position + 0.06 * velocity > 0).long()


def push_left(x: Float[Tensor, "learners envs 4"]) -> Int[Tensor, "learners envs"]:
    return torch.zeros(x.shape[:2], dtype=torch.int64)


@dataclass(frozen=True)
class FixedPolicies:
    """Learners whose model is a fixed policy."""

    env: str = "CartPole-v1"
    num_learners: int = 2
    n_eval_episodes: int = 5

    def make_environments(self, n_envs: int, device: torch.device | str = "cpu") -> Environments:
        return TensorEnvironments(CartPole(), n_envs, device=device)

    def act(self, model: object, x: Tensor, *, sample_actions: bool = False) -> Tensor:
        assert callable(model)
        actions: Tensor = model(x)
        return actions


@pytest.fixture(scope="module")
def collector_of_solved_episodes() -> Collector:
    """120 episodes of maximal return for each of two learners."""
    torch.manual_seed(0)
    collector = Collector(TensorEnvironments(CartPole(), 120), 2)
    collector.collect(balance, 1_000)
    return collector


def test_fixed_policies_satisfy_the_learners_protocol() -> None:
    assert isinstance(FixedPolicies(), MultiLearnerExperiment)


def test_threshold_requires_a_hundred_finished_episodes() -> None:
    torch.manual_seed(0)
    collector = Collector(TensorEnvironments(CartPole(), 90))
    collector.collect(balance, 501)
    assert collector.recent_returns == [500.0]
    assert not has_reached_threshold(collector, 475.0)
    collector.collect(balance, 500)
    assert has_reached_threshold(collector, 475.0)
    assert not has_reached_threshold(collector, 500.5)


def test_threshold_must_be_reached_by_every_learner(collector_of_solved_episodes: Collector) -> None:
    assert has_reached_threshold(collector_of_solved_episodes, 475.0)
    before = collector_of_solved_episodes.state_dict()
    collector_of_solved_episodes.returns[1] = [470.0] * RECENT
    assert not has_reached_threshold(collector_of_solved_episodes, 475.0)
    collector_of_solved_episodes.load_state_dict(before)


def test_is_solved_requires_the_threshold_in_evaluation(collector_of_solved_episodes: Collector) -> None:
    stop = StopOnRewardThreshold(FixedPolicies())
    assert not stop.is_solved(collector_of_solved_episodes, lambda x: torch.cat([balance(x[:1]), push_left(x[1:])]))
    assert stop.returns is None
    assert "is not solved after 5,000 steps" in stop.describe(5_000, 1.0)
    assert stop.is_solved(collector_of_solved_episodes, balance)
    assert stop.returns is not None
    assert stop.returns.tolist() == [[500.0] * 5] * 2
    assert "solved after 5,000 steps of each learner and 1.0 seconds" in stop.describe(5_000, 1.0)


def test_no_evaluation_below_the_threshold_in_training() -> None:
    torch.manual_seed(0)
    collector = Collector(TensorEnvironments(CartPole(), 4), 2)
    collector.collect(push_left, 1_000)

    def fail_if_called(x: Tensor) -> Tensor:
        raise AssertionError(f"the policy was evaluated in {len(x)} states")

    assert not StopOnRewardThreshold(FixedPolicies()).is_solved(collector, fail_if_called)


def test_environment_without_reward_threshold_raises_value_error() -> None:
    assert StopOnRewardThreshold(FixedPolicies()).threshold == 475.0
    with pytest.raises(ValueError, match="gymnasium defines no reward threshold for Pendulum-v1"):
        StopOnRewardThreshold(FixedPolicies(env="Pendulum-v1"))


def test_run_stops_when_solved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(REWARD_THRESHOLDS, "CartPole-v1", 20.0)  # reached quickly
    experiment = ppo.Experiment(num_learners=2, n_eval_episodes=4, n_envs=16, n_epochs=4, stop_on_reward_threshold=True)
    recipe, options = Recipe("ppo", "PPO", experiment, {}), Options(quiet=True, device="cpu")
    folder = start(recipe, options, tmp_path)
    results = execute(recipe, options, folder)
    last_step = read_metrics(folder.path / "metrics.csv")["return/1"][0][-1]
    assert last_step < experiment.total_timesteps // 4
    assert results["return_worst"] >= 20
    assert f"solved after {last_step:,} steps" in (folder.path / "report.html").read_text()
