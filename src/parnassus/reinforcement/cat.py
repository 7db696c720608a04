"""The book's cat: six moods, their rewards for the owner, and a choice between talking and stroking (book sec. 18.2).

The figures lost their numbers; they are read back from the value equations (book eqs. 18.1-18.5), and what is missing
to one there leads to sleep.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.probability import MarkovChain
from parnassus.reinforcement.decision import MarkovDecisionProcess
from parnassus.reinforcement.markov_reward import MarkovRewardProcess

MOODS = ("hunting", "hungry", "affectionate", "relaxed", "confused", "sleeping")
ACTIONS = ("wait", "talk", "stroke")
MOVES = {
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
"""How likely a mood follows another (book fig. 18.2)."""
REWARDS = {"hunting": -5.0, "hungry": -2.0, "affectionate": 5.0, "relaxed": 2.0, "confused": 1.0, "sleeping": 0.0}
"""What a mood is worth to the owner while it lasts (book fig. 18.3)."""
A_DAY = ("hungry", "hunting", "hungry", "affectionate", "sleeping")
"""The path whose return the book works out: −4, and −4.475 at γ = 0.9."""


def moods(*names: str) -> Int[Tensor, " time"]:
    """The numbers of the moods."""
    unknown = [name for name in names if name not in MOODS]
    if unknown:
        raise ValueError(f"the cat's moods are {', '.join(MOODS)}; got {unknown[0]!r}")
    return torch.tensor([MOODS.index(name) for name in names])


def cat_chain(start: str = "hungry") -> MarkovChain:
    """The cat's day, from the mood it wakes up in (book fig. 18.2)."""
    law = torch.zeros(len(MOODS), dtype=torch.float64)
    law[moods(start)] = 1
    return MarkovChain(law, _transition())


def cat_rewards(discount: float = 0.9) -> MarkovRewardProcess:
    """The same day with the owner's rewards (book fig. 18.3)."""
    return MarkovRewardProcess(_transition(), _reward(), discount)


def cat_decisions(discount: float = 0.9) -> MarkovDecisionProcess:
    """A choice for the owner of a relaxed cat: talking confuses it, stroking sends it to sleep (book sec. 18.2).

    In every other mood there is nothing to do but wait.
    """
    relaxed, confused, sleeping = moods("relaxed", "confused", "sleeping").tolist()
    transition = _transition()[:, None].repeat(1, len(ACTIONS), 1)
    transition[relaxed] = 0
    transition[relaxed, ACTIONS.index("talk"), confused] = 1
    transition[relaxed, ACTIONS.index("stroke"), sleeping] = 1
    transition[relaxed, ACTIONS.index("wait"), relaxed] = 1  # not allowed; a row must be a law all the same
    allowed = torch.zeros(len(MOODS), len(ACTIONS), dtype=torch.bool)
    allowed[:, ACTIONS.index("wait")] = True
    allowed[relaxed] = ~allowed[relaxed]
    terminal = torch.zeros(len(MOODS), dtype=torch.bool)
    terminal[sleeping] = True
    reward = _reward()[:, None, None].expand(-1, len(ACTIONS), len(MOODS))
    return MarkovDecisionProcess(transition, reward, discount, terminal, allowed)


def always(action: str) -> Float[Tensor, "states actions"]:
    """The policy that does this to every relaxed cat."""
    if action not in ACTIONS[1:]:
        raise ValueError(f"a relaxed cat may be talked to or stroked: 'talk' or 'stroke'; got {action!r}")
    policy = torch.zeros(len(MOODS), len(ACTIONS), dtype=torch.float64)
    policy[:, ACTIONS.index("wait")] = 1
    policy[MOODS.index("relaxed")] = 0
    policy[MOODS.index("relaxed"), ACTIONS.index(action)] = 1
    return policy


def _transition() -> Tensor:
    matrix = torch.zeros(len(MOODS), len(MOODS), dtype=torch.float64)
    for (before, after), chance in MOVES.items():
        matrix[MOODS.index(before), MOODS.index(after)] = chance
    return matrix


def _reward() -> Tensor:
    return torch.tensor([REWARDS[mood] for mood in MOODS], dtype=torch.float64)
