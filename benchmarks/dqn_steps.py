"""DQN's steps of CartPole-v1 a second beside stable-baselines3's: at least twice as many.

One learner in one copy of gymnasium's environment, with the settings of rl-zoo on both sides: the network [256, 256],
batches of 64, 128 of them after every 256 steps. Both learn the same number of steps in one process and take turns;
what is counted is processor time, so that others at work on the machine do not count. Both use one thread: a second
costs more processor time than it saves. With --wall the clock on the wall counts, and each side has one thread or two,
whichever is faster.
Run it with: python benchmarks/dqn_steps.py (the bench environment has stable-baselines3)
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
ZOO = Experiment(
    use_gymnasium=True, num_learners=1, n_envs=1, eval_episodes=1, double=False, n_steps=1, width=256,
    learning_rate=2.3e-3, decay_learning_rate=False,
    gradient_steps=128, huber_delta=1.0, averaging_tau=1.0,
)  # fmt: skip


def theirs(steps: int, threads: int = 1) -> None:
    """stable-baselines3, as rl-zoo sets it."""
    torch.set_num_threads(threads)
    agent = DQN(
        "MlpPolicy",
        gymnasium.make("CartPole-v1"),
        learning_rate=ZOO.learning_rate,
        batch_size=ZOO.batch_size,
        buffer_size=ZOO.buffer_size,
        learning_starts=ZOO.learning_starts,
        gamma=ZOO.gamma,
        target_update_interval=ZOO.target_update_interval,
        train_freq=ZOO.train_freq,
        gradient_steps=ZOO.gradient_steps,
        exploration_fraction=ZOO.exploration_fraction,
        exploration_final_eps=ZOO.exploration_final_eps,
        policy_kwargs={"net_arch": [ZOO.width, ZOO.width]},
        device="cpu",
    )
    agent.learn(steps)


class Plain(Run):
    """A run that draws no pictures: those are no part of learning."""

    def figure(self, name: str, figure: "Figure", caption: str = "") -> None:
        """Leave it."""


def ours(steps: int, folder: Path, threads: int = 1) -> None:
    """The experiment itself, its log, its checkpoint and the episode that judges it included."""
    experiment = replace(ZOO, total_timesteps=steps)
    options = Options(device="cpu", quiet=True, threads=threads)
    run = Plain(start(Recipe("dqn", "DQN", experiment, {}), options, folder), options)
    experiment(run)
    run.close()


def seconds(side: Callable[[], None], clock: Callable[[], float]) -> float:
    """What one side takes by this clock."""
    began = clock()
    side()
    return clock() - began


def main() -> None:
    """Print steps a second of both and the median of their ratios; exit code 1 when it is below the limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=8_192, help="steps that each side learns in a turn")
    parser.add_argument("--turns", type=int, default=5, help="turns of each side")
    parser.add_argument("--wall", action="store_true", help="count time on the wall; the machine must be quiet")
    steps, turns, wall = vars(parser.parse_args()).values()
    clock = time.perf_counter if wall else time.process_time
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        sides = {"theirs": partial(theirs, steps), "ours": partial(ours, steps, Path(folder))}
        if wall:
            sides["theirs, two threads"] = partial(theirs, steps, 2)
            sides["ours, two threads"] = partial(ours, steps, Path(folder), 2)
        theirs(256)  # what both load at first does not count
        ours(256, Path(folder))
        times: dict[str, list[float]] = {name: [] for name in sides}
        for turn in range(turns):
            for name in sorted(sides, reverse=bool(turn % 2)):
                times[name].append(seconds(sides[name], clock))
    best, own = (
        min((taken for name, taken in times.items() if name.startswith(side)), key=statistics.median)
        for side in ("theirs", "ours")
    )
    ratio = statistics.median(a / b for a, b in zip(best, own, strict=True))
    fast = [steps / statistics.median(taken) for taken in (best, own)]
    print(
        f"CartPole-v1, {steps:,} steps: stable-baselines3 {fast[0]:,.0f} a second, ours {fast[1]:,.0f}, "
        f"{ratio:.2f} times as fast (at least {LIMIT})"
    )
    sys.exit(1 if ratio < LIMIT else 0)


if __name__ == "__main__":
    main()
