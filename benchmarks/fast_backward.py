"""Benchmark of the hand-written gradients of PPO, A2C and DQN against autograd, in training runs on CartPole-v1.

The complete experiment with its default settings, including environments and logging, runs with and without
`fast_backward`, alternately in one process on one thread.
Limits: with the hand-written gradient, training is not slower than with autograd; in experiments that use it by
default, training is at least 1.3 times as fast.
Run: python benchmarks/fast_backward.py
"""

import argparse
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from parnassus.reinforcement.experiments import a2c, dqn, ppo
from parnassus.train import Options
from parnassus.train.execute import Recipe, execute, start

LIMIT, DEFAULT_FROM = 1.0, 1.3
EXPERIMENTS: dict[str, ppo.Experiment | a2c.Experiment | dqn.Experiment] = {
    "PPO": ppo.Experiment(n_eval_episodes=1),
    "A2C": a2c.Experiment(n_eval_episodes=1),
    "DQN": dqn.Experiment(n_eval_episodes=1),
}


def train(experiment: ppo.Experiment | a2c.Experiment | dqn.Experiment, folder: Path) -> float:
    """Return the environment steps per second of a run, from its first to its last update."""
    recipe = Recipe("agent", "An agent", experiment, {})
    options = Options(quiet=True, device="cpu", threads=1)
    return execute(recipe, options, start(recipe, options, folder))["steps_per_second"]


def main() -> int:
    """Print the steps per second of both variants and the median ratio; exit with 1 if a ratio is below its limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="number of timed runs per variant")
    parser.add_argument("--seconds", type=float, default=3.0, help="approximate length of a run with autograd")
    arguments = parser.parse_args()
    is_too_slow = False
    for name, defaults in EXPERIMENTS.items():
        with tempfile.TemporaryDirectory() as folder:
            began = time.perf_counter()
            train(replace(defaults, total_timesteps=4_096, fast_backward=False), Path(folder))
            steps = int(4_096 * max(1.0, arguments.seconds / (time.perf_counter() - began)))
            rates: list[list[float]] = [[], []]
            for turn in range(arguments.rounds):
                for side in (0, 1) if turn % 2 else (1, 0):
                    experiment = replace(defaults, total_timesteps=steps, fast_backward=bool(side))
                    rates[side].append(train(experiment, Path(folder)))
        ratio = statistics.median(fast / autograd for autograd, fast in zip(*rates, strict=True))
        is_too_slow |= ratio < (DEFAULT_FROM if defaults.fast_backward else LIMIT)
        autograd, fast = map(statistics.median, rates)
        print(
            f"{name}: {autograd:,.0f} steps per second with autograd, {fast:,.0f} with the hand-written gradient: "
            f"{ratio:.2f} times as fast (limit for use by default: {DEFAULT_FROM})"
        )
    return int(is_too_slow)


if __name__ == "__main__":
    sys.exit(main())
