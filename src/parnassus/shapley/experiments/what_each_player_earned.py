"""Three ways to share: a garment, a debt, and what three players earn together (book secs. 17.1, 17.2)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from parnassus.report import FAINT, PALETTE, curves, subplots
from parnassus.shapley.division import contested_garment, run_to_the_bank, talmud_rule
from parnassus.shapley.game import game_of, looked_up
from parnassus.shapley.orders import by_orders
from parnassus.shapley.values import banzhaf_values, by_all_orders, interactions, shapley_values
from parnassus.train import Run, between, reported

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B17.1-2", "B17.1-3", "B17.1-4", "B17.2-2", "B17.2-3")
expected = {
    "first_player": between(161.66, 161.67, "Shapley value of player 1 in the book's game; 136.67 is printed"),
    "third_player": between(176.66, 176.67, "Shapley value of player 3"),
    "larger_part_of_the_garment": between(0.75, 0.75, "what the one gets who claims all of it"),
    "bank_of_200": between(33.33, 33.34, "what run to the bank gives the smallest of three claims out of 200"),
    "talmud_of_200": between(50.0, 50.0, "what the Talmud's rule gives it"),
    "error_of_64_orders": reported("root mean square error of a Shapley value from 64 random orders"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"repeats": 5}, "gpu": {}}

WORTHS = {(0,): 100.0, (1,): 125.0, (2,): 50.0, (0, 1): 270.0, (0, 2): 375.0, (1, 2): 350.0, (0, 1, 2): 500.0}
"""The game of the book's example (book fig. 17.2)."""
CLAIMS = torch.tensor([100.0, 200.0, 300.0], dtype=torch.float64)
HEIRS = ("claims 100", "claims 200", "claims 300")


@dataclass(frozen=True)
class Experiment:
    repeats: int = 200  # how often values are estimated from random orders, for each number of orders

    def __call__(self, run: Run) -> dict[str, float]:
        garment = contested_garment(1.0, 1.0, 0.5)
        run.figure(
            "garment",
            draw_garment(garment),
            "One claims all of a garment, the other half. The half that only one claims is hers; the other half is "
            "contested, and parted: ¾ and ¼.",
        )
        estates = torch.arange(0.0, 601.0, 10.0, dtype=torch.float64)
        bank, talmud = (
            torch.stack([rule(float(e), CLAIMS) for e in estates]) for rule in (run_to_the_bank, talmud_rule)
        )
        run.figure(
            "estates",
            draw_rules(estates, {"run to the bank": bank, "the Talmud's rule": talmud}),
            "Three claim 100, 200 and 300 of an estate that does not suffice. The mean over all orders of a run to the "
            "bank is a Shapley value; the Talmud parts what every two have as it parts the garment. They differ.",
        )
        worth = game_of(WORTHS, 3)
        table = by_all_orders(worth)
        run.table("orders", order_rows(table.orders, table.added, table.values), ORDERS)
        run.table("together", pair_rows(worth), TOGETHER)
        counts = (4, 16, 64, 256, 1_024)
        misses = {way: self.errors(worth, counts, mirrored=way == "mirrored") for way in ("random orders", "mirrored")}
        run.figure(
            "sampled_orders",
            curves(
                {name: (counts, errors) for name, errors in misses.items()},
                x_label="orders",
                y_label="root mean square error",
                log_x=True,
                log_y=True,
            ),
            "Shapley values from some orders of arrival: four times as many, half the error. An order with its mirror "
            "image misses nothing that two players have together; what three have together is left to chance.",
        )
        small = CLAIMS.argmin()
        return {
            "first_player": float(table.values[0]),
            "third_player": float(table.values[2]),
            "larger_part_of_the_garment": garment[0],
            "bank_of_200": float(run_to_the_bank(200.0, CLAIMS)[small]),
            "talmud_of_200": float(talmud_rule(200.0, CLAIMS)[small]),
            "error_of_64_orders": misses["random orders"][2],
        }

    def errors(self, worth: Tensor, counts: tuple[int, ...], *, mirrored: bool) -> list[float]:
        """By how much the mean over so many orders misses."""
        exact = shapley_values(worth)
        missed = [
            torch.stack(
                [
                    by_orders(looked_up(worth), 3, 2 * count, mirrored=mirrored).values - exact
                    for _ in range(self.repeats)
                ]
            )
            for count in counts
        ]
        return [float(each.square().mean().sqrt()) for each in missed]


ORDERS = (
    "What each player adds when they arrive in this order. A row sums to 500, what all earn; the mean of a column "
    "is a player's Shapley value. The book's own sum for player 1 forgets one 150."
)
TOGETHER = (
    "Shapley's values, and Banzhaf's, for which all coalitions count alike and which need not sum to 500; then what "
    "every two have together."
)


def order_rows(orders: Tensor, added: Tensor, values: Tensor) -> list[dict[str, str | float]]:
    rows: list[dict[str, str | float]] = [
        {
            "order of arrival": " ".join(str(player + 1) for player in order.tolist()),
            **{f"player {number + 1}": part for number, part in enumerate(parts.tolist())},
        }
        for order, parts in zip(orders, added, strict=True)
    ]
    return [*rows, {"order of arrival": "mean", **{f"player {n + 1}": v for n, v in enumerate(values.tolist())}}]


def pair_rows(worth: Tensor) -> list[dict[str, str | float]]:
    shared, banzhaf = interactions(worth), banzhaf_values(worth)
    return [
        {
            "player": str(player + 1),
            "Shapley": float(shared[player, player]),
            "Banzhaf": float(banzhaf[player]),
            **{
                f"with {other + 1}": "" if other == player else float(shared[player, other])
                for other in range(len(banzhaf))
            },
        }
        for player in range(len(banzhaf))
    ]


def draw_garment(parts: tuple[float, float]) -> "Figure":
    """The garment as a bar: what is conceded, what is contested, and how it ends."""
    figure, axes = subplots(size=(6.4, 2.2))
    ax = axes[0, 0]
    claimed = {"first claims": [(1.0, PALETTE[0])], "second claims": [(0.5, FAINT), (0.5, PALETTE[1])]}
    claimed["it is parted"] = [(parts[0], PALETTE[0]), (parts[1], PALETTE[1])]
    for row, pieces in enumerate(claimed.values()):
        start = 0.0
        for width, colour in pieces:
            ax.barh(row, width, left=start, color=colour, alpha=0.25 if colour == FAINT else 1.0, height=0.6)
            if colour != FAINT:
                ax.text(start + width / 2, row, f"{width:g}", ha="center", va="center", color="white")
            start += width
    ax.axvline(0.5, color=FAINT, linestyle="--", linewidth=1)
    ax.set_yticks(range(3), list(claimed))
    ax.invert_yaxis()
    ax.set(xlim=(0, 1), xlabel="the garment; its right half is contested")
    ax.grid(visible=False)
    return figure


def draw_rules(estates: Tensor, rules: dict[str, Tensor]) -> "Figure":
    """What each heir gets as the estate grows, one panel a rule."""
    figure, axes = subplots(1, len(rules), size=(9.0, 3.4))
    for ax, (name, parts) in zip(axes[0], rules.items(), strict=True):
        for heir, label in enumerate(HEIRS):
            ax.plot(estates.numpy(), parts[:, heir].numpy(), color=PALETTE[heir], label=label)
        ax.set(title=name, xlabel="estate", ylim=(-5, 305))
    axes[0, 0].set_ylabel("what the heir gets")
    axes[0, 0].legend()
    return figure
