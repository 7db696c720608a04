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
from parnassus.reinforcement.tabular.value_and_policy_iteration import (
    modified_policy_iteration,
    policy_iteration,
    value_iterates,
    value_iteration,
)
from parnassus.report import curves, subplots
from parnassus.train import Run, Text, UnitInterval, at_most, between, no_band

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

covers = ("B18.2-3", "B18.2-4")
expected = {
    "start_value": between(
        0.7052, 0.7054, "value of the start cell of the 4 × 3 world without discount; Russell and Norvig have 0.705"
    ),
    "policies_evaluated": at_most(6.0, "number of policies evaluated by policy iteration"),
    "sweeps": no_band("number of sweeps of value iteration until the policy is within 10⁻⁶ of the optimum"),
    "error_bound_ratio": at_most(1.0, "ratio of the true error of the final values to its bound"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {}, "gpu": {}}

STEP_REWARDS = (-2.0, -0.4, -0.04, 0.0)


@dataclass(frozen=True)
class Experiment:
    layout: Text = "....#...G/....#..../........./....#..../##.###.##/....#..../.S......./....#...X"  # map, see above
    step_reward: float = -0.02  # reward of every step
    slip_probability: UnitInterval = 0.2  # probability of moving sideways
    gamma: UnitInterval = 0.95  # discount factor γ

    def __call__(self, run: Run) -> dict[str, float]:
        corner = GridWorld(CORNER)
        run.figure(
            "step rewards",
            plot_step_rewards(),
            "Optimal policies for four rewards per step. At −2 the agent takes the nearest terminal cell, even the "
            "pit; the less a step costs, the longer its detour around the pit; at 0 it bumps into walls instead.",
        )
        world = GridWorld(
            self.layout, step_reward=self.step_reward, slip_probability=self.slip_probability, gamma=self.gamma
        )
        plan = value_iteration(world.process, tolerance=1e-6)
        optimal = policy_iteration(world.process)
        iterates = value_iterates(world.process, plan.sweeps)
        run.figure(
            "sweep by sweep",
            plot_sweeps(world, iterates),
            "Values after k sweeps: information about the goal spreads by one cell per sweep.",
        )
        run.figure("policy", plot_policy(world, optimal.values, optimal.q), "Optimal values and actions.")
        errors = (iterates - optimal.values).abs().amax(1)
        changes = (iterates[1:] - iterates[:-1]).abs().amax(1)
        sweeps = torch.arange(len(iterates))
        bound = self.gamma / (1 - self.gamma) * changes if self.gamma < 1 else changes
        run.figure(
            "error and bound",
            curves(
                {
                    "maximum error": (sweeps, errors.clamp(min=1e-15)),
                    "bound: γ/(1 − γ) × last change": (sweeps[1:], bound.clamp(min=1e-15)),
                    "γ^k × initial error": (sweeps, errors[0] * self.gamma**sweeps),
                },
                x_label="sweeps",
                y_label="maximum error",
                log_y=True,
            ),
            "The change in a sweep bounds the remaining error, which gives the stopping rule.",
        )
        run.table("planning methods", planning_rows(world), "Cost of each planning method for the same policy.")
        return {
            "start_value": float(value_iteration(corner.process).values @ corner.start),
            "policies_evaluated": float(optimal.sweeps),
            "sweeps": float(plan.sweeps),
            "error_bound_ratio": float((plan.values - optimal.values).abs().max()) / plan.bound,
        }


def planning_rows(world: GridWorld) -> list[dict[str, str | float]]:
    process = world.process
    plans = {
        "value iteration": value_iteration(process, tolerance=1e-6),
        "policy iteration, one linear solve each": policy_iteration(process),
    }
    if process.gamma < 1:
        plans |= {
            f"modified policy iteration, {m} backups each": modified_policy_iteration(process, m, tolerance=1e-6)
            for m in (3, 10, 30)
        }
    return [
        {"method": name, "iterations": float(plan.sweeps), "value at the start": float(plan.values @ world.start)}
        for name, plan in plans.items()
    ]


def plot_step_rewards() -> "Figure":
    figure, axes = subplots(1, len(STEP_REWARDS), size=(10.0, 2.4))
    for ax, step_reward in zip(axes[0], STEP_REWARDS, strict=True):
        world = GridWorld(
            CORNER, step_reward=step_reward, gamma=0.9999
        )  # just below 1: without discount and step cost some policies never reach a terminal cell
        plan = policy_iteration(world.process)
        arrows = world.arrows(plan.policy.argmax(-1)).split("\n")
        plot_grid(ax, world.on_grid(plan.values), limit=3.0, arrows=arrows, numbers=False, size=13.0)
        _label_cells(ax, world)
        ax.set_title(f"reward per step {step_reward:g}")
    return figure


def plot_sweeps(world: GridWorld, iterates: Tensor) -> "Figure":
    sweeps = [k for k in (1, 2, 4, 8, 16) if k < len(iterates) - 1] + [len(iterates) - 1]
    figure, axes = subplots(2, 3, size=(10.0, 6.4))
    for ax, k in zip(axes.flat, sweeps, strict=False):
        plot_grid(ax, world.on_grid(iterates[k]), limit=1.0, numbers=False)
        _label_cells(ax, world)
        ax.set_title(f"k = {k}")
    for ax in axes.flat[len(sweeps) :]:
        ax.set_visible(False)
    return figure


def plot_policy(world: GridWorld, values: Tensor, q: Tensor) -> "Figure":
    height, width = world.shape
    figure, axes = subplots(size=(min(9.0, 0.85 * width), min(9.0, 0.85 * width) * height / width))
    arrows = world.arrows(q.argmax(-1)).split("\n")
    plot_grid(axes[0, 0], world.on_grid(values), limit=1.0, arrows=arrows, size=9.0)
    return figure


def _label_cells(ax: "Axes", world: GridWorld) -> None:
    for row, column in world.cells:
        letter = world.letter(row, column)
        if letter in "GXS":
            ax.text(column, row, letter, ha="center", va="center", fontsize=10, fontweight="bold", color="#111111")
