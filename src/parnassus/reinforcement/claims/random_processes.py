"""Random decision processes and generators for claims."""

import torch

from parnassus.probability import seeded_generator
from parnassus.reinforcement.tabular.markov_decision_process import MarkovDecisionProcess

DISCOUNT = 0.9


def random_process(states: int = 2, actions: int = 2, seed: int = 0) -> MarkovDecisionProcess:
    """Random transitions and rewards without terminal states."""
    generator = seeded_generator(seed)
    transition = torch.rand(states, actions, states, generator=generator, dtype=torch.float64)
    return MarkovDecisionProcess(
        transition / transition.sum(-1, keepdim=True),
        torch.randn(states, actions, states, generator=generator, dtype=torch.float64),
        DISCOUNT,
        torch.zeros(states, dtype=torch.bool),
        torch.ones(states, actions, dtype=torch.bool),
    )


def random_episodic_process(actions: int = 2, seed: int = 0) -> MarkovDecisionProcess:
    """Random transitions to states of higher number only: episodes from state 0 end in state 3 after 1 to 3 steps."""
    generator = seeded_generator(seed)
    transition = torch.rand(4, actions, 4, generator=generator, dtype=torch.float64)
    transition *= torch.ones(4, 4).triu(1)[:, None]
    transition[3, :, 3] = 1
    return MarkovDecisionProcess(
        transition / transition.sum(-1, keepdim=True),
        torch.randn(4, actions, 4, generator=generator, dtype=torch.float64),
        DISCOUNT,
        torch.tensor([False, False, False, True]),
        torch.ones(4, actions, dtype=torch.bool),
    )
