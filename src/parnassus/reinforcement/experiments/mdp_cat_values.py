"""State values and optimal actions of the book's Markov decision process of a cat (book sec. 18.2)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from parnassus.reinforcement.figures.state_graph import plot_state_graph
from parnassus.reinforcement.tabular.markov_reward_process import MarkovRewardProcess
from parnassus.reinforcement.tabular.prediction import monte_carlo_values, td_lambda
from parnassus.reinforcement.tabular.step_sizes import polynomial_step_size
from parnassus.reinforcement.tabular.value_and_policy_iteration import policy_iteration
from parnassus.reinforcement.textbook.cat import (
    ACTIONS,
    EXAMPLE_EPISODE,
    STATES,
    TRANSITION_PROBABILITIES,
    UNIFORM_START,
    cat_decision_process,
    cat_reward_process,
    constant_policy,
    state_indices,
)
from parnassus.report import PALETTE, curves, draw_blocks, histograms, subplots
from parnassus.train import Positive, Run, UnitInterval, between, no_band

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B18.1-1", "B18.2-1", "B18.2-2", "B18.2-3", "B18.2-4")
expected = {
    "value_of_hunting": between(-24.436, -24.434, "value of hunting at γ = 0.9; the book prints −24.4"),
    "value_of_confused": between(0.687, 0.688, "value of confused at γ = 0.9; the book prints 0.7"),
    "example_return": between(-4.4751, -4.4749, "return of the example episode at γ = 0.9"),
    "action_value_difference": between(1.867, 1.868, "Q(relaxed, talk) − Q(relaxed, stroke) at γ = 0.9"),
    "break_even_discount": between(0.9383, 0.9384, "γ above which stroking is the better action"),
    "monte_carlo_max_error": no_band("maximum error of the Monte Carlo values, in standard errors"),
    "td_max_error": no_band("maximum error of the TD(0) values, averaged over the learners"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"num_episodes": 200, "total_timesteps": 300, "num_learners": 20},
    "gpu": {},
}

POSITIONS = {
    "hunting": (0.0, 0.0),
    "hungry": (2.7, 0.0),
    "affectionate": (5.2, 1.35),
    "confused": (5.2, -1.35),
    "relaxed": (8.2, -1.35),
    "sleeping": (8.2, 1.35),
}
RELAXED, TALK, STROKE = STATES.index("relaxed"), ACTIONS.index("talk"), ACTIONS.index("stroke")


@dataclass(frozen=True)
class Experiment:
    gamma: UnitInterval = 0.9  # discount factor γ
    num_episodes: Positive[int] = 4_000  # episodes sampled from each state
    total_timesteps: Positive[int] = 6_000  # TD(0) steps per learner
    num_learners: Positive[int] = 100  # independent TD(0) learners

    def __call__(self, run: Run) -> dict[str, float]:
        process = cat_reward_process(self.gamma)
        exact = process.values()
        run.figure("loop", plot_loop(), "The agent-environment loop: action, reward, next state.")
        rewards = {
            state: f"{reward:+g}" if reward else "0"
            for state, reward in zip(STATES, process.reward.tolist(), strict=True)
        }
        run.figure("chain", plot_chain(rewards), "The Markov chain with its rewards; sleeping is terminal.")
        values = {state: f"{value:.2f}" for state, value in zip(STATES, exact.tolist(), strict=True)}
        run.figure("values", plot_chain(values, exact), f"State values at γ = {self.gamma:g}.")

        run.table("example episode", episode_rows(process), "The book's example episode, step by step.")
        generator = torch.Generator().manual_seed(run.seed)
        monte_carlo, standard_error = monte_carlo_values(process, self.num_episodes, steps=150, generator=generator)
        td = td_lambda(
            process,
            UNIFORM_START,
            steps=self.total_timesteps,
            step_size=polynomial_step_size(0.7),
            num_learners=self.num_learners,
            generator=generator,
        )
        estimates = {
            "linear solve": exact,
            "50 iterations": process.iterates(50)[-1],
            "Monte Carlo": monte_carlo,
            "its standard error": standard_error,
            "TD(0), mean": td.mean(0),
            "TD(0), std": td.std(0),
        }
        run.table(
            "four methods",
            estimate_rows(estimates),
            "State values by linear solve, iterative policy evaluation, Monte Carlo and TD(0).",
        )
        run.figure(
            "iteration",
            plot_iteration(),
            "Error of iterative policy evaluation; each sweep contracts it by γ.",
        )
        run.figure(
            "returns",
            self.plot_returns(process, generator),
            "Returns of episodes that start in hungry; their mean estimates the state value.",
        )
        run.figure(
            "discounts", plot_discounts(), "State values against the discount factor; they are finite at γ = 1 too."
        )
        break_even = break_even_discount()
        run.figure(
            "action values",
            plot_action_values(break_even),
            "Talking continues the episode, with a chance of affection and a risk of hunting; above "
            f"γ = {break_even:.4f} stroking, which ends it, is optimal.",
        )
        q = policy_iteration(cat_decision_process(self.gamma)).q[RELAXED]
        run.table("constant policies", constant_policy_rows(self.gamma), "State values of constant policies.")
        return {
            "value_of_hunting": float(exact[0]),
            "value_of_confused": float(exact[4]),
            "example_return": float(process.path_return(state_indices(*EXAMPLE_EPISODE))),
            "action_value_difference": float(q[TALK] - q[STROKE]),
            "break_even_discount": break_even,
            "monte_carlo_max_error": float(((monte_carlo - exact)[:-1].abs() / standard_error[:-1]).max()),
            "td_max_error": float((td.mean(0) - exact).abs().max()),
        }

    def plot_returns(self, process: MarkovRewardProcess, generator: torch.Generator) -> "Figure":
        chain = process.chain(torch.eye(6, dtype=torch.float64)[STATES.index("hungry")])
        returns = process.path_return(chain.sample(self.num_episodes, steps=150, generator=generator))
        figure = histograms({"return": returns}, x_label="discounted return")
        value = float(process.values()[STATES.index("hungry")])
        figure.axes[0].axvline(value, color=PALETTE[1], linestyle="--", linewidth=1.2, label=f"value {value:.2f}")
        figure.axes[0].legend()
        return figure


def break_even_discount() -> float:
    """The discount factor at which both actions have the same value, by bisection."""
    low, high = 0.5, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        q = policy_iteration(cat_decision_process(middle)).q[RELAXED]
        low, high = (middle, high) if q[TALK] > q[STROKE] else (low, middle)
    return low


def episode_rows(process: MarkovRewardProcess) -> list[dict[str, str | float]]:
    rows: list[dict[str, str | float]] = []
    total = 0.0
    for step, state in enumerate(EXAMPLE_EPISODE):
        reward = float(process.reward[STATES.index(state)])
        total += process.gamma**step * reward
        rows.append({"t": str(step), "state": state, "reward": reward, "γ^t": process.gamma**step, "sum so far": total})
    return rows


def estimate_rows(estimates: dict[str, Tensor]) -> list[dict[str, str | float]]:
    return [
        {"state": state, **{name: float(values[i]) for name, values in estimates.items()}}
        for i, state in enumerate(STATES)
    ]


def constant_policy_rows(gamma: float) -> list[dict[str, str | float]]:
    process = cat_decision_process(gamma)
    talk, stroke = process.state_values(torch.stack([constant_policy("talk"), constant_policy("stroke")]))
    mixed = cat_reward_process(gamma).values()
    return [
        {
            "state": state,
            "always talk": float(talk[i]),
            "always stroke": float(stroke[i]),
            "reward process": float(mixed[i]),
        }
        for i, state in enumerate(STATES)
    ]


def plot_loop() -> "Figure":
    figure, axes = subplots(size=(6.4, 1.7))
    blocks = {
        "agent": (0.0, 2.0),
        "action A_t": (3.2, 2.0),
        "environment": (6.4, 2.0),
        "reward R_{t+1}, state S_{t+1}": (3.2, 0.8),
    }
    names = list(blocks)
    draw_blocks(
        axes[0, 0], blocks, [(names[0], names[1]), (names[1], names[2]), (names[2], names[3]), (names[3], names[0])]
    )
    return figure


def plot_chain(notes: dict[str, str], values: Tensor | None = None) -> "Figure":
    figure, axes = subplots(size=(9.0, 3.9))
    fills = None
    if values is not None:
        fills = {
            state: PALETTE[2] if value > 0 else PALETTE[1] for state, value in zip(STATES, values, strict=True) if value
        }
    plot_state_graph(axes[0, 0], POSITIONS, TRANSITION_PROBABILITIES, notes=notes, fills=fills)
    return figure


def plot_iteration() -> "Figure":
    lines = {}
    for gamma in (0.5, 0.9, 1.0):
        process = cat_reward_process(gamma)
        errors = (process.iterates(60) - process.values()).abs().amax(1)
        lines[f"γ = {gamma:g}"] = (range(61), errors.clamp(min=1e-16))
    return curves(lines, x_label="sweeps", y_label="maximum error", log_y=True)


def plot_discounts() -> "Figure":
    discounts = torch.linspace(0, 1, 101, dtype=torch.float64)
    values = torch.stack([cat_reward_process(float(gamma)).values() for gamma in discounts])
    lines = {state: (discounts, values[:, i]) for i, state in enumerate(STATES)}
    return curves(lines, x_label="discount γ", y_label="value")


def plot_action_values(break_even: float) -> "Figure":
    discounts = torch.linspace(0.5, 1, 101, dtype=torch.float64)
    q = torch.stack([policy_iteration(cat_decision_process(float(gamma))).q[RELAXED] for gamma in discounts])
    lines = {"Q(relaxed, talk)": (discounts, q[:, TALK]), "Q(relaxed, stroke)": (discounts, q[:, STROKE])}
    return curves(lines, x_label="discount γ", y_label="action value", marks={f"γ = {break_even:.4f}": break_even})
