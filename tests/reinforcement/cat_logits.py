"""Policies for the cat's decisions, for tests of their gradients."""

import torch


def logits(seed: int = 0) -> torch.Tensor:
    """θ(s, a), as chance has it, for six states and three actions."""
    return torch.randn(6, 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
