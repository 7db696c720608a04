"""State values and optimal actions of the book's Markov decision process of a cat (book sec. 18.2)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from parnassus.reinforcement.figures.state_graph import plot_state_graph
from parnassus.reinforcement.tabular.markov_reward_process import MarkovRewardProcess
from parnassus.reinforcement.tabular.planning import policy_iteration
from parnassus.reinforcement.tabular.prediction import monte_carlo_values, td_lambda
from parnassus.reinforcement.tabular.step_sizes import polynomial_step_size
from parnassus.reinforcement.textbook.cat import (
    ACTIONS,
    AWAKE,
    EXAMPLE_DAY,
    MOODS,
    TRANSITION_PROBABILITIES,
    cat_decisions,
    cat_rewards,
    constant_policy,
    mood_indices,
)
from parnassus.report import PALETTE, curves, draw_blocks, histograms, subplots
from parnassus.train import Positive, Run, between, no_band

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B18.1-1", "B18.2-1", "B18.2-2", "B18.2-3", "B18.2-4")
expected = {
    "value_of_hunting": between(-24.436, -24.434, "at γ = 0.9; −24.4 is printed"),
    "value_of_confused": between(0.687, 0.688, "at γ = 0.9; 0.7 is printed"),
    "return_of_the_day": between(-4.4751, -4.4749, "return of the path in the book"),
    "gain_of_talking": between(1.867, 1.868, "Q(relaxed, talk) − Q(relaxed, stroke) at γ = 0.9"),
    "discount_where_both_are_even": between(0.9383, 0.9384, "γ above which stroking is the better action"),
    "sampled_miss": no_band("largest error of Monte Carlo values, in standard errors"),
    "learned_miss": no_band("largest error of TD(0) values, averaged over the learners"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"walks": 200, "steps": 300, "num_learners": 20}, "gpu": {}}

PLACES = {
    "hunting": (0.0, 0.0),
    "hungry": (2.7, 0.0),
    "affectionate": (5.2, 1.35),
    "confused": (5.2, -1.35),
    "relaxed": (8.2, -1.35),
    "sleeping": (8.2, 1.35),
}
RELAXED, TALK, STROKE = MOODS.index("relaxed"), ACTIONS.index("talk"), ACTIONS.index("stroke")


@dataclass(frozen=True)
class Experiment:
    discount: float = 0.9  # γ
    walks: Positive[int] = 4_000  # days sampled from each mood
    steps: Positive[int] = 6_000  # steps of temporal differences
    num_learners: Positive[int] = 100  # independent learners of temporal differences

    def __call__(self, run: Run) -> dict[str, float]:
        process = cat_rewards(self.discount)
        exact = process.values()
        run.figure("loop", draw_loop(), "The agent-environment loop: action, reward, next state.")
        signed = {
            mood: f"{reward:+g}" if reward else "0" for mood, reward in zip(MOODS, process.reward.tolist(), strict=True)
        }
        run.figure("chain", draw_chain(signed), "The Markov chain with its rewards; sleep is terminal.")
        shown = {mood: f"{value:.2f}" for mood, value in zip(MOODS, exact.tolist(), strict=True)}
        run.figure("values", draw_chain(shown, exact), f"State values at γ = {self.discount:g}.")

        run.table("one day", day_rows(process), "The book's example path, step by step.")
        chance = torch.Generator().manual_seed(run.seed)
        sampled, error = monte_carlo_values(process, self.walks, steps=150, generator=chance)
        learned = td_lambda(
            process,
            AWAKE,
            steps=self.steps,
            step_size=polynomial_step_size(0.7),
            num_learners=self.num_learners,
            generator=chance,
        )
        ways = {
            "solved": exact,
            "iterated 50 times": process.iterates(50)[-1],
            "mean return": sampled,
            "its error": error,
            "TD(0), mean": learned.mean(0),
            "TD(0), spread": learned.std(0),
        }
        run.table("four ways", way_rows(ways), "State values by linear solve, value iteration, Monte Carlo and TD(0).")
        run.figure(
            "iteration",
            draw_iteration(),
            "Error of iterative policy evaluation; each sweep contracts it by γ.",
        )
        run.figure(
            "days", self.draw_days(process, chance), "Returns of days that start hungry; their mean is the state value."
        )
        run.figure("discounts", draw_discounts(), "State values against the discount factor; γ = 1 is finite too.")
        border = even_discount()
        run.figure(
            "talk or stroke",
            draw_choice(border),
            "Talking keeps the cat awake, with a chance of more affection and a risk of more hunting: who looks far "
            f"ahead, γ > {border:.4f}, strokes it.",
        )
        q = policy_iteration(cat_decisions(self.discount)).q[RELAXED]
        run.table("choice", choice_rows(self.discount), "State values of constant policies.")
        return {
            "value_of_hunting": float(exact[0]),
            "value_of_confused": float(exact[4]),
            "return_of_the_day": float(process.path_return(mood_indices(*EXAMPLE_DAY))),
            "gain_of_talking": float(q[TALK] - q[STROKE]),
            "discount_where_both_are_even": border,
            "sampled_miss": float(((sampled - exact)[:-1].abs() / error[:-1]).max()),
            "learned_miss": float((learned.mean(0) - exact).abs().max()),
        }

    def draw_days(self, process: MarkovRewardProcess, chance: torch.Generator) -> "Figure":
        days = process.chain(torch.eye(6, dtype=torch.float64)[MOODS.index("hungry")])
        returns = process.path_return(days.sample(self.walks, steps=150, generator=chance))
        figure = histograms({"return": returns}, x_label="discounted return")
        value = float(process.values()[MOODS.index("hungry")])
        figure.axes[0].axvline(value, color=PALETTE[1], linestyle="--", linewidth=1.2, label=f"value {value:.2f}")
        figure.axes[0].legend()
        return figure


def even_discount() -> float:
    """The discount factor at which both actions have the same value, by bisection."""
    low, high = 0.5, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        q = policy_iteration(cat_decisions(middle)).q[RELAXED]
        low, high = (middle, high) if q[TALK] > q[STROKE] else (low, middle)
    return low


def day_rows(process: MarkovRewardProcess) -> list[dict[str, str | float]]:
    rows: list[dict[str, str | float]] = []
    total = 0.0
    for step, mood in enumerate(EXAMPLE_DAY):
        reward = float(process.reward[MOODS.index(mood)])
        total += process.discount**step * reward
        rows.append(
            {"t": str(step), "mood": mood, "reward": reward, "γ^t": process.discount**step, "sum so far": total}
        )
    return rows


def way_rows(ways: dict[str, Tensor]) -> list[dict[str, str | float]]:
    return [{"mood": mood, **{way: float(v[i]) for way, v in ways.items()}} for i, mood in enumerate(MOODS)]


def choice_rows(discount: float) -> list[dict[str, str | float]]:
    process = cat_decisions(discount)
    talk, stroke = process.values_of(torch.stack([constant_policy("talk"), constant_policy("stroke")]))
    chain = cat_rewards(discount).values()
    return [
        {"mood": mood, "always talk": float(talk[i]), "always stroke": float(stroke[i]), "the chain": float(chain[i])}
        for i, mood in enumerate(MOODS)
    ]


def draw_loop() -> "Figure":
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


def draw_chain(notes: dict[str, str], values: Tensor | None = None) -> "Figure":
    figure, axes = subplots(size=(9.0, 3.9))
    fills = None
    if values is not None:
        fills = {
            mood: PALETTE[2] if value > 0 else PALETTE[1] for mood, value in zip(MOODS, values, strict=True) if value
        }
    plot_state_graph(axes[0, 0], PLACES, TRANSITION_PROBABILITIES, notes=notes, fills=fills)
    return figure


def draw_iteration() -> "Figure":
    lines = {}
    for discount in (0.5, 0.9, 1.0):
        process = cat_rewards(discount)
        errors = (process.iterates(60) - process.values()).abs().amax(1)
        lines[f"γ = {discount:g}"] = (range(61), errors.clamp(min=1e-16))
    return curves(lines, x_label="sweeps", y_label="largest error", log_y=True)


def draw_discounts() -> "Figure":
    discounts = torch.linspace(0, 1, 101, dtype=torch.float64)
    values = torch.stack([cat_rewards(float(discount)).values() for discount in discounts])
    lines = {mood: (discounts, values[:, i]) for i, mood in enumerate(MOODS)}
    return curves(lines, x_label="discount γ", y_label="value")


def draw_choice(border: float) -> "Figure":
    discounts = torch.linspace(0.5, 1, 101, dtype=torch.float64)
    q = torch.stack([policy_iteration(cat_decisions(float(discount))).q[RELAXED] for discount in discounts])
    lines = {"Q(relaxed, talk)": (discounts, q[:, TALK]), "Q(relaxed, stroke)": (discounts, q[:, STROKE])}
    return curves(lines, x_label="discount γ", y_label="action value", marks={f"γ = {border:.4f}": border})
