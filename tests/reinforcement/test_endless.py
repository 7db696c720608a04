"""Environments without a time limit whose episodes do not end."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch import Tensor

from parnassus.reinforcement.agents.reinforce import collect_episodes
from parnassus.reinforcement.commands.record_episodes import MIN_WIDTH, EpisodeFrame, Renderer, add_title, play_episodes
from parnassus.reinforcement.commands.trained_agents import AgentExperiment, TrainedAgents
from parnassus.reinforcement.environments import BrokenEnvironmentError, GymnasiumEnvironments
from parnassus.reinforcement.environments import gymnasium as module
from parnassus.reinforcement.evaluation.episode_returns import episode_returns
from parnassus.reinforcement.experiments.ppo import Experiment

gymnasium: Any = pytest.importorskip("gymnasium")
MESSAGE = "an episode has not ended after 30 steps: .* max_episode_steps"


class EndlessEnv(gymnasium.Env):  # type: ignore[misc]  # gymnasium is optional
    """Only action 1 ends an episode."""

    observation_space = gymnasium.spaces.Box(-1, 1, (1,))
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return np.zeros(1, np.float32), 1.0, bool(action), False, {}


@pytest.fixture(autouse=True)
def register_environments(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(module, "MAX_STEPS", 30)
    gymnasium.register("Waiting-v0", entry_point=EndlessEnv)
    gymnasium.register("Limited-v0", entry_point=EndlessEnv, max_episode_steps=40)
    yield
    del gymnasium.registry["Waiting-v0"], gymnasium.registry["Limited-v0"]


def constant_actor(action: int) -> Any:
    def act(x: Tensor) -> Tensor:
        return torch.full(x.shape[:2], action)

    return act


def test_finished_episodes_are_collected() -> None:
    assert episode_returns(GymnasiumEnvironments("Waiting-v0", 3), constant_actor(1)).tolist() == [[1.0] * 3]
    assert collect_episodes(GymnasiumEnvironments("Waiting-v0", 3), constant_actor(1)).total_rewards.tolist() == [
        [1.0] * 3
    ]


def test_time_limit_of_the_environment_overrides_the_maximum() -> None:
    assert episode_returns(GymnasiumEnvironments("Limited-v0", 2), constant_actor(0)).tolist() == [[40.0] * 2]
    assert collect_episodes(GymnasiumEnvironments("Limited-v0", 2), constant_actor(0)).total_rewards.tolist() == [
        [40.0] * 2
    ]


def test_endless_episode_raises_broken_environment_error() -> None:
    for collect in (episode_returns, collect_episodes):
        with pytest.raises(BrokenEnvironmentError, match=MESSAGE):
            collect(GymnasiumEnvironments("Waiting-v0", 3), constant_actor(0))


def test_endless_animation_raises_broken_environment_error(tmp_path: Path) -> None:
    experiment = Experiment(env="Waiting-v0", num_learners=1)
    model = experiment.model()
    with torch.no_grad():
        model.actor_head.bias.copy_(torch.tensor([[[10.0, -10.0]]]))  # prefers action 0
    trained = TrainedAgents(tmp_path, cast("AgentExperiment", experiment), model, torch.device("cpu"))
    renderer = Renderer(
        GymnasiumEnvironments("Waiting-v0", 1), lambda _observation, _action: np.zeros((4, 4, 3), np.uint8), 0.1
    )
    with pytest.raises(BrokenEnvironmentError, match=MESSAGE):
        list(play_episodes(trained, renderer, 0, 1))


def test_add_title_pads_small_images() -> None:
    image = add_title(EpisodeFrame(np.zeros((10, 40, 3), np.uint8), 1, 50, -50.0, is_last=True))
    assert image.shape == (10 + 22, MIN_WIDTH, 3)
    is_black = (image[22:] == 0).all(2)
    assert is_black.sum() == 10 * 40
    assert is_black[:, MIN_WIDTH // 2 - 20 : MIN_WIDTH // 2 + 20].all()
