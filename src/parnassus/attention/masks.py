"""Who may look at whom: True where a query sees a key (Zhao sec. 11, book sec. 10.1.1).

Masks of one shape join with `&`; a mask of shape (batch, 1, keys) hides padding from every query.
"""

import torch
from jaxtyping import Bool, Int
from torch import Tensor


def causal_mask(queries: int, keys: int | None = None, *, device: torch.device | None = None) -> Bool[Tensor, "q k"]:
    """A query sees itself and what came before; with more keys than queries, the queries are the last of them."""
    keys = queries if keys is None else keys
    if keys < queries:
        raise ValueError(f"the queries are the last of the keys, so keys ≥ queries; got {queries} queries, {keys} keys")
    return torch.ones(queries, keys, dtype=torch.bool, device=device).tril(keys - queries)


def length_mask(lengths: Int[Tensor, "*batch"], keys: int) -> Bool[Tensor, "*batch 1 {keys}"]:
    """Every query sees the first l keys, where l is the valid length of its sequence (Zhao sec. 11)."""
    if bool(((lengths < 0) | (lengths > keys)).any()):
        raise ValueError(f"lengths must lie between 0 and the {keys} keys; got {lengths.tolist()}")
    return (torch.arange(keys, device=lengths.device) < lengths[..., None]).unsqueeze(-2)


def padding_mask(tokens: Int[Tensor, "batch time"], padding: int = 0) -> Bool[Tensor, "batch 1 time"]:
    """Every query sees the tokens that are not padding (book sec. 10.1.1)."""
    return (tokens != padding).unsqueeze(-2)
