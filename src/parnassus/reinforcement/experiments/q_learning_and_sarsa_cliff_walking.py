"""Q-learning and SARSA on cliff walking: off-policy and on-policy control (book sec. 18.3)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from parnassus.reinforcement.figures.grids import plot_grid
from parnassus.reinforcement.tabular.control import (
    NextValue,
    expected_sarsa_value,
    q_learning_value,
    sarsa_value,
    td_control,
)
from parnassus.reinforcement.tabular.epsilon_greedy_learners import LearningRecord, TabularLearners
from parnassus.reinforcement.tabular.exploration import add_exploration
from parnassus.reinforcement.tabular.grid_world import CLIFF, GridWorld
from parnassus.reinforcement.tabular.markov_decision_process import MarkovDecisionProcess
from parnassus.reinforcement.tabular.planning import policy_iteration
from parnassus.reinforcement.tabular.step_sizes import constant_step_size
from parnassus.report import FAINT, curves, subplots
from parnassus.report.plots import moving_average
from parnassus.train import Positive, Run, at_least, between, no_band

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B18.3-1", "B18.3-2")
expected = {
    "edge_while_exploring": between(-45.81, -45.80, "exact return of the shortest path with ε = 0.1"),
    "careful_while_exploring": between(-20.71, -20.70, "exact return of the best ε-greedy path"),
    "edge_without_exploring": between(-13.001, -12.999, "exact return of the shortest path without exploration"),
    "sarsa_earns_more_by": at_least(5.0, "difference of the mean episode return in the last quarter of training"),
    "q_learning": no_band("mean episode return in the last quarter of training"),
    "sarsa": no_band("mean episode return in the last quarter of training"),
    "expected_sarsa": no_band("mean episode return in the last quarter of training"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"steps": 600, "num_learners": 5}, "gpu": {}}

WAYS: dict[str, NextValue] = {
    "Q-learning": q_learning_value,
    "SARSA": sarsa_value,
    "expected SARSA": expected_sarsa_value,
}


@dataclass(frozen=True)
class Experiment:
    steps: Positive[int] = 12_000  # steps of each learner
    num_learners: Positive[int] = 100  # independent learners of each kind
    epsilon: float = 0.1  # how often an action is chosen at random
    rate: Positive[float] = 0.5  # step size α

    def __call__(self, run: Run) -> dict[str, float]:
        world = GridWorld(CLIFF, step_reward=-1.0, slip=0.0, rewards={"G": 0.0, "C": -99.0})
        exploring = add_exploration(world.process, self.epsilon)
        edge, careful = (policy_iteration(process).policy for process in (world.process, exploring))
        exact = {
            "edge_while_exploring": float(exploring.values_of(edge) @ world.start),
            "careful_while_exploring": float(exploring.values_of(careful) @ world.start),
            "edge_without_exploring": float(world.process.values_of(edge) @ world.start),
        }
        found = {
            name: td_control(
                TabularLearners(
                    world.process,
                    world.start,
                    steps=self.steps,
                    epsilon=self.epsilon,
                    step_size=constant_step_size(self.rate),
                    num_learners=self.num_learners,
                    generator=torch.Generator().manual_seed(run.seed),
                ),
                worth,
            )
            for name, worth in WAYS.items()
        }
        online = {name: late_return(learned) for name, learned in found.items()}
        run.figure(
            "while learning",
            draw_returns(found, exact),
            "Return of an episode while learning, a mean over the learners. Dashed: what the two ways would return "
            "exactly to who strays as often. Constant steps keep the learned tables noisy, and the curves below.",
        )
        run.figure(
            "two ways",
            draw_ways(world, {"without exploration": edge, f"exploring with ε = {self.epsilon:g}": careful}, exploring),
            "The best actions without and with straying, and how often an episode comes by. Along the edge a stray "
            "step down costs 100; one row higher two steps cost 2.",
        )
        run.figure(
            "what was learned",
            draw_tables(world, {name: learned.q.mean(0) for name, learned in found.items()}),
            "Learned values (means over the learners) and best actions. Q-learning's are those of a walker who never "
            "strays; SARSA's cells at the edge know about the fall.",
        )
        run.figure("exploration", draw_straying(world), "Exact returns of both paths against the exploration rate ε.")
        return {
            **exact,
            "sarsa_earns_more_by": online["SARSA"] - online["Q-learning"],
            "q_learning": online["Q-learning"],
            "sarsa": online["SARSA"],
            "expected_sarsa": online["expected SARSA"],
        }


def late_return(learned: LearningRecord) -> float:
    """Mean episode return in the last quarter of the steps."""
    late = 3 * len(learned.rewards) // 4
    return float(learned.rewards[late:].sum() / learned.ended[late:].sum().clamp(min=1))


def draw_returns(found: dict[str, LearningRecord], exact: dict[str, float]) -> "Figure":
    lines = {}
    for name, learned in found.items():
        count = max(2, int(learned.ended.sum(0).double().quantile(0.1)))  # episodes that nearly all have finished
        mean = learned.episode_returns(count).nanmean(0)
        lines[name] = (range(1, count + 1), moving_average(mean.numpy(), 8))
    figure = curves(lines, x_label="episode", y_label="return")
    ax = figure.axes[0]
    for name, key in (("along the edge", "edge_while_exploring"), ("around it", "careful_while_exploring")):
        ax.axhline(exact[key], color=FAINT, linestyle="--", linewidth=1)
        ax.annotate(name, (0.99, exact[key]), xycoords=("axes fraction", "data"), ha="right", va="bottom", fontsize=9)
    ax.set_ylim(-110, 0)
    return figure


def draw_ways(world: GridWorld, policies: dict[str, Tensor], exploring: MarkovDecisionProcess) -> "Figure":
    """Greedy actions over the number of visits per episode."""
    figure, axes = subplots(len(policies), 1, size=(8.0, 2.9 * len(policies)))
    for ax, (name, policy) in zip(axes[:, 0], policies.items(), strict=True):
        visits = exploring.occupancy(policy, world.start)
        arrows = world.arrows(policy.argmax(-1)).split("\n")
        plot_grid(ax, world.on_grid(visits), limit=2.0, letters=_cliff(world), arrows=arrows)
        ax.set_title(f"best {name}: {float(exploring.values_of(policy) @ world.start):.1f} while exploring")
    return figure


def draw_tables(world: GridWorld, tables: dict[str, Tensor]) -> "Figure":
    figure, axes = subplots(len(tables), 1, size=(8.0, 2.7 * len(tables)))
    for ax, (name, q) in zip(axes[:, 0], tables.items(), strict=True):
        arrows = world.arrows(q.argmax(-1)).split("\n")
        plot_grid(ax, world.on_grid(q.amax(-1)), limit=40.0, letters=_cliff(world), arrows=arrows, digits=1)
        ax.set_title(name)
    return figure


def draw_straying(world: GridWorld) -> "Figure":
    shares = torch.linspace(0, 0.3, 31, dtype=torch.float64)
    edge = policy_iteration(world.process).policy
    kept, best = [], []
    for share in shares:
        process = add_exploration(world.process, float(share))
        kept.append(float(process.values_of(edge) @ world.start))
        best.append(float(policy_iteration(process).values @ world.start))
    return curves(
        {"along the edge": (shares, kept), "best for who strays": (shares, best)},
        x_label="ε, share of stray steps",
        y_label="exact return",
    )


def _cliff(world: GridWorld) -> list[str]:
    """The letters of the map except floor."""
    return [row.replace("S", ".") for row in world.rows]
