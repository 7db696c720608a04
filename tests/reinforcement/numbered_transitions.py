"""Transitions to remember, for tests of memory."""

import torch

from parnassus.reinforcement.experience.transitions import Transitions


def numbered(first: int, count: int, num_learners: int = 2) -> Transitions:
    """Transitions that say in each part which they are."""
    number = torch.arange(first, first + count).float().expand(num_learners, count)
    return Transitions(
        number[..., None].repeat(1, 1, 3), number.long() % 5, number, number / 100, -number[..., None].repeat(1, 1, 3),
        number % 2 == 1,
    )  # fmt: skip
