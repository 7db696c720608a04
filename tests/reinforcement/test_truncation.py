"""Truncation is not termination: reward 1 per step has value 1/(1 − γ), and reported returns cover one episode."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.reinforcement.environments.interface import Discrete
from parnassus.reinforcement.environments.make import TENSOR_ENVIRONMENTS
from parnassus.reinforcement.environments.tensor_environments import DynamicsStep
from parnassus.reinforcement.experiments import a2c, ppo, trpo
from parnassus.runs.metrics import read_metrics
from parnassus.train import Options
from parnassus.train.checkpoint import load_weights
from parnassus.train.execute import Recipe, execute, start

OPTIONS = Options(quiet=True, device="cpu")
DISCOUNT, MAX_STEPS = 0.9, 6


@dataclass(frozen=True)
class ConstantReward:
    """One state with reward 1 for every action; truncated after a few steps, never terminated."""

    max_episode_steps: int = MAX_STEPS
    features = 1
    actions = Discrete(2)

    def sample_initial_states(self, n_envs: int, device: torch.device) -> Float[Tensor, "envs 1"]:
        return torch.ones(n_envs, 1, dtype=torch.float64, device=device)

    def observe(self, state: Float[Tensor, "envs 1"]) -> Float[Tensor, "envs 1"]:
        return state

    def step(self, state: Float[Tensor, "envs 1"], action: Int[Tensor, " envs"]) -> DynamicsStep:
        return DynamicsStep(
            state, torch.ones(len(state), dtype=torch.float64), torch.zeros(len(state), dtype=torch.bool)
        )


COMMON_SETTINGS: dict[str, Any] = {
    "env": "Forever",
    "num_learners": 2,
    "n_eval_episodes": 2,
    "total_timesteps": 4_000,
    "n_envs": 4,
    "learning_rate": 0.01,
    "gamma": DISCOUNT,
}
BATCH_SETTINGS: dict[str, Any] = {"n_steps": 20, "batch_size": 40, "n_epochs": 4}
AGENTS: dict[str, a2c.Experiment | ppo.Experiment | trpo.Experiment] = {
    "a2c": a2c.Experiment(**COMMON_SETTINGS, n_steps=5, normalize=False),
    "ppo": ppo.Experiment(**COMMON_SETTINGS, **BATCH_SETTINGS, normalize=False),
    "trpo": trpo.Experiment(**COMMON_SETTINGS, **BATCH_SETTINGS),
}


@pytest.mark.parametrize("name", AGENTS)
def test_value_of_truncated_episodes_includes_future_rewards(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TENSOR_ENVIRONMENTS, "Forever", ConstantReward())
    agent = AGENTS[name]
    recipe = Recipe(name, name, agent, {})
    folder = start(recipe, OPTIONS, tmp_path)
    results = execute(recipe, OPTIONS, folder)
    model = agent.model()
    model.load_state_dict(load_weights(folder.path / "weights.safetensors"))
    with torch.no_grad():
        values = model.values(torch.ones(2, 1, 1))
    assert values.flatten().tolist() == pytest.approx([1 / (1 - DISCOUNT)] * 2, rel=0.03)
    metrics = read_metrics(folder.path / "metrics.csv")
    assert max(max(metrics[f"return/{learner}"][1]) for learner in (1, 2)) <= MAX_STEPS
    assert results["return_mean"] == results["return_worst"] == MAX_STEPS
