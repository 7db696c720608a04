"""Bag-of-words counts (book sec. 10.1)."""

import torch
from jaxtyping import Int
from torch import Tensor


def bag_of_words(tokens: Int[Tensor, "*batch time"], vocabulary: int) -> Int[Tensor, "*batch {vocabulary}"]:
    """Number of occurrences of each token of the vocabulary, regardless of order (book sec. 10.1)."""
    if tokens.numel() and not 0 <= int(tokens.min()) <= int(tokens.max()) < vocabulary:
        raise ValueError(f"tokens must be from 0 to {vocabulary - 1}; got {int(tokens.min())} to {int(tokens.max())}")
    bag = torch.zeros(*tokens.shape[:-1], vocabulary, dtype=tokens.dtype, device=tokens.device)
    return bag.scatter_add_(-1, tokens, torch.ones_like(tokens))
