"""Benchmark of the training speed of PPO and A2C against stable-baselines3 on CartPole-v1.

Both implementations step eight sequential copies of the Gymnasium environment, with the same networks, batch sizes and
number of updates (the hyperparameters of rl-zoo), and are timed alternately in one process. Parnassus runs the complete
experiment, as `parnassus run ppo --use-gymnasium --num-learners 1` does, including checkpoints and metrics; its speed
is the reported steps per second up to the last update. stable-baselines3 runs `learn`.
Limit: at least 2 times the steps per second of stable-baselines3.
Run: python benchmarks/agent_steps.py (requires stable-baselines3, part of the bench environment)
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch
from stable_baselines3 import A2C, PPO
from stable_baselines3.common.env_util import make_vec_env

from parnassus.reinforcement.experiments import a2c, ppo
from parnassus.train import Options
from parnassus.train.execute import Experiment, Recipe, execute, start

LIMIT = 2.0
RL_ZOO = ppo.Experiment(
    fast_backward=True,
    use_gymnasium=True,
    num_learners=1,
    n_eval_episodes=1,
    n_steps=32,
    batch_size=256,
    n_epochs=20,
    gamma=0.98,
    gae_lambda=0.8,
    normalize=False,
)
"""The PPO hyperparameters of rl-zoo. For A2C, the defaults differ from those of rl-zoo only in `normalize`."""


def run_parnassus(experiment: Experiment) -> float:
    """Return the steps per second of a training run with Parnassus."""
    with tempfile.TemporaryDirectory() as folder:
        recipe = Recipe("agent", "An agent", experiment, {})
        options = Options(quiet=True, device="cpu", threads=1)
        return execute(recipe, options, start(recipe, Options(), Path(folder)))["steps_per_second"]


def run_sb3_ppo(steps: int) -> float:
    """Return the steps per second of PPO in stable-baselines3."""
    environment = make_vec_env("CartPole-v1", n_envs=8)
    agent = PPO(
        "MlpPolicy", environment, n_steps=32, batch_size=256, gae_lambda=0.8, gamma=0.98, n_epochs=20, ent_coef=0.0,
        learning_rate=lambda remaining: 1e-3 * remaining, clip_range=lambda remaining: 0.2 * remaining, device="cpu",
    )  # fmt: skip
    return _measure_learn(agent, steps)


def run_sb3_a2c(steps: int) -> float:
    return _measure_learn(A2C("MlpPolicy", make_vec_env("CartPole-v1", n_envs=8), ent_coef=0.0, device="cpu"), steps)


def _measure_learn(agent: PPO | A2C, steps: int) -> float:
    start_time = time.perf_counter()
    agent.learn(total_timesteps=steps)
    return steps / (time.perf_counter() - start_time)


def main() -> None:
    """Print the steps per second of both and the median ratios; exit with 1 if a ratio is below the limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=3, help="number of timed runs per implementation")
    parser.add_argument("--steps", type=int, default=61_440, help="number of environment steps per run")
    args = parser.parse_args()
    torch.set_num_threads(1)
    steps = args.steps
    a2c_experiment = a2c.Experiment(
        fast_backward=True,
        use_gymnasium=True,
        num_learners=1,
        n_eval_episodes=1,
        total_timesteps=steps,
        normalize=False,
    )
    comparisons: dict[str, tuple[Callable[[], float], Callable[[], float]]] = {
        "PPO": (lambda: run_sb3_ppo(steps), lambda: run_parnassus(replace(RL_ZOO, total_timesteps=steps))),
        "A2C": (lambda: run_sb3_a2c(steps), lambda: run_parnassus(a2c_experiment)),
    }
    min_ratio = float("inf")
    for name, (run_baseline, run_own) in comparisons.items():
        rates = [(run_baseline(), run_own()) for _ in range(args.turns + 1)][1:]
        ratio = statistics.median(own / baseline for baseline, own in rates)
        min_ratio = min(min_ratio, ratio)
        medians = [statistics.median(values) for values in zip(*rates, strict=True)]
        print(
            f"{name}: stable-baselines3 {medians[0]:,.0f} steps per second, Parnassus {medians[1]:,.0f}, "
            f"{ratio:.2f} times as fast (limit: at least {LIMIT})"
        )
    sys.exit(1 if min_ratio < LIMIT else 0)


if __name__ == "__main__":
    main()
