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

from parnassus.reinforcement.environments.by_name import SIMULATED
from parnassus.reinforcement.environments.interface import Discrete
from parnassus.reinforcement.environments.simulated import Move
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

    longest: int = LONGEST
    features = 1
    actions = Discrete(2)

    def start(self, copies: int, device: torch.device) -> Float[Tensor, "copies 1"]:
        return torch.ones(copies, 1, dtype=torch.float64, device=device)

    def observe(self, state: Float[Tensor, "copies 1"]) -> Float[Tensor, "copies 1"]:
        return state

    def move(self, state: Float[Tensor, "copies 1"], action: Int[Tensor, " copies"]) -> Move:
        return Move(state, torch.ones(len(state), dtype=torch.float64), torch.zeros(len(state), dtype=torch.bool))


LIVES: dict[str, Any] = {
    "env": "Forever",
    "learners": 2,
    "episodes": 2,
    "budget": 4_000,
    "copies": 4,
    "lr": 0.01,
    "discount": DISCOUNT,
}
BATCHES: dict[str, Any] = {"horizon": 20, "batch": 40, "epochs": 4}
AGENTS: dict[str, a2c.Experiment | ppo.Experiment | trpo.Experiment] = {
    "a2c": a2c.Experiment(**LIVES, horizon=5, normalised=False),
    "ppo": ppo.Experiment(**LIVES, **BATCHES, normalised=False),
    "trpo": trpo.Experiment(**LIVES, **BATCHES),
}


@pytest.mark.parametrize("name", AGENTS)
def test_an_episode_cut_short_was_worth_more(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SIMULATED, "Forever", Forever())
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
