"""Ratio of the gradient variances with and without a baseline."""

from dataclasses import dataclass
from math import isnan
from pathlib import Path

import pytest
import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.reinforcement.agents.actor_critic import ActorCritic
from parnassus.reinforcement.agents.reinforce import EpisodeBatch, gradient_variance, reinforce_weights
from parnassus.reinforcement.environments import Discrete
from parnassus.reinforcement.environments.make import TENSOR_ENVIRONMENTS
from parnassus.reinforcement.environments.tensor_environments import DynamicsStep
from parnassus.reinforcement.experiments.reinforce import Experiment, expected
from parnassus.runs.metrics import read_metrics
from parnassus.train import Options
from parnassus.train.execute import Recipe, execute, start


@dataclass(frozen=True)
class IndexedRewards:
    """One state and `num_actions` actions, each rewarded by its index; truncated after three steps."""

    num_actions: int = 1
    max_episode_steps: int = 3
    features = 1

    @property
    def actions(self) -> Discrete:
        return Discrete(self.num_actions)

    def sample_initial_states(self, n_envs: int, device: torch.device) -> Float[Tensor, "envs 1"]:
        return torch.ones(n_envs, 1, dtype=torch.float64, device=device)

    def observe(self, state: Float[Tensor, "envs 1"]) -> Float[Tensor, "envs 1"]:
        return state

    def step(self, state: Float[Tensor, "envs 1"], action: Int[Tensor, " envs"]) -> DynamicsStep:
        return DynamicsStep(state, action.double(), torch.zeros(len(state), dtype=torch.bool))


def make_episodes(actions: list[list[int]]) -> tuple[ActorCritic, EpisodeBatch]:
    """One step of two learners in two environments with reward 1 for action 1; `actions` are those of each learner."""
    torch.manual_seed(0)
    model, action_tensor = ActorCritic(1, Discrete(2), hidden=(3,), num_learners=2), torch.tensor([actions])
    active = torch.ones(1, 2, 2, dtype=torch.bool)
    return model, EpisodeBatch(torch.ones(1, 2, 2, 1), action_tensor, action_tensor.float(), active)


def test_ratio_divides_by_the_variance_without_a_baseline() -> None:
    model, episodes = make_episodes([[0, 1], [0, 1]])
    values = torch.full((1, 2, 2), 0.5)
    ratios = Experiment(num_learners=2).variance_ratios(model, episodes, values)
    with_baseline, without = (
        gradient_variance(model, episodes, reinforce_weights(episodes, baseline, gamma=0.99))
        for baseline in (values, 0.0)
    )
    torch.testing.assert_close(ratios, with_baseline / without)
    assert bool((ratios < 1).all())


def test_ratio_is_nan_for_equal_episodes() -> None:
    model, episodes = make_episodes([[1, 1], [0, 1]])
    equal, different = Experiment(num_learners=2).variance_ratios(model, episodes, torch.full((1, 2, 2), 0.5)).tolist()
    assert isnan(equal)
    assert 0 <= different < 1


@pytest.mark.parametrize("num_actions", [1, 2])
def test_run_continues_when_no_ratio_is_defined(
    num_actions: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TENSOR_ENVIRONMENTS, "OnlyOneWay", IndexedRewards(num_actions))
    experiment = Experiment(env="OnlyOneWay", num_learners=2, n_eval_episodes=2, num_updates=7, critic_steps=1)
    recipe = Recipe("reinforce", "An agent", experiment, expected)
    folder = start(recipe, Options(), tmp_path)
    results = execute(recipe, Options(quiet=True, device="cpu"), folder)
    recorded = [name for name in read_metrics(folder.path / "metrics.csv") if name.startswith("variance_ratio/")]
    assert recorded == ([] if num_actions == 1 else ["variance_ratio/1", "variance_ratio/2"])
    assert (results["variance_ratio"] == 1) == (num_actions == 1)
    assert (folder.path / "figures" / "variance_ratio.svg").exists() == (num_actions == 2)
