"""Benchmark of the training speed of DQN against stable-baselines3 on CartPole-v1.

One learner in one copy of the Gymnasium environment, with the hyperparameters of rl-zoo in both implementations: a
network with hidden layers [256, 256] and 128 updates with batches of 64 after every 256 steps. Both train for the same
number of steps, alternately in one process. Measured is CPU time on one thread, so that background load does not
affect the result (a second thread costs more CPU time than it saves). With --wall, wall-clock time is measured and each
implementation uses one or two threads, whichever is faster.
Limit: at least 2 times the steps per second of stable-baselines3.
Run: python benchmarks/dqn_steps.py (requires stable-baselines3, part of the bench environment)
"""

import argparse
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import gymnasium
import torch
from stable_baselines3 import DQN

from parnassus.reinforcement.experiments.dqn import Experiment
from parnassus.train import Options, Run
from parnassus.train.execute import Recipe, start

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LIMIT = 2.0
RL_ZOO = Experiment(
    fast_backward=True, use_gymnasium=True, num_learners=1, n_envs=1, n_eval_episodes=1, double_q=False, n_steps=1,
    width=256, learning_rate=2.3e-3, decay_learning_rate=False,
    gradient_steps=128, huber_delta=1.0, averaging_tau=1.0,
)  # fmt: skip


def train_sb3(steps: int, threads: int = 1) -> None:
    """Train with stable-baselines3 and the hyperparameters of rl-zoo."""
    torch.set_num_threads(threads)
    agent = DQN(
        "MlpPolicy",
        gymnasium.make("CartPole-v1"),
        learning_rate=RL_ZOO.learning_rate,
        batch_size=RL_ZOO.batch_size,
        buffer_size=RL_ZOO.buffer_size,
        learning_starts=RL_ZOO.learning_starts,
        gamma=RL_ZOO.gamma,
        target_update_interval=RL_ZOO.target_update_interval,
        train_freq=RL_ZOO.train_freq,
        gradient_steps=RL_ZOO.gradient_steps,
        exploration_fraction=RL_ZOO.exploration_fraction,
        exploration_final_eps=RL_ZOO.exploration_final_eps,
        policy_kwargs={"net_arch": [RL_ZOO.width, RL_ZOO.width]},
        device="cpu",
    )
    agent.learn(steps)


class RunWithoutFigures(Run):
    """A run that draws no figures, which are not part of training."""

    def figure(self, name: str, figure: "Figure", caption: str = "") -> None:
        """Ignore the figure."""


def train_parnassus(steps: int, folder: Path, threads: int = 1) -> None:
    """Train with the DQN experiment, including its log, its checkpoint and its evaluation episode."""
    experiment = replace(RL_ZOO, total_timesteps=steps)
    options = Options(device="cpu", quiet=True, threads=threads)
    run = RunWithoutFigures(start(Recipe("dqn", "DQN", experiment, {}), options, folder), options)
    experiment(run)
    run.close()


def seconds(train: Callable[[], None], clock: Callable[[], float]) -> float:
    """Return the duration of one training call in seconds of `clock`."""
    start_time = clock()
    train()
    return clock() - start_time


def main() -> None:
    """Print the steps per second of both and the median ratio; exit with 1 if it is below the limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=8_192, help="number of training steps per run")
    parser.add_argument("--turns", type=int, default=5, help="number of timed runs per implementation")
    parser.add_argument("--wall", action="store_true", help="measure wall-clock time; requires an idle machine")
    steps, turns, wall = vars(parser.parse_args()).values()
    clock = time.perf_counter if wall else time.process_time
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        implementations = {
            "stable-baselines3": partial(train_sb3, steps),
            "parnassus": partial(train_parnassus, steps, Path(folder)),
        }
        if wall:
            implementations["stable-baselines3, two threads"] = partial(train_sb3, steps, 2)
            implementations["parnassus, two threads"] = partial(train_parnassus, steps, Path(folder), 2)
        train_sb3(256)  # warm-up: lazy imports are not timed
        train_parnassus(256, Path(folder))
        times: dict[str, list[float]] = {name: [] for name in implementations}
        for turn in range(turns):
            for name in sorted(implementations, reverse=bool(turn % 2)):
                times[name].append(seconds(implementations[name], clock))
    baseline_times, own_times = (
        min((elapsed for name, elapsed in times.items() if name.startswith(prefix)), key=statistics.median)
        for prefix in ("stable-baselines3", "parnassus")
    )
    ratio = statistics.median(a / b for a, b in zip(baseline_times, own_times, strict=True))
    rates = [steps / statistics.median(elapsed) for elapsed in (baseline_times, own_times)]
    print(
        f"CartPole-v1, {steps:,} steps: stable-baselines3 {rates[0]:,.0f} steps per second, Parnassus {rates[1]:,.0f}, "
        f"{ratio:.2f} times as fast (limit: at least {LIMIT})"
    )
    sys.exit(1 if ratio < LIMIT else 0)


if __name__ == "__main__":
    main()
