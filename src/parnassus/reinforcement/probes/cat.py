"""The cat's chain to touch: rewards, patience and the owner's habit, and what every mood is worth (book sec. 18.2)."""

from typing import Annotated

import torch
from torch import Tensor

from parnassus.atlas.marks import probe
from parnassus.reinforcement.cat import ACTIONS, MOODS, always, cat_decisions
from parnassus.reinforcement.decision import MarkovDecisionProcess
from parnassus.reinforcement.planning import policy_iteration
from parnassus.touch import Answer, Arrow, Bars, Box, Graph, Numbers, Real

PLACES = {
    "hunting": (0.0, 1.0),
    "hungry": (1.0, 1.0),
    "affectionate": (2.0, 2.0),
    "confused": (2.0, 0.0),
    "relaxed": (3.0, 0.0),
    "sleeping": (3.0, 2.0),
}
RELAXED, TALK, STROKE = MOODS.index("relaxed"), ACTIONS.index("talk"), ACTIONS.index("stroke")


@probe()
def the_cats_chain(
    discount: Annotated[float, Real("discount, γ", 0.0, 1.0)] = 0.9,
    talking: Annotated[float, Real("how often a relaxed cat is talked to, not stroked", 0.0, 1.0)] = 0.2,
    *,
    hunting: Annotated[float, Real("reward while hunting", -10.0, 10.0)] = -5.0,
    hungry: Annotated[float, Real("reward while hungry", -10.0, 10.0)] = -2.0,
    affectionate: Annotated[float, Real("reward while affectionate", -10.0, 10.0)] = 5.0,
    relaxed: Annotated[float, Real("reward while relaxed", -10.0, 10.0)] = 2.0,
    confused: Annotated[float, Real("reward while confused", -10.0, 10.0)] = 1.0,
) -> list[Answer]:
    """What each of the cat's moods is worth, and what to do when it is relaxed (book figs. 18.2, 18.3).

    Begin with the book's numbers. Look further ahead, towards γ = 1: one who fears the hunting to come lets the cat
    sleep. Then find a reward of hunting for which talking is right at any discount, and one of confusion for which it
    never is.
    """
    rewards = torch.tensor([hunting, hungry, affectionate, relaxed, confused, 0.0], dtype=torch.float64)
    given = cat_decisions(discount)
    process = MarkovDecisionProcess(
        given.transition,
        rewards[:, None, None].expand(given.reward.shape),
        discount,
        given.terminal,
        given.allowed,
    )
    policy = talking * always("talk") + (1 - talking) * always("stroke")
    values = process.values_of(policy)
    q, best = process.q_values(values)[RELAXED], policy_iteration(process)
    start = torch.eye(len(MOODS), dtype=torch.float64)[MOODS.index("hungry")]
    numbers: dict[str, float | str] = {
        "Q(relaxed, talk), then as now": float(q[TALK]),
        "Q(relaxed, stroke), then as now": float(q[STROKE]),
        "best for a relaxed cat": "talk" if best.q[RELAXED, TALK] > best.q[RELAXED, STROKE] else "stroke",
        "value of a hungry cat, now": float(values[1]),
        "value of a hungry cat, at best": float(best.values[1]),
        "moods of a day that begins hungry": float(process.discounted_by(1.0).occupancy(policy, start).sum()),
    }
    return [
        _graph(process.under(policy).transition, values),
        Bars("Values", MOODS, values.float(), marked=int(values.argmax())),
        Numbers("Talk or stroke?", numbers),
    ]


def _graph(transition: Tensor, values: Tensor) -> Graph:
    """Moods with their values, and every move with its probability."""
    boxes = [
        Box(mood, f"{float(value):.2f}", *PLACES[mood], marked=mood == "relaxed")
        for mood, value in zip(MOODS, values, strict=True)
    ]
    moves = [(before, after) for before, after in (transition > 0).nonzero().tolist() if MOODS[before] != "sleeping"]
    arrows = [Arrow(before, after, f"{float(transition[before, after]):.2g}") for before, after in moves]
    return Graph(
        "The chain", boxes, arrows, about="In a box: a mood and its value. On an arrow: how likely it is next."
    )
