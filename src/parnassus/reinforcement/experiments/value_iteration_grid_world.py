"""Value iteration, policy iteration and modified policy iteration in a grid world (book sec. 18.2).

A map is written in letters, its rows separated by "/": . is floor, # a wall, S the start, G a goal, X a pit, and C a
cliff, from which the agent returns to the start.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from parnassus.reinforcement.figures.grids import plot_grid
from parnassus.reinforcement.tabular.grid_world import CORNER, GridWorld
from parnassus.reinforcement.tabular.planning import (
    modified_policy_iteration,
    policy_iteration,
    value_iterates,
    value_iteration,
)
from parnassus.report import curves, subplots
from parnassus.train import Run, Text, at_most, between, no_band

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

covers = ("B18.2-3", "B18.2-4")
expected = {
    "value_at_the_start": between(0.7052, 0.7054, "value of the start cell without discount; 0.705 is printed"),
    "policies_tried": at_most(6.0, "policies evaluated by policy iteration"),
    "sweeps": no_band("sweeps of value iteration until the policy is within 10⁻⁶ of the optimum"),
    "error_in_its_bound": at_most(1.0, "true error of the final values over its bound"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {}, "gpu": {}}

LIVING = (-2.0, -0.4, -0.04, 0.0)  # rewards per step


@dataclass(frozen=True)
class Experiment:
    layout: Text = "....#...G/....#..../........./....#..../##.###.##/....#..../.S......./....#...X"  # rows of .#SGXC
    step_reward: float = -0.02  # reward of every step
    slip: float = 0.2  # probability of moving sideways instead
    discount: float = 0.95  # discount factor γ

    def __call__(self, run: Run) -> dict[str, float]:
        corner = GridWorld(CORNER)
        run.figure(
            "rewards of a step",
            draw_living(),
            "One map, four prices of a step. In pain the agent takes the nearest end, even the pit; the less a step "
            "costs, the longer the way it takes around the pit; where steps are free it would rather bump into walls.",
        )
        world = GridWorld(self.layout, step_reward=self.step_reward, slip=self.slip, discount=self.discount)
        plan = value_iteration(world.process, tolerance=1e-6)
        best = policy_iteration(world.process)
        path = value_iterates(world.process, plan.sweeps)
        run.figure(
            "sweep by sweep",
            draw_sweeps(world, path),
            "Values after k sweeps: information about the goal spreads by one cell per sweep.",
        )
        run.figure("policy", draw_policy(world, best.values, best.q), "Optimal values and actions.")
        errors = (path - best.values).abs().amax(1)
        changes = (path[1:] - path[:-1]).abs().amax(1)
        step = torch.arange(len(path))
        bound = self.discount / (1 - self.discount) * changes if self.discount < 1 else changes
        run.figure(
            "error and bound",
            curves(
                {
                    "largest error": (step, errors.clamp(min=1e-15)),
                    "its bound, γ/(1 − γ) of the last change": (step[1:], bound.clamp(min=1e-15)),
                    "γ^k": (step, errors[0] * self.discount**step),
                },
                x_label="sweeps",
                y_label="largest difference from the best values",
                log_y=True,
            ),
            "The change in a sweep bounds the remaining error, which gives a stopping rule.",
        )
        run.table("three ways", way_rows(world), "Cost of each planning method for the same policy.")
        return {
            "value_at_the_start": float(value_iteration(corner.process).values @ corner.start),
            "policies_tried": float(best.sweeps),
            "sweeps": float(plan.sweeps),
            "error_in_its_bound": float((plan.values - best.values).abs().max()) / plan.bound,
        }


def way_rows(world: GridWorld) -> list[dict[str, str | float]]:
    process = world.process
    plans = {
        "value iteration: backups of all actions": value_iteration(process, tolerance=1e-6),
        "policy iteration: a linear system each": policy_iteration(process),
    }
    if process.discount < 1:
        plans |= {
            f"{m} backups for each policy": modified_policy_iteration(process, m, tolerance=1e-6) for m in (3, 10, 30)
        }
    return [
        {"way": name, "rounds": float(plan.sweeps), "value at the start": float(plan.values @ world.start)}
        for name, plan in plans.items()
    ]


def draw_living() -> "Figure":
    figure, axes = subplots(1, len(LIVING), size=(10.0, 2.4))
    for ax, living in zip(axes[0], LIVING, strict=True):
        world = GridWorld(
            CORNER, step_reward=living, discount=0.9999
        )  # nearly patient; with γ = 1 free steps never end
        plan = policy_iteration(world.process)
        arrows = world.arrows(plan.policy.argmax(-1)).split("\n")
        plot_grid(ax, world.on_grid(plan.values), limit=3.0, arrows=arrows, numbers=False, size=13.0)
        _mark_ends(ax, world)
        ax.set_title(f"reward per step {living:g}")
    return figure


def draw_sweeps(world: GridWorld, path: Tensor) -> "Figure":
    chosen = [k for k in (1, 2, 4, 8, 16) if k < len(path) - 1] + [len(path) - 1]
    figure, axes = subplots(2, 3, size=(10.0, 6.4))
    for ax, k in zip(axes.flat, chosen, strict=False):
        plot_grid(ax, world.on_grid(path[k]), limit=1.0, numbers=False)
        _mark_ends(ax, world)
        ax.set_title(f"k = {k}")
    for ax in axes.flat[len(chosen) :]:
        ax.set_visible(False)
    return figure


def draw_policy(world: GridWorld, values: Tensor, q: Tensor) -> "Figure":
    high, wide = world.shape
    figure, axes = subplots(size=(min(9.0, 0.85 * wide), min(9.0, 0.85 * wide) * high / wide))
    arrows = world.arrows(q.argmax(-1)).split("\n")
    plot_grid(axes[0, 0], world.on_grid(values), limit=1.0, arrows=arrows, size=9.0)
    return figure


def _mark_ends(ax: "Axes", world: GridWorld) -> None:
    for row, column in world.cells:
        letter = world.letter(row, column)
        if letter in "GXS":
            ax.text(column, row, letter, ha="center", va="center", fontsize=10, fontweight="bold", color="#111111")
