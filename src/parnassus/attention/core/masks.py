"""Attention masks: True where a query may attend to a key (Zhao sec. 11, book sec. 10.1.1).

Masks combine with `&`; a mask of shape (batch, 1, keys) masks padding for every query.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


def causal_mask(queries: int, keys: int | None = None, *, device: torch.device | None = None) -> Bool[Tensor, "q k"]:
    """Each query attends to its own and earlier keys; the queries are aligned with the last keys."""
    keys = queries if keys is None else keys
    check_enough_keys(queries, keys)
    return torch.ones(queries, keys, dtype=torch.bool, device=device).tril(keys - queries)


def check_enough_keys(queries: int, keys: int) -> None:
    """ValueError if there are fewer keys than queries: the queries are the last positions of the keys."""
    if keys < queries:
        raise ValueError(f"there must be at least as many keys as queries; got queries={queries}, keys={keys}")


def length_mask(lengths: Int[Tensor, "*batch"], keys: int) -> Bool[Tensor, "*batch 1 {keys}"]:
    """Each query attends to the first l keys, where l is the valid length of its sequence (Zhao sec. 11)."""
    if bool(((lengths < 0) | (lengths > keys)).any()):
        raise ValueError(f"lengths must lie between 0 and keys={keys}; got {lengths.tolist()}")
    return (torch.arange(keys, device=lengths.device) < lengths[..., None]).unsqueeze(-2)


def zero_masked(
    x: Float[Tensor, "*batch keys width"], visible: Bool[Tensor, "*mask_batch keys"] | None
) -> Float[Tensor, "*batch keys width"]:
    """Keys, values or features with 0 where `visible` is False, so that NaN in padding cannot propagate."""
    return x if visible is None else x.masked_fill(~visible.unsqueeze(-1), 0.0)
