"""Shapley values of small games: contested garment, bankruptcy, the book's three players (book secs. 17.1, 17.2)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from parnassus.report import FAINT, PALETTE, curves, subplots
from parnassus.shapley.estimators.permutation_sampling import permutation_sampling
from parnassus.shapley.games.bankruptcy import contested_garment, run_to_the_bank, talmud_rule
from parnassus.shapley.games.cooperative_games import characteristic_function, game_from_worths
from parnassus.shapley.games.shapley_values import (
    PermutationTable,
    banzhaf_values,
    interaction_indices,
    permutation_table,
    shapley_values,
)
from parnassus.train import Positive, Run, between, no_band

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B17.1-2", "B17.1-3", "B17.1-4", "B17.2-2", "B17.2-3")
expected = {
    "player_1_value": between(161.66, 161.67, "Shapley value of player 1 in the book's game, which prints 136.67"),
    "player_3_value": between(176.66, 176.67, "Shapley value of player 3 in the book's game"),
    "contested_garment_award": between(0.75, 0.75, "award of the claimant of the whole garment"),
    "run_to_the_bank_award": between(
        33.33, 33.34, "award of run to the bank for the smallest of three claims on an estate of 200"
    ),
    "talmud_rule_award": between(
        50.0, 50.0, "award of the Talmud rule for the smallest of three claims on an estate of 200"
    ),
    "rmse_64_permutations": no_band("root mean square error of a Shapley value from 64 random permutations"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"num_repeats": 5}, "gpu": {}}

WORTHS = {(0,): 100.0, (1,): 125.0, (2,): 50.0, (0, 1): 270.0, (0, 2): 375.0, (1, 2): 350.0, (0, 1, 2): 500.0}
"""The game of the book's example (book fig. 17.2)."""
CLAIMS = torch.tensor([100.0, 200.0, 300.0], dtype=torch.float64)
HEIRS = ("claim 100", "claim 200", "claim 300")


@dataclass(frozen=True)
class Experiment:
    num_repeats: Positive[int] = 200  # estimates for each number of permutations

    def __call__(self, run: Run) -> dict[str, float]:
        garment = contested_garment(1.0, 1.0, 0.5)
        run.figure(
            "garment",
            plot_garment(garment),
            "One claimant claims the whole garment, the other half of it. The half claimed by one of them only is "
            "awarded to that claimant; the contested half is divided equally, which gives ¾ and ¼.",
        )
        estates = torch.arange(0.0, 601.0, 10.0, dtype=torch.float64)
        bank, talmud = (
            torch.stack([rule(float(e), CLAIMS) for e in estates]) for rule in (run_to_the_bank, talmud_rule)
        )
        run.figure(
            "estates",
            plot_rules(estates, {"run to the bank": bank, "Talmud rule": talmud}),
            "Claims of 100, 200 and 300 on an estate that does not suffice. Run to the bank, the mean over all orders "
            "of arrival, is a Shapley value; the Talmud rule divides the total of every pair like the contested "
            "garment.",
        )
        worth = game_from_worths(WORTHS, 3)
        table = permutation_table(worth)
        run.table("permutations", permutation_rows(table), PERMUTATIONS)
        run.table("interactions", interaction_rows(worth), INTERACTIONS)
        counts = (4, 16, 64, 256, 1_024)
        errors = {
            name: self.sampling_errors(worth, counts, antithetic=name == "antithetic")
            for name in ("independent", "antithetic")
        }
        run.figure(
            "permutation sampling",
            curves(
                {name: (counts, each) for name, each in errors.items()},
                x_label="permutations",
                y_label="root mean square error",
                log_x=True,
                log_y=True,
            ),
            "Errors of permutation sampling: four times the permutations halve the error. Antithetic pairs, a "
            "permutation and its reverse, have no error from pairwise interactions; the interaction of all three "
            "remains.",
        )
        smallest = CLAIMS.argmin()
        return {
            "player_1_value": float(table.values[0]),
            "player_3_value": float(table.values[2]),
            "contested_garment_award": garment[0],
            "run_to_the_bank_award": float(run_to_the_bank(200.0, CLAIMS)[smallest]),
            "talmud_rule_award": float(talmud_rule(200.0, CLAIMS)[smallest]),
            "rmse_64_permutations": errors["independent"][2],
        }

    def sampling_errors(self, worth: Tensor, counts: tuple[int, ...], *, antithetic: bool) -> list[float]:
        """Root mean square errors for numbers of permutations."""
        exact = shapley_values(worth)
        deviations = [
            torch.stack(
                [
                    permutation_sampling(characteristic_function(worth), 3, 2 * count, antithetic=antithetic).values
                    - exact
                    for _ in range(self.num_repeats)
                ]
            )
            for count in counts
        ]
        return [float(each.square().mean().sqrt()) for each in deviations]


PERMUTATIONS = (
    "Marginal contributions of the players in each order of arrival. A row sums to v(N) = 500; the mean of a column "
    "is the player's Shapley value. The book's sum for player 1 omits one 150."
)
INTERACTIONS = (
    "Shapley values; Banzhaf values, which weight all coalitions equally and need not sum to 500; and Shapley "
    "interaction indices of all pairs."
)


def permutation_rows(table: PermutationTable) -> list[dict[str, str | float]]:
    rows: list[dict[str, str | float]] = [
        {
            "order of arrival": " ".join(str(player + 1) for player in order.tolist()),
            **{f"player {number + 1}": gain for number, gain in enumerate(gains.tolist())},
        }
        for order, gains in zip(table.permutations, table.contributions, strict=True)
    ]
    return [*rows, {"order of arrival": "mean", **{f"player {n + 1}": v for n, v in enumerate(table.values.tolist())}}]


def interaction_rows(worth: Tensor) -> list[dict[str, str | float]]:
    indices, banzhaf = interaction_indices(worth), banzhaf_values(worth)
    return [
        {
            "player": str(player + 1),
            "Shapley": float(indices[player, player]),
            "Banzhaf": float(banzhaf[player]),
            **{
                f"with {other + 1}": "" if other == player else float(indices[player, other])
                for other in range(len(banzhaf))
            },
        }
        for player in range(len(banzhaf))
    ]


def plot_garment(awards: tuple[float, float]) -> "Figure":
    """The garment as bars: the claims, and the division."""
    figure, axes = subplots(size=(6.4, 2.2))
    ax = axes[0, 0]
    bars = {"first claim": [(1.0, PALETTE[0])], "second claim": [(0.5, FAINT), (0.5, PALETTE[1])]}
    bars["division"] = [(awards[0], PALETTE[0]), (awards[1], PALETTE[1])]
    for row, pieces in enumerate(bars.values()):
        start = 0.0
        for width, colour in pieces:
            ax.barh(row, width, left=start, color=colour, alpha=0.25 if colour == FAINT else 1.0, height=0.6)
            if colour != FAINT:
                ax.text(start + width / 2, row, f"{width:g}", ha="center", va="center", color="white")
            start += width
    ax.axvline(0.5, color=FAINT, linestyle="--", linewidth=1)
    ax.set_yticks(range(3), list(bars))
    ax.invert_yaxis()
    ax.set(xlim=(0, 1), xlabel="fraction of the garment; the right half is contested")
    ax.grid(visible=False)
    return figure


def plot_rules(estates: Tensor, rules: dict[str, Tensor]) -> "Figure":
    """Awards against the estate, one panel per rule."""
    figure, axes = subplots(1, len(rules), size=(9.0, 3.4))
    for ax, (name, awards) in zip(axes[0], rules.items(), strict=True):
        for heir, label in enumerate(HEIRS):
            ax.plot(estates.numpy(), awards[:, heir].numpy(), color=PALETTE[heir], label=label)
        ax.set(title=name, xlabel="estate", ylim=(-5, 305))
    axes[0, 0].set_ylabel("award")
    axes[0, 0].legend()
    return figure
