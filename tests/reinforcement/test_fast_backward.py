"""Runs with the fast backward pass and with autograd."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from parnassus.reinforcement.experiments import a2c, dqn, ppo
from parnassus.train import Options
from parnassus.train.checkpoint import load_weights
from parnassus.train.execute import Recipe, execute, start

OPTIONS = Options(quiet=True, device="cpu")
EXPERIMENTS: dict[str, a2c.Experiment | dqn.Experiment | ppo.Experiment] = {
    "ppo": ppo.Experiment(num_learners=2, n_eval_episodes=2, total_timesteps=1_024),
    "a2c": a2c.Experiment(num_learners=2, n_eval_episodes=2, total_timesteps=400),
    "dqn": dqn.Experiment(
        num_learners=2, n_eval_episodes=2, total_timesteps=512, learning_starts=0, gradient_steps=8, dueling=True
    ),
}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_fast_backward_and_autograd_reach_equal_weights(name: str, tmp_path: Path) -> None:
    weights = []
    for fast_backward in (True, False):
        recipe = Recipe(name, name, replace(EXPERIMENTS[name], fast_backward=fast_backward), {})
        folder = start(recipe, OPTIONS, tmp_path / str(fast_backward))
        execute(recipe, OPTIONS, folder)
        weights.append(load_weights(folder.path / "weights.safetensors"))
    for key, expected in weights[1].items():
        torch.testing.assert_close(weights[0][key], expected, atol=1e-4, rtol=1e-3)
