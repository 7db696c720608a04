"""What counts as solved, while learning and at one's best."""

from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.reinforcement.environments import CartPole, Environments, TensorEnvironments
from parnassus.reinforcement.evaluation.episode_returns import Learners
from parnassus.reinforcement.evaluation.reward_thresholds import REWARD_THRESHOLDS
from parnassus.reinforcement.evaluation.stop_on_reward_threshold import StopOnRewardThreshold, has_reached_threshold
from parnassus.reinforcement.experience.collector import RECENT, Collector
from parnassus.reinforcement.experiments import ppo
from parnassus.runs.metrics import read_metrics
from parnassus.train import Options
from parnassus.train.execute import Recipe, execute, start


def balanced(x: Float[Tensor, "learners envs 4"]) -> Int[Tensor, "learners envs"]:
    """Push to the side to which the pole falls and the cart drifts: it stands for 500 steps."""
    place, speed, angle, turning = x.unbind(-1)
    return (angle + 0.3 * turning + 0.03 * place + 0.06 * speed > 0).long()


def to_the_left(x: Float[Tensor, "learners envs 4"]) -> Int[Tensor, "learners envs"]:
    return torch.zeros(x.shape[:2], dtype=torch.int64)


@dataclass(frozen=True)
class Players:
    """Learners that have nothing to learn: their model is what they do."""

    env: str = "CartPole-v1"
    num_learners: int = 2
    eval_episodes: int = 5

    def make_environments(self, n_envs: int, device: torch.device | str = "cpu") -> Environments:
        return TensorEnvironments(CartPole(), n_envs, device=device)

    def act(self, model: object, x: Tensor, *, sample_actions: bool = False) -> Tensor:
        assert callable(model)
        chosen: Tensor = model(x)
        return chosen


@pytest.fixture(scope="module")
def lived() -> Collector:
    """A hundred and twenty episodes that stood to the end, of each of two learners."""
    torch.manual_seed(0)
    collector = Collector(TensorEnvironments(CartPole(), 120), 2)
    collector.collect(balanced, 1_000)
    return collector


def test_players_are_learners() -> None:
    assert isinstance(Players(), Learners)


def test_a_hundred_episodes_must_be_over() -> None:
    torch.manual_seed(0)
    collector = Collector(TensorEnvironments(CartPole(), 90))
    collector.collect(balanced, 501)
    assert collector.recent_returns == [500.0]
    assert not has_reached_threshold(collector, 475.0)
    collector.collect(balanced, 500)
    assert has_reached_threshold(collector, 475.0)
    assert not has_reached_threshold(collector, 500.5)


def test_every_learner_must_have_solved_it(lived: Collector) -> None:
    assert has_reached_threshold(lived, 475.0)
    before = lived.state_dict()
    lived.returns[1] = [470.0] * RECENT
    assert not has_reached_threshold(lived, 475.0)
    lived.load_state_dict(before)


def test_solved_are_those_who_stand_at_their_best_too(lived: Collector) -> None:
    until = StopOnRewardThreshold(Players())
    assert not until.is_solved(lived, lambda x: torch.cat([balanced(x[:1]), to_the_left(x[1:])]))
    assert until.returns is None
    assert "is not solved after 5,000 steps" in until.describe(5_000, 1.0)
    assert until.is_solved(lived, balanced)
    assert until.returns is not None
    assert until.returns.tolist() == [[500.0] * 5] * 2
    assert "solved after 5,000 steps of each learner and 1.0 seconds" in until.describe(5_000, 1.0)


def test_whole_episodes_are_played_only_when_it_is_worth_it() -> None:
    torch.manual_seed(0)
    collector = Collector(TensorEnvironments(CartPole(), 4), 2)
    collector.collect(to_the_left, 1_000)

    def asked(x: Tensor) -> Tensor:
        raise AssertionError(f"it was asked what to do in {len(x)} states")

    assert not StopOnRewardThreshold(Players()).is_solved(collector, asked)


def test_an_environment_without_a_goal() -> None:
    assert StopOnRewardThreshold(Players()).threshold == 475.0
    with pytest.raises(ValueError, match="gymnasium defines no reward threshold for Pendulum-v1"):
        StopOnRewardThreshold(Players(env="Pendulum-v1"))


def test_a_run_stops_as_soon_as_it_is_solved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(REWARD_THRESHOLDS, "CartPole-v1", 20.0)  # soon learned
    experiment = ppo.Experiment(num_learners=2, eval_episodes=4, n_envs=16, n_epochs=4, stop_when_solved=True)
    recipe, options = Recipe("ppo", "PPO", experiment, {}), Options(quiet=True, device="cpu")
    folder = start(recipe, options, tmp_path)
    reached = execute(recipe, options, folder)
    last = read_metrics(folder.path / "metrics.csv")["return/1"][0][-1]
    assert last < experiment.total_timesteps // 4
    assert reached["return_worst"] >= 20
    assert f"solved after {last:,} steps" in (folder.path / "report.html").read_text()
