"""The book's cat: a Markov chain of six moods, with rewards and with decisions (book sec. 18.2).

The figures lost their numbers; they are reconstructed from the value equations (book eqs. 18.1-18.5), and the missing
probability leads to sleep.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.probability import MarkovChain
from parnassus.reinforcement.tabular.markov_decision_process import MarkovDecisionProcess
from parnassus.reinforcement.tabular.markov_reward_process import MarkovRewardProcess

MOODS = ("hunting", "hungry", "affectionate", "relaxed", "confused", "sleeping")
ACTIONS = ("wait", "talk", "stroke")
AWAKE = torch.tensor([0.2] * 5 + [0.0], dtype=torch.float64)
"""The uniform distribution over all moods but sleep."""
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
"""Transition probabilities between moods (book fig. 18.2)."""
REWARDS = {"hunting": -5.0, "hungry": -2.0, "affectionate": 5.0, "relaxed": 2.0, "confused": 1.0, "sleeping": 0.0}
"""The owner's reward in each mood (book fig. 18.3)."""
EXAMPLE_DAY = ("hungry", "hunting", "hungry", "affectionate", "sleeping")
"""The path whose return the book computes: −4, and −4.475 at γ = 0.9."""


def mood_indices(*names: str) -> Int[Tensor, " time"]:
    """The state indices of the moods."""
    unknown = [name for name in names if name not in MOODS]
    if unknown:
        raise ValueError(f"the cat's moods are {', '.join(MOODS)}; got {unknown[0]!r}")
    return torch.tensor([MOODS.index(name) for name in names])


def cat_chain(start: str = "hungry") -> MarkovChain:
    """The Markov chain of the cat's moods from a first one (book fig. 18.2)."""
    initial = torch.zeros(len(MOODS), dtype=torch.float64)
    initial[mood_indices(start)] = 1
    return MarkovChain(initial, _transition())


def cat_rewards(discount: float = 0.9) -> MarkovRewardProcess:
    """The chain with the owner's rewards (book fig. 18.3)."""
    return MarkovRewardProcess(_transition(), _reward(), discount)


def cat_decisions(discount: float = 0.9) -> MarkovDecisionProcess:
    """The decision process in which a relaxed cat can be talked to or stroked (book sec. 18.2).

    Talking makes it confused, stroking makes it sleep. In every other mood the only action is to wait.
    """
    relaxed, confused, sleeping = mood_indices("relaxed", "confused", "sleeping").tolist()
    transition = _transition()[:, None].repeat(1, len(ACTIONS), 1)
    transition[relaxed] = 0
    transition[relaxed, ACTIONS.index("talk"), confused] = 1
    transition[relaxed, ACTIONS.index("stroke"), sleeping] = 1
    transition[relaxed, ACTIONS.index("wait"), relaxed] = 1  # not allowed, but every row must be a distribution
    allowed = torch.zeros(len(MOODS), len(ACTIONS), dtype=torch.bool)
    allowed[:, ACTIONS.index("wait")] = True
    allowed[relaxed] = ~allowed[relaxed]
    terminal = torch.zeros(len(MOODS), dtype=torch.bool)
    terminal[sleeping] = True
    reward = _reward()[:, None, None].expand(-1, len(ACTIONS), len(MOODS))
    return MarkovDecisionProcess(transition, reward, discount, terminal, allowed)


def constant_policy(action: str) -> Float[Tensor, "states actions"]:
    """The policy that always takes this action when the cat is relaxed."""
    if action not in ACTIONS[1:]:
        raise ValueError(f"action must be 'talk' or 'stroke'; got {action!r}")
    policy = torch.zeros(len(MOODS), len(ACTIONS), dtype=torch.float64)
    policy[:, ACTIONS.index("wait")] = 1
    policy[MOODS.index("relaxed")] = 0
    policy[MOODS.index("relaxed"), ACTIONS.index(action)] = 1
    return policy


def _transition() -> Tensor:
    matrix = torch.zeros(len(MOODS), len(MOODS), dtype=torch.float64)
    for (before, after), probability in TRANSITION_PROBABILITIES.items():
        matrix[MOODS.index(before), MOODS.index(after)] = probability
    return matrix


def _reward() -> Tensor:
    return torch.tensor([REWARDS[mood] for mood in MOODS], dtype=torch.float64)
