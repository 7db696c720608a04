"""How soon PPO solves CartPole-v1: three times as soon as stable-baselines3, with tensor environments ten times.

Solved is, for both sides and asked after every update: the last hundred episodes, exploring, return 475 or more in the
mean, and then a hundred more, the likeliest action always, do so too; all the time this takes counts. stable-baselines3
has rl-zoo's settings (8 copies, 32 steps, 20 epochs of one batch, rate and clip falling over 100,000 steps), ours has
its own, printed below: those that solved it soonest with seeds from 10 on. The race is run with seeds 0 to 4, and the
sides take turns. A time has all that one waits for, from making the environments to the solved policy, in one thread:
the run's folder, log and checkpoints included; imports, and the pictures that come when it is solved, are not.
Run it with: python benchmarks/time_to_solve.py (the bench environment has stable-baselines3)
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

import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

from parnassus.reinforcement.experiments.ppo import Experiment
from parnassus.train import Options, Run
from parnassus.train.execute import Recipe, start

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENV, GOAL, EPISODES, SEEDS = "CartPole-v1", 475.0, 100, 5
LIMITS = {"gymnasium's environments": 3.0, "tensor environments": 10.0}
SOON = Experiment(
    ENV, num_learners=1, stop_when_solved=True, n_steps=32, n_epochs=1, gamma=0.99, gae_lambda=0.98, normalize=True
)
OURS = {
    "gymnasium's environments": replace(
        SOON, use_gymnasium=True, total_timesteps=300_000, n_envs=32, batch_size=128, learning_rate=3e-3
    ),
    "tensor environments": replace(SOON, total_timesteps=400_000, n_envs=96, batch_size=384, learning_rate=4e-3),
}


class StopWhenSolved(BaseCallback):  # type: ignore[misc]  # whose package is in the bench environment only
    """stable-baselines3 is asked as ours is: whole episodes are played only when the last hundred have reached it."""

    solved = False

    def _on_rollout_start(self) -> None:
        last = [episode["r"] for episode in self.model.ep_info_buffer or ()]
        if len(last) == EPISODES and statistics.mean(last) >= GOAL:
            mean, _ = evaluate_policy(self.model, make_vec_env(ENV, n_envs=EPISODES), EPISODES)
            self.solved = mean >= GOAL

    def _on_step(self) -> bool:
        return not self.solved


def theirs(seed: int, budget: int = 100_000) -> bool:
    """stable-baselines3 with rl-zoo's settings; whether it solved it."""
    agent = PPO(
        "MlpPolicy", make_vec_env(ENV, n_envs=8, seed=seed), n_steps=32, batch_size=256, gae_lambda=0.8, gamma=0.98,
        n_epochs=20, ent_coef=0.0, learning_rate=lambda left: 1e-3 * left, clip_range=lambda left: 0.2 * left,
        device="cpu", seed=seed,
    )  # fmt: skip
    asked = StopWhenSolved()
    agent.learn(budget, callback=asked)
    return asked.solved


class Plain(Run):
    """A run that draws no pictures: those come when it is solved."""

    def figure(self, name: str, figure: "Figure", caption: str = "") -> None:
        """Leave it."""


def ours(experiment: Experiment, seed: int) -> bool:
    """The experiment as `parnassus run ppo` runs it, its log and its folder included; whether it solved it."""
    with tempfile.TemporaryDirectory() as folder:
        options = Options(device="cpu", quiet=True, threads=1, seed=seed)
        run = Plain(start(Recipe("ppo", "PPO", experiment, {}), options, Path(folder)), options)
        at_its_best, exploring = experiment(run), run.curve("return/1")[1]
        run.close()
    return at_its_best["solved"] == 1 and exploring[-1] >= GOAL


def seconds(side: Callable[[int], bool], seed: int, clock: Callable[[], float]) -> float:
    """How long a side takes; endless, for the median, where it does not come to it."""
    began = clock()
    solved = side(seed)
    return clock() - began if solved else float("inf")


def main() -> None:
    """Print the seconds of every seed, their medians and ratios; exit code 1 when one is below its limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=0, help="the first of five seeds")
    parser.add_argument("--busy", action="store_true", help="count processor time, where others are at work")
    given = parser.parse_args()
    clock = time.process_time if given.busy else time.perf_counter
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    sides: dict[str, Callable[[int], bool]] = {"stable-baselines3": theirs}
    sides |= {name: partial(ours, own) for name, own in OURS.items()}
    theirs(0, budget=256)  # what is loaded at first counts as imported
    ours(replace(SOON, total_timesteps=256), 0)
    for name, own in OURS.items():
        print(f"ours, {name}: {own}")
    times: dict[str, list[float]] = {name: [] for name in sides}
    for seed in range(given.first, given.first + SEEDS):
        for name, side in sides.items():
            times[name].append(seconds(side, seed, clock))
        print(f"seed {seed}: " + ", ".join(f"{name} {own[-1]:.2f} s" for name, own in times.items()), flush=True)
    medians = {name: statistics.median(own) for name, own in times.items()}
    ratios = {name: medians["stable-baselines3"] / medians[name] for name in OURS}
    print(f"medians: {', '.join(f'{name} {median:.2f} s' for name, median in medians.items())}")
    for name, ratio in ratios.items():
        print(f"{name}: {ratio:.1f} times as soon (at least {LIMITS[name]:g})")
    sys.exit(1 if any(ratios[name] < LIMITS[name] for name in OURS) else 0)


if __name__ == "__main__":
    main()
