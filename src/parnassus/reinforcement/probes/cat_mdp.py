"""State values of the book's cat for other rewards, discounts and policies (book sec. 18.2)."""

from typing import Annotated

import torch
from torch import Tensor

from parnassus.atlas.decorators import probe
from parnassus.reinforcement.tabular.markov_decision_process import MarkovDecisionProcess
from parnassus.reinforcement.tabular.value_and_policy_iteration import policy_iteration
from parnassus.reinforcement.textbook.cat import ACTIONS, STATES, cat_decision_process, constant_policy
from parnassus.widgets import Answer, Bars, FloatSlider, Graph, GraphEdge, GraphNode, Numbers

POSITIONS = {
    "hunting": (0.0, 1.0),
    "hungry": (1.0, 1.0),
    "affectionate": (2.0, 2.0),
    "confused": (2.0, 0.0),
    "relaxed": (3.0, 0.0),
    "sleeping": (3.0, 2.0),
}
RELAXED, TALK, STROKE = STATES.index("relaxed"), ACTIONS.index("talk"), ACTIONS.index("stroke")


@probe()
def cat_mdp(
    gamma: Annotated[float, FloatSlider("discount γ", 0.0, 1.0)] = 0.9,
    talking: Annotated[float, FloatSlider("probability of talking in state relaxed", 0.0, 1.0)] = 0.2,
    *,
    hunting: Annotated[float, FloatSlider("reward of hunting", -10.0, 10.0)] = -5.0,
    hungry: Annotated[float, FloatSlider("reward of hungry", -10.0, 10.0)] = -2.0,
    affectionate: Annotated[float, FloatSlider("reward of affectionate", -10.0, 10.0)] = 5.0,
    relaxed: Annotated[float, FloatSlider("reward of relaxed", -10.0, 10.0)] = 2.0,
    confused: Annotated[float, FloatSlider("reward of confused", -10.0, 10.0)] = 1.0,
) -> list[Answer]:
    """State values of the cat's Markov decision process, and the optimal action (book figs. 18.2, 18.3).

    The defaults are the book's. Increase the discount towards γ = 1: because hunting may follow, stroking becomes
    optimal. Find a reward of hunting for which talking is optimal at any discount, and a reward of confused for which
    it never is.
    """
    rewards = torch.tensor([hunting, hungry, affectionate, relaxed, confused, 0.0], dtype=torch.float64)
    book = cat_decision_process(gamma)
    process = MarkovDecisionProcess(
        book.transition,
        rewards[:, None, None].expand(book.reward.shape),
        gamma,
        book.terminal,
        book.allowed,
    )
    policy = talking * constant_policy("talk") + (1 - talking) * constant_policy("stroke")
    values = process.state_values(policy)
    q, optimal = process.q_values(values)[RELAXED], policy_iteration(process)
    start = torch.eye(len(STATES), dtype=torch.float64)[STATES.index("hungry")]
    numbers: dict[str, float | str] = {
        "Q(relaxed, talk)": float(q[TALK]),
        "Q(relaxed, stroke)": float(q[STROKE]),
        "optimal action in relaxed": "talk" if optimal.q[RELAXED, TALK] > optimal.q[RELAXED, STROKE] else "stroke",
        "value of hungry": float(values[1]),
        "optimal value of hungry": float(optimal.values[1]),
        "expected steps from hungry to sleeping": float(process.with_discount(1.0).occupancy(policy, start).sum()),
    }
    return [
        _graph(process.reward_process(policy).transition, values),
        Bars("Values", STATES, values.float(), marked=int(values.argmax())),
        Numbers("Action values", numbers),
    ]


def _graph(transition: Tensor, values: Tensor) -> Graph:
    """States with their values, and transitions with their probabilities."""
    nodes = [
        GraphNode(state, f"{float(value):.2f}", *POSITIONS[state], marked=state == "relaxed")
        for state, value in zip(STATES, values, strict=True)
    ]
    pairs = [(start, end) for start, end in (transition > 0).nonzero().tolist() if STATES[start] != "sleeping"]
    edges = [GraphEdge(start, end, f"{float(transition[start, end]):.2g}") for start, end in pairs]
    return Graph("Markov chain", nodes, edges, about="Nodes: states and their values. Edges: transition probabilities.")
