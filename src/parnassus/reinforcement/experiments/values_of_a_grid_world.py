"""Value iteration on a slippery grid, sweep by sweep, until arrows show the way (book sec. 18.2).

A map is drawn with letters, its rows parted by "/": . is floor, # a wall, S the start, G a goal, X a pit, and C a cliff
from which one comes back to the start.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from parnassus.reinforcement.grid_world import CORNER, GridWorld
from parnassus.reinforcement.planning import (
    modified_policy_iteration,
    policy_iteration,
    value_iterates,
    value_iteration,
)
from parnassus.report import curves, subplots
from parnassus.report.grids import draw_grid
from parnassus.train import Run, Words, at_most, between, reported

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

covers = ("B18.2-3", "B18.2-4")
expected = {
    "value_at_the_start": between(0.7052, 0.7054, "of the textbook's corner without discount; 0.705 is printed there"),
    "policies_tried": at_most(6.0, "by policy iteration in the rooms"),
    "sweeps": reported("of value iteration in the rooms until its policy is within 10⁻⁶ of the best"),
    "error_in_its_bound": at_most(1.0, "true error of the last values over the bound, in the rooms"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {}, "gpu": {}}

LIVING = (-2.0, -0.4, -0.04, 0.0)  # rewards of a step, from despair to leisure


@dataclass(frozen=True)
class Experiment:
    map: Words = "....#...G/....#..../........./....#..../##.###.##/....#..../.S......./....#...X"  # rows of .#SGXC
    living: float = -0.02  # reward of every step
    slip: float = 0.2  # how often a step goes to one side instead
    discount: float = 0.95  # γ

    def __call__(self, run: Run) -> dict[str, float]:
        corner = GridWorld(CORNER)
        run.figure(
            "rewards of a step",
            draw_living(),
            "One map, four prices of a step. In pain the agent takes the nearest end, even the pit; the less a step "
            "costs, the longer the way it takes around the pit; where steps are free it would rather bump into walls.",
        )
        world = GridWorld(self.map, living=self.living, slip=self.slip, discount=self.discount)
        plan = value_iteration(world.process, tolerance=1e-6)
        best = policy_iteration(world.process)
        path = value_iterates(world.process, plan.sweeps)
        run.figure(
            "sweep by sweep",
            draw_sweeps(world, path),
            "With k sweeps a cell knows what k steps can pay: news of the goal spreads a cell a sweep.",
        )
        run.figure("policy", draw_policy(world, best.values, best.q), "The values at the end, and the best action.")
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
            "The change of a sweep bounds the error that is left: iteration knows when to stop.",
        )
        run.table("three ways", way_rows(world), "What each way of planning needs for the same policy.")
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
        world = GridWorld(CORNER, living=living, discount=0.9999)  # nearly patient; with γ = 1 free steps never end
        plan = policy_iteration(world.process)
        arrows = world.arrows(plan.policy.argmax(-1)).split("\n")
        draw_grid(ax, world.on_grid(plan.values), limit=3.0, arrows=arrows, numbers=False, size=13)
        _mark_ends(ax, world)
        ax.set_title(f"a step pays {living:g}")
    return figure


def draw_sweeps(world: GridWorld, path: Tensor) -> "Figure":
    chosen = [k for k in (1, 2, 4, 8, 16) if k < len(path) - 1] + [len(path) - 1]
    figure, axes = subplots(2, 3, size=(10.0, 6.4))
    for ax, k in zip(axes.flat, chosen, strict=False):
        draw_grid(ax, world.on_grid(path[k]), limit=1.0, numbers=False)
        _mark_ends(ax, world)
        ax.set_title(f"k = {k}")
    for ax in axes.flat[len(chosen) :]:
        ax.set_visible(False)
    return figure


def draw_policy(world: GridWorld, values: Tensor, q: Tensor) -> "Figure":
    high, wide = world.shape
    figure, axes = subplots(size=(min(9.0, 0.85 * wide), min(9.0, 0.85 * wide) * high / wide))
    arrows = world.arrows(q.argmax(-1)).split("\n")
    draw_grid(axes[0, 0], world.on_grid(values), limit=1.0, arrows=arrows, size=9)
    return figure


def _mark_ends(ax: "Axes", world: GridWorld) -> None:
    for row, column in world.cells:
        letter = world.letter(row, column)
        if letter in "GXS":
            ax.text(column, row, letter, ha="center", va="center", fontsize=10, fontweight="bold", color="#111111")
