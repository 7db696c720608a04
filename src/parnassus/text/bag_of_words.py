"""Bag-of-words counts (book sec. 10.1)."""

import torch
from jaxtyping import Int
from torch import Tensor

from parnassus.errors import check_indices


def bag_of_words(tokens: Int[Tensor, "*batch time"], vocabulary: int) -> Int[Tensor, "*batch {vocabulary}"]:
    """Number of occurrences of each token of the vocabulary, regardless of order (book sec. 10.1)."""
    check_indices(vocabulary, tokens=tokens)
    bag = torch.zeros(*tokens.shape[:-1], vocabulary, dtype=tokens.dtype, device=tokens.device)
    return bag.scatter_add_(-1, tokens, torch.ones_like(tokens))
