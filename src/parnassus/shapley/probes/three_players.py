"""A game of three to touch: set what every coalition is worth, see what each player earns (book fig. 17.2)."""

from typing import Annotated

import torch

from parnassus.atlas.marks import probe
from parnassus.shapley.game import dividends
from parnassus.shapley.values import banzhaf_values, by_all_orders, shapley_values
from parnassus.touch import Answer, Bars, Numbers, Real

PLAYERS = ("player 1", "player 2", "player 3")


@probe()
def share_among_three(
    *,
    one: Annotated[float, Real("worth of player 1 alone", -200.0, 800.0)] = 100.0,
    two: Annotated[float, Real("worth of player 2 alone", -200.0, 800.0)] = 125.0,
    three: Annotated[float, Real("worth of player 3 alone", -200.0, 800.0)] = 50.0,
    one_two: Annotated[float, Real("worth of 1 and 2", -200.0, 800.0)] = 270.0,
    one_three: Annotated[float, Real("worth of 1 and 3", -200.0, 800.0)] = 375.0,
    two_three: Annotated[float, Real("worth of 2 and 3", -200.0, 800.0)] = 350.0,
    all_three: Annotated[float, Real("worth of all three", -200.0, 800.0)] = 500.0,
) -> list[Answer]:
    """What three players earn, from what every coalition of them is worth (book fig. 17.2).

    Begin with the book's game. Raise the worth of all three: everybody gains a third of it. Raise that of 1 and 2:
    these two gain, and the third loses what both gain. Make a player alone worth less than nothing: when does the part
    follow?
    """
    worth = torch.tensor([0.0, one, two, one_two, three, one_three, two_three, all_three], dtype=torch.float64)
    orders = by_all_orders(worth)
    parts = shapley_values(worth)
    beyond = dividends(worth)
    rows = {
        "first " + ", then ".join(str(player + 1) for player in order.tolist()): ", ".join(
            f"{part:g}" for part in added
        )
        for order, added in zip(orders.orders, orders.added.tolist(), strict=True)
    }
    return [
        Bars("Shapley value", PLAYERS, parts, marked=int(parts.argmax())),
        Bars(
            "Banzhaf value", PLAYERS, banzhaf_values(worth), about="Coalitions count alike; the parts need not sum up."
        ),
        Numbers(
            "What players 1, 2 and 3 add, by order of arrival", rows, about="The mean of each is the Shapley value."
        ),
        Numbers(
            "What is only there together",
            {
                "1 and 2": float(beyond[3]),
                "1 and 3": float(beyond[5]),
                "2 and 3": float(beyond[6]),
                "all": float(beyond[7]),
            },
            about="The dividend of a coalition: its worth less what its parts are worth. Each is shared equally.",
        ),
    ]
