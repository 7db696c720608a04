"""Environments without a time limit: episodes are truncated, in training as in evaluation."""

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
from parnassus.reinforcement.environments import BrokenEnvironmentError, GymnasiumEnvironments, make_environments
from parnassus.reinforcement.environments import gymnasium as module
from parnassus.reinforcement.evaluation.episode_returns import episode_returns
from parnassus.reinforcement.experiments.ppo import Experiment

gymnasium: Any = pytest.importorskip("gymnasium")
MESSAGE = "an episode has not ended after max_episode_steps=30 steps"


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


def test_episodes_without_a_time_limit_are_truncated() -> None:
    environments = GymnasiumEnvironments("Waiting-v0", 2)
    environments.reset()
    for step in range(1, 91):
        result = environments.step(torch.tensor([0, int(step == 10)]))
        assert result.terminated.tolist() == [False, step == 10]
        assert result.truncated.tolist() == [step % 30 == 0, step > 10 and (step - 10) % 30 == 0]
    assert episode_returns(GymnasiumEnvironments("Waiting-v0", 2), constant_actor(0)).tolist() == [[30.0] * 2]


def test_environments_that_do_not_truncate_raise_broken_environment_error() -> None:
    for collect in (episode_returns, collect_episodes):
        environments = GymnasiumEnvironments("Limited-v0", 3)
        environments.max_episode_steps = 30
        with pytest.raises(BrokenEnvironmentError, match=MESSAGE):
            collect(environments, constant_actor(0))


def test_environment_of_a_module_is_registered_by_importing_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_environments.py").write_text(
        "import gymnasium\nfrom gymnasium.envs.classic_control import CartPoleEnv\n"
        "gymnasium.register('OwnPole-v0', entry_point=CartPoleEnv)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    returns = episode_returns(make_environments("own_environments:OwnPole-v0", 2), constant_actor(0))
    assert bool((returns < 30).all())
    del gymnasium.registry["OwnPole-v0"]


def test_endless_animation_raises_broken_environment_error(tmp_path: Path) -> None:
    experiment = Experiment(env="Limited-v0", num_learners=1)
    model = experiment.model()
    with torch.no_grad():
        model.actor_head.bias.copy_(torch.tensor([[[10.0, -10.0]]]))  # prefers action 0
    trained = TrainedAgents(tmp_path, cast("AgentExperiment", experiment), model, torch.device("cpu"))
    environments = GymnasiumEnvironments("Limited-v0", 1)
    environments.max_episode_steps = 30
    renderer = Renderer(environments, lambda _observation, _action: np.zeros((4, 4, 3), np.uint8), 0.1)
    with pytest.raises(BrokenEnvironmentError, match=MESSAGE):
        list(play_episodes(trained, renderer, 0, 1))


def test_add_title_pads_small_images() -> None:
    image = add_title(EpisodeFrame(np.zeros((10, 40, 3), np.uint8), 1, 50, -50.0, is_last=True))
    assert image.shape == (10 + 22, MIN_WIDTH, 3)
    is_black = (image[22:] == 0).all(2)
    assert is_black.sum() == 10 * 40
    assert is_black[:, MIN_WIDTH // 2 - 20 : MIN_WIDTH // 2 + 20].all()
