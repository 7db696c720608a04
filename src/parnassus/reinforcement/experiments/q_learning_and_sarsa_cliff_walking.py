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
from parnassus.reinforcement.tabular.step_sizes import constant_step_size
from parnassus.reinforcement.tabular.value_and_policy_iteration import policy_iteration
from parnassus.report import FAINT, curves, subplots
from parnassus.report.plots import moving_average
from parnassus.train import Positive, Run, UnitInterval, at_least, between, no_band

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B18.3-1", "B18.3-2")
expected = {
    "edge_path_exploring": between(-45.81, -45.80, "exact return of the shortest path with ε = 0.1"),
    "safe_path_exploring": between(-20.71, -20.70, "exact return of the optimal ε-greedy policy with ε = 0.1"),
    "edge_path_greedy": between(-13.001, -12.999, "exact return of the shortest path without exploration"),
    "sarsa_minus_q_learning": at_least(
        5.0, "difference of the mean episode returns in the last quarter of training, SARSA minus Q-learning"
    ),
    "q_learning": no_band("mean episode return of Q-learning in the last quarter of training"),
    "sarsa": no_band("mean episode return of SARSA in the last quarter of training"),
    "expected_sarsa": no_band("mean episode return of expected SARSA in the last quarter of training"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"total_timesteps": 600, "num_learners": 5}, "gpu": {}}

METHODS: dict[str, NextValue] = {
    "Q-learning": q_learning_value,
    "SARSA": sarsa_value,
    "expected SARSA": expected_sarsa_value,
}


@dataclass(frozen=True)
class Experiment:
    total_timesteps: Positive[int] = 12_000  # environment steps per learner
    num_learners: Positive[int] = 100  # independent learners per method
    epsilon: UnitInterval = 0.1  # probability of a random action
    learning_rate: Positive[float] = 0.5  # step size α

    def __call__(self, run: Run) -> dict[str, float]:
        world = GridWorld(CLIFF, step_reward=-1.0, slip_probability=0.0, rewards={"G": 0.0, "C": -99.0})
        exploring = add_exploration(world.process, self.epsilon)
        edge, safe = (policy_iteration(process).policy for process in (world.process, exploring))
        exact = {
            "edge_path_exploring": float(exploring.state_values(edge) @ world.start),
            "safe_path_exploring": float(exploring.state_values(safe) @ world.start),
            "edge_path_greedy": float(world.process.state_values(edge) @ world.start),
        }
        records = {
            name: td_control(
                TabularLearners(
                    world.process,
                    world.start,
                    steps=self.total_timesteps,
                    epsilon=self.epsilon,
                    step_size=constant_step_size(self.learning_rate),
                    num_learners=self.num_learners,
                    generator=torch.Generator().manual_seed(run.seed),
                ),
                next_value,
            )
            for name, next_value in METHODS.items()
        }
        late_returns = {name: late_return(record) for name, record in records.items()}
        run.figure(
            "training returns",
            plot_returns(records, exact),
            "Episode return during training, mean over the learners. Dashed: exact returns of both paths with the same "
            "exploration. Constant step sizes keep the learned tables noisy and the curves below the exact returns.",
        )
        run.figure(
            "two paths",
            plot_paths(world, {"without exploration": edge, f"exploring with ε = {self.epsilon:g}": safe}, exploring),
            "Optimal actions without and with exploration, and the expected visits per episode. Along the edge a "
            "random step down costs 100; one row higher it costs 2, with the step back up.",
        )
        run.figure(
            "learned values",
            plot_tables(world, {name: record.q.mean(0) for name, record in records.items()}),
            "Learned values (mean over the learners) and greedy actions. Q-learning estimates the values of the greedy "
            "policy, without exploration; SARSA's values along the edge include the risk of falling.",
        )
        run.figure(
            "exploration", plot_exploration(world), "Exact returns of both paths against the exploration rate ε."
        )
        return {
            **exact,
            "sarsa_minus_q_learning": late_returns["SARSA"] - late_returns["Q-learning"],
            "q_learning": late_returns["Q-learning"],
            "sarsa": late_returns["SARSA"],
            "expected_sarsa": late_returns["expected SARSA"],
        }


def late_return(record: LearningRecord) -> float:
    """Mean episode return in the last quarter of the steps."""
    late = 3 * len(record.rewards) // 4
    return float(record.rewards[late:].sum() / record.ended[late:].sum().clamp(min=1))


def plot_returns(records: dict[str, LearningRecord], exact: dict[str, float]) -> "Figure":
    lines = {}
    for name, record in records.items():
        count = max(2, int(record.ended.sum(0).double().quantile(0.1)))  # completed by 90 % of the learners
        mean = record.episode_returns(count).nanmean(0)
        lines[name] = (range(1, count + 1), moving_average(mean.numpy(), 8))
    figure = curves(lines, x_label="episode", y_label="return")
    ax = figure.axes[0]
    for name, key in (("edge path", "edge_path_exploring"), ("safe path", "safe_path_exploring")):
        ax.axhline(exact[key], color=FAINT, linestyle="--", linewidth=1)
        ax.annotate(name, (0.99, exact[key]), xycoords=("axes fraction", "data"), ha="right", va="bottom", fontsize=9)
    ax.set_ylim(-110, 0)
    return figure


def plot_paths(world: GridWorld, policies: dict[str, Tensor], exploring: MarkovDecisionProcess) -> "Figure":
    """Greedy actions over the number of visits per episode."""
    figure, axes = subplots(len(policies), 1, size=(8.0, 2.9 * len(policies)))
    for ax, (name, policy) in zip(axes[:, 0], policies.items(), strict=True):
        visits = exploring.occupancy(policy, world.start)
        arrows = world.arrows(policy.argmax(-1)).split("\n")
        plot_grid(ax, world.on_grid(visits), limit=2.0, letters=_cliff(world), arrows=arrows)
        ax.set_title(f"optimal {name}: {float(exploring.state_values(policy) @ world.start):.1f} while exploring")
    return figure


def plot_tables(world: GridWorld, tables: dict[str, Tensor]) -> "Figure":
    figure, axes = subplots(len(tables), 1, size=(8.0, 2.7 * len(tables)))
    for ax, (name, q) in zip(axes[:, 0], tables.items(), strict=True):
        arrows = world.arrows(q.argmax(-1)).split("\n")
        plot_grid(ax, world.on_grid(q.amax(-1)), limit=40.0, letters=_cliff(world), arrows=arrows, digits=1)
        ax.set_title(name)
    return figure


def plot_exploration(world: GridWorld) -> "Figure":
    epsilons = torch.linspace(0, 0.3, 31, dtype=torch.float64)
    edge = policy_iteration(world.process).policy
    edge_returns, optimal_returns = [], []
    for epsilon in epsilons:
        process = add_exploration(world.process, float(epsilon))
        edge_returns.append(float(process.state_values(edge) @ world.start))
        optimal_returns.append(float(policy_iteration(process).values @ world.start))
    return curves(
        {"edge path": (epsilons, edge_returns), "optimal ε-greedy policy": (epsilons, optimal_returns)},
        x_label="exploration rate ε",
        y_label="exact return",
    )


def _cliff(world: GridWorld) -> list[str]:
    """The rows of the map, with the start as floor, so that it shows its arrow."""
    return [row.replace("S", ".") for row in world.rows]
