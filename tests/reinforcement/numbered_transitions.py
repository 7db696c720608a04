"""Numbered transitions for tests of replay buffers."""

import torch

from parnassus.reinforcement.experience.transitions import Transitions


def numbered_transitions(first: int, count: int, num_learners: int = 2) -> Transitions:
    """Transitions that carry their number in every field."""
    numbers = torch.arange(first, first + count).float().expand(num_learners, count)
    return Transitions(
        numbers[..., None].repeat(1, 1, 3), numbers.long() % 5, numbers, numbers / 100,
        -numbers[..., None].repeat(1, 1, 3), numbers % 2 == 1,
    )  # fmt: skip
