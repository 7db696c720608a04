"""A game of three players: Shapley and Banzhaf values as the worths change (book fig. 17.2)."""

from typing import Annotated

import torch

from parnassus.atlas.decorators import probe
from parnassus.shapley.games.cooperative_games import harsanyi_dividends
from parnassus.shapley.games.shapley_values import banzhaf_values, permutation_table, shapley_values
from parnassus.widgets import Answer, Bars, FloatSlider, Numbers

PLAYERS = ("player 1", "player 2", "player 3")


@probe()
def three_player_game(
    *,
    one: Annotated[float, FloatSlider("worth of player 1 alone", -200.0, 800.0)] = 100.0,
    two: Annotated[float, FloatSlider("worth of player 2 alone", -200.0, 800.0)] = 125.0,
    three: Annotated[float, FloatSlider("worth of player 3 alone", -200.0, 800.0)] = 50.0,
    one_two: Annotated[float, FloatSlider("worth of 1 and 2", -200.0, 800.0)] = 270.0,
    one_three: Annotated[float, FloatSlider("worth of 1 and 3", -200.0, 800.0)] = 375.0,
    two_three: Annotated[float, FloatSlider("worth of 2 and 3", -200.0, 800.0)] = 350.0,
    all_three: Annotated[float, FloatSlider("worth of all three", -200.0, 800.0)] = 500.0,
) -> list[Answer]:
    """Shapley values of three players from the worths of their coalitions (book fig. 17.2).

    The initial worths are the book's. Raising the worth of all three raises each value by a third of it. Raising that
    of 1 and 2 raises their values and lowers the third by the sum of both. A player with a negative worth alone can
    still have a positive value.
    """
    worth = torch.tensor([0.0, one, two, one_two, three, one_three, two_three, all_three], dtype=torch.float64)
    table = permutation_table(worth)
    values = shapley_values(worth)
    dividends = harsanyi_dividends(worth)
    rows = {
        "first " + ", then ".join(str(player + 1) for player in order.tolist()): ", ".join(
            f"{gain:g}" for gain in gains
        )
        for order, gains in zip(table.permutations, table.contributions.tolist(), strict=True)
    }
    return [
        Bars("Shapley value", PLAYERS, values, marked=int(values.argmax())),
        Bars(
            "Banzhaf value",
            PLAYERS,
            banzhaf_values(worth),
            about="All coalitions have equal weight; the values need not be efficient.",
        ),
        Numbers(
            "Marginal contributions of players 1, 2 and 3 by permutation",
            rows,
            about="Their means are the Shapley values.",
        ),
        Numbers(
            "Harsanyi dividends",
            {
                "1 and 2": float(dividends[3]),
                "1 and 3": float(dividends[5]),
                "2 and 3": float(dividends[6]),
                "all": float(dividends[7]),
            },
            about="Worth of a coalition minus the dividends of its subsets; members share it equally.",
        ),
    ]
