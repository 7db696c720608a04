"""Random policies of the cat example for tests of gradients."""

import torch


def random_logits(seed: int = 0) -> torch.Tensor:
    """Random θ(s, a) of six states and three actions."""
    return torch.randn(6, 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
