"""PPO and A2C beside stable-baselines3: at least twice its steps a second on CartPole-v1, learning included.

Both sides step gymnasium's environments, eight copies one after the other, with the same networks, batches and number
of updates, rl-zoo's, and take turns in one process. Ours is the experiment, as
`parnassus run ppo --use-gymnasium --num-learners 1` runs it, checkpoints and metrics included, up to its last update:
what it reports as its steps per second. Theirs is `learn`.
Run it with: python benchmarks/agent_steps.py (the bench environment has stable-baselines3)
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
ZOO = ppo.Experiment(
    use_gymnasium=True,
    num_learners=1,
    eval_episodes=1,
    n_steps=32,
    batch_size=256,
    n_epochs=20,
    gamma=0.98,
    gae_lambda=0.8,
    normalize=False,
)
"""rl-zoo's settings of PPO, which ours are not; of A2C they differ only in that ours bring numbers to one scale."""


def ours(experiment: Experiment) -> float:
    """Steps a second of a run of ours."""
    with tempfile.TemporaryDirectory() as folder:
        recipe = Recipe("agent", "An agent", experiment, {})
        options = Options(quiet=True, device="cpu", threads=1)
        return execute(recipe, options, start(recipe, Options(), Path(folder)))["steps_per_second"]


def theirs_ppo(steps: int) -> float:
    """The same of stable-baselines3."""
    world = make_vec_env("CartPole-v1", n_envs=8)
    agent = PPO(
        "MlpPolicy", world, n_steps=32, batch_size=256, gae_lambda=0.8, gamma=0.98, n_epochs=20, ent_coef=0.0,
        learning_rate=lambda left: 1e-3 * left, clip_range=lambda left: 0.2 * left, device="cpu",
    )  # fmt: skip
    return _learned(agent, steps)


def theirs_a2c(steps: int) -> float:
    return _learned(A2C("MlpPolicy", make_vec_env("CartPole-v1", n_envs=8), ent_coef=0.0, device="cpu"), steps)


def _learned(agent: PPO | A2C, steps: int) -> float:
    began = time.perf_counter()
    agent.learn(total_timesteps=steps)
    return steps / (time.perf_counter() - began)


def main() -> None:
    """Print the steps a second of both sides and the median ratio; exit code 1 when one is below the limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=3, help="runs of each side that are timed")
    parser.add_argument("--steps", type=int, default=61_440, help="environment steps of a run")
    given = parser.parse_args()
    torch.set_num_threads(1)
    steps = given.steps
    plain = a2c.Experiment(use_gymnasium=True, num_learners=1, eval_episodes=1, total_timesteps=steps, normalize=False)
    races: dict[str, tuple[Callable[[], float], Callable[[], float]]] = {
        "PPO": (lambda: theirs_ppo(steps), lambda: ours(replace(ZOO, total_timesteps=steps))),
        "A2C": (lambda: theirs_a2c(steps), lambda: ours(plain)),
    }
    slowest = float("inf")
    for name, sides in races.items():
        rates = [(sides[0](), sides[1]()) for _ in range(given.turns + 1)][1:]
        ratio = statistics.median(own / other for other, own in rates)
        slowest = min(slowest, ratio)
        speeds = [statistics.median(each) for each in zip(*rates, strict=True)]
        print(
            f"{name}: stable-baselines3 {speeds[0]:,.0f} steps a second, ours {speeds[1]:,.0f}, "
            f"{ratio:.2f} times as fast (at least {LIMIT})"
        )
    sys.exit(1 if slowest < LIMIT else 0)


if __name__ == "__main__":
    main()
