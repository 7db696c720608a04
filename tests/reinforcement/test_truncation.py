"""A limit of time is no end: what pays 1 for ever is worth 1/(1 − γ), however often the episodes are cut.

And what is reported counts the episode alone: never more than its limit of steps allows.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.reinforcement.environments.interface import Discrete
from parnassus.reinforcement.environments.make import TENSOR_ENVIRONMENTS
from parnassus.reinforcement.environments.tensor_environments import PhysicsStep
from parnassus.reinforcement.experiments import a2c, ppo, trpo
from parnassus.runs.metrics import read_metrics
from parnassus.train import Options
from parnassus.train.checkpoint import load_weights
from parnassus.train.execute import Recipe, execute, start

QUIET = Options(quiet=True, device="cpu")
DISCOUNT, LONGEST = 0.9, 6


@dataclass(frozen=True)
class Forever:
    """One state, in which every action pays 1; cut after a few steps, over never."""

    max_episode_steps: int = LONGEST
    features = 1
    actions = Discrete(2)

    def start(self, n_envs: int, device: torch.device) -> Float[Tensor, "envs 1"]:
        return torch.ones(n_envs, 1, dtype=torch.float64, device=device)

    def observe(self, state: Float[Tensor, "envs 1"]) -> Float[Tensor, "envs 1"]:
        return state

    def move(self, state: Float[Tensor, "envs 1"], action: Int[Tensor, " envs"]) -> PhysicsStep:
        return PhysicsStep(
            state, torch.ones(len(state), dtype=torch.float64), torch.zeros(len(state), dtype=torch.bool)
        )


LIVES: dict[str, Any] = {
    "env": "Forever",
    "num_learners": 2,
    "eval_episodes": 2,
    "total_timesteps": 4_000,
    "n_envs": 4,
    "learning_rate": 0.01,
    "gamma": DISCOUNT,
}
BATCHES: dict[str, Any] = {"n_steps": 20, "batch_size": 40, "n_epochs": 4}
AGENTS: dict[str, a2c.Experiment | ppo.Experiment | trpo.Experiment] = {
    "a2c": a2c.Experiment(**LIVES, n_steps=5, normalize=False),
    "ppo": ppo.Experiment(**LIVES, **BATCHES, normalize=False),
    "trpo": trpo.Experiment(**LIVES, **BATCHES),
}


@pytest.mark.parametrize("name", AGENTS)
def test_an_episode_cut_short_was_worth_more(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TENSOR_ENVIRONMENTS, "Forever", Forever())
    agent = AGENTS[name]
    recipe = Recipe(name, name, agent, {})
    folder = start(recipe, QUIET, tmp_path)
    result = execute(recipe, QUIET, folder)
    model = agent.model()
    model.load_state_dict(load_weights(folder.path / "weights.safetensors"))
    with torch.no_grad():
        values = model.values(torch.ones(2, 1, 1))
    assert values.flatten().tolist() == pytest.approx([1 / (1 - DISCOUNT)] * 2, rel=0.03)
    reported = read_metrics(folder.path / "metrics.csv")
    assert max(max(reported[f"return/{learner}"][1]) for learner in (1, 2)) <= LONGEST
    assert result["return_mean"] == result["return_worst"] == LONGEST
