"""Random policies of the cat example for tests of gradients."""

import torch

from parnassus.probability import standard_normal


def random_logits(seed: int = 0) -> torch.Tensor:
    """Random θ(s, a) of six states and three actions."""
    return standard_normal(6, 3, seed=seed)
