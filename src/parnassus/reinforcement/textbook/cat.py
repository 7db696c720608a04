"""The book's cat: a Markov chain of six states, its rewards, and its decision process (book sec. 18.2).

The figures do not show the probabilities; these are reconstructed from the value equations (book eqs. 18.1-18.5), and
the missing probability leads to `sleeping`.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.probability import MarkovChain
from parnassus.reinforcement.tabular.markov_decision_process import MarkovDecisionProcess
from parnassus.reinforcement.tabular.markov_reward_process import MarkovRewardProcess

STATES = ("hunting", "hungry", "affectionate", "relaxed", "confused", "sleeping")
ACTIONS = ("wait", "talk", "stroke")
UNIFORM_START = torch.tensor([0.2] * 5 + [0.0], dtype=torch.float64)
"""The uniform distribution over the non-terminal states."""
TRANSITION_PROBABILITIES = {
    ("hunting", "hunting"): 0.8,
    ("hunting", "hungry"): 0.2,
    ("hungry", "hunting"): 0.5,
    ("hungry", "affectionate"): 0.5,
    ("affectionate", "relaxed"): 0.5,
    ("affectionate", "confused"): 0.3,
    ("affectionate", "sleeping"): 0.2,
    ("relaxed", "confused"): 0.2,
    ("relaxed", "sleeping"): 0.8,
    ("confused", "hungry"): 0.2,
    ("confused", "relaxed"): 0.8,
    ("sleeping", "sleeping"): 1.0,
}
"""Transition probabilities (book fig. 18.2)."""
REWARDS = {"hunting": -5.0, "hungry": -2.0, "affectionate": 5.0, "relaxed": 2.0, "confused": 1.0, "sleeping": 0.0}
"""The reward of each state (book fig. 18.3)."""
EXAMPLE_EPISODE = ("hungry", "hunting", "hungry", "affectionate", "sleeping")
"""The episode whose return the book computes: −4, and −4.475 at γ = 0.9."""


def state_indices(*names: str) -> Int[Tensor, " time"]:
    """The indices of the named states."""
    unknown = [name for name in names if name not in STATES]
    if unknown:
        raise ValueError(f"the cat's states are {', '.join(STATES)}; got {unknown[0]!r}")
    return torch.tensor([STATES.index(name) for name in names])


def cat_chain(start: str = "hungry") -> MarkovChain:
    """The Markov chain of the cat's states, from a given one (book fig. 18.2)."""
    initial = torch.zeros(len(STATES), dtype=torch.float64)
    initial[state_indices(start)] = 1
    return MarkovChain(initial, _transition())


def cat_reward_process(gamma: float = 0.9) -> MarkovRewardProcess:
    """The Markov reward process: the chain with its rewards (book fig. 18.3)."""
    return MarkovRewardProcess(_transition(), _reward(), gamma)


def cat_decision_process(gamma: float = 0.9) -> MarkovDecisionProcess:
    """The Markov decision process with the actions talk and stroke in the state relaxed (book sec. 18.2).

    Talking leads to confused, stroking to sleeping. In every other state the only action is wait.
    """
    relaxed, confused, sleeping = state_indices("relaxed", "confused", "sleeping").tolist()
    transition = _transition()[:, None].repeat(1, len(ACTIONS), 1)
    transition[relaxed] = 0
    transition[relaxed, ACTIONS.index("talk"), confused] = 1
    transition[relaxed, ACTIONS.index("stroke"), sleeping] = 1
    transition[relaxed, ACTIONS.index("wait"), relaxed] = 1  # not allowed, but every row must be a distribution
    allowed = torch.zeros(len(STATES), len(ACTIONS), dtype=torch.bool)
    allowed[:, ACTIONS.index("wait")] = True
    allowed[relaxed] = ~allowed[relaxed]
    terminal = torch.zeros(len(STATES), dtype=torch.bool)
    terminal[sleeping] = True
    reward = _reward()[:, None, None].expand(-1, len(ACTIONS), len(STATES))
    return MarkovDecisionProcess(transition, reward, gamma, terminal, allowed)


def constant_policy(action: str) -> Float[Tensor, "states actions"]:
    """The policy that always takes this action in the state relaxed."""
    if action not in ACTIONS[1:]:
        raise ValueError(f"action must be 'talk' or 'stroke'; got {action!r}")
    policy = torch.zeros(len(STATES), len(ACTIONS), dtype=torch.float64)
    policy[:, ACTIONS.index("wait")] = 1
    policy[STATES.index("relaxed")] = 0
    policy[STATES.index("relaxed"), ACTIONS.index(action)] = 1
    return policy


def _transition() -> Tensor:
    matrix = torch.zeros(len(STATES), len(STATES), dtype=torch.float64)
    for (state, next_state), probability in TRANSITION_PROBABILITIES.items():
        matrix[STATES.index(state), STATES.index(next_state)] = probability
    return matrix


def _reward() -> Tensor:
    return torch.tensor([REWARDS[state] for state in STATES], dtype=torch.float64)
