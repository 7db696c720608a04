"""Values of the book's cat under changed rewards, discount and policy (book sec. 18.2)."""

from typing import Annotated

import torch
from torch import Tensor

from parnassus.atlas.decorators import probe
from parnassus.reinforcement.tabular.markov_decision_process import MarkovDecisionProcess
from parnassus.reinforcement.tabular.planning import policy_iteration
from parnassus.reinforcement.textbook.cat import ACTIONS, MOODS, cat_decisions, constant_policy
from parnassus.widgets import Answer, Bars, FloatSlider, Graph, GraphEdge, GraphNode, Numbers

POSITIONS = {
    "hunting": (0.0, 1.0),
    "hungry": (1.0, 1.0),
    "affectionate": (2.0, 2.0),
    "confused": (2.0, 0.0),
    "relaxed": (3.0, 0.0),
    "sleeping": (3.0, 2.0),
}
RELAXED, TALK, STROKE = MOODS.index("relaxed"), ACTIONS.index("talk"), ACTIONS.index("stroke")


@probe()
def cat_mdp(
    discount: Annotated[float, FloatSlider("discount γ", 0.0, 1.0)] = 0.9,
    talking: Annotated[float, FloatSlider("probability of talking to a relaxed cat", 0.0, 1.0)] = 0.2,
    *,
    hunting: Annotated[float, FloatSlider("reward while hunting", -10.0, 10.0)] = -5.0,
    hungry: Annotated[float, FloatSlider("reward while hungry", -10.0, 10.0)] = -2.0,
    affectionate: Annotated[float, FloatSlider("reward while affectionate", -10.0, 10.0)] = 5.0,
    relaxed: Annotated[float, FloatSlider("reward while relaxed", -10.0, 10.0)] = 2.0,
    confused: Annotated[float, FloatSlider("reward while confused", -10.0, 10.0)] = 1.0,
) -> list[Answer]:
    """Values of the cat's moods, and the optimal action when it is relaxed (book figs. 18.2, 18.3).

    The defaults are the book's. Increase the discount towards γ = 1: because hunting may follow, stroking becomes
    optimal. Find a reward of hunting for which talking is optimal at any discount, and one of confusion for which it
    never is.
    """
    rewards = torch.tensor([hunting, hungry, affectionate, relaxed, confused, 0.0], dtype=torch.float64)
    book = cat_decisions(discount)
    process = MarkovDecisionProcess(
        book.transition,
        rewards[:, None, None].expand(book.reward.shape),
        discount,
        book.terminal,
        book.allowed,
    )
    policy = talking * constant_policy("talk") + (1 - talking) * constant_policy("stroke")
    values = process.values_of(policy)
    q, optimal = process.q_values(values)[RELAXED], policy_iteration(process)
    start = torch.eye(len(MOODS), dtype=torch.float64)[MOODS.index("hungry")]
    numbers: dict[str, float | str] = {
        "Q(relaxed, talk)": float(q[TALK]),
        "Q(relaxed, stroke)": float(q[STROKE]),
        "optimal action when relaxed": "talk" if optimal.q[RELAXED, TALK] > optimal.q[RELAXED, STROKE] else "stroke",
        "value of hungry": float(values[1]),
        "optimal value of hungry": float(optimal.values[1]),
        "expected steps from hungry to sleep": float(process.discounted_by(1.0).occupancy(policy, start).sum()),
    }
    return [
        _graph(process.under(policy).transition, values),
        Bars("Values", MOODS, values.float(), marked=int(values.argmax())),
        Numbers("Action values", numbers),
    ]


def _graph(transition: Tensor, values: Tensor) -> Graph:
    """Moods with their values, and transitions with their probabilities."""
    nodes = [
        GraphNode(mood, f"{float(value):.2f}", *POSITIONS[mood], marked=mood == "relaxed")
        for mood, value in zip(MOODS, values, strict=True)
    ]
    pairs = [(before, after) for before, after in (transition > 0).nonzero().tolist() if MOODS[before] != "sleeping"]
    edges = [GraphEdge(before, after, f"{float(transition[before, after]):.2g}") for before, after in pairs]
    return Graph("Markov chain", nodes, edges, about="Nodes: moods and their values. Edges: transition probabilities.")
