"""Attention maps of a model: the weights of every layer and head, and their statistics (book sec. 10.1)."""

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from parnassus.attention.core.cache import LayerCache
from parnassus.attention.core.dot_product import attention_weights
from parnassus.attention.core.masks import check_enough_keys
from parnassus.attention.core.multi_head import KeyValueHeads, MultiHeadAttention
from parnassus.attention.core.self_attention import SelfAttention, split_heads
from parnassus.layers.evaluation_mode import evaluation_mode


def attention_maps(
    model: nn.Module, *inputs: Shaped[Tensor, "..."]
) -> dict[str, Float[Tensor, "_batch _heads _queries _keys"]]:
    """The attention weights of every layer in a forward pass on these inputs, by layer name, in order of execution.

    Fused kernels do not return weights, so they are recomputed from the inputs of each layer, in evaluation mode. Of a
    layer that is called more than once the last call is returned.
    """
    layers = {name: layer for name, layer in model.named_modules() if isinstance(layer, _LAYERS)}
    if not layers:
        raise ValueError(f"the model must have an attention layer; {type(model).__name__} has none")
    maps: dict[str, Tensor] = {}
    with ExitStack() as hooks, evaluation_mode(model), torch.no_grad():
        for name, layer in layers.items():
            store = partial(maps.__setitem__, name)
            hooks.callback(_hook_self(layer, store) if isinstance(layer, SelfAttention) else _hook_cross(layer, store))
        model(*inputs)
    return maps


def attention_entropy(weights: Float[Tensor, "*batch queries keys"]) -> Float[Tensor, "*batch queries"]:
    """−Σ_j α_j log α_j in nats: 0 for one-hot weights, log n for uniform weights over n keys.

    A fully masked query, whose weights are all 0, has entropy 0.
    """
    terms: Tensor = torch.special.entr(weights)
    return terms.sum(-1)


def attention_distance(
    weights: Float[Tensor, "*batch queries keys"], positions: Float[Tensor, "keys axes"] | None = None
) -> Float[Tensor, "*batch queries"]:
    """Σ_j α_ij ‖p_i − p_j‖: the mean attention distance of each query (Dosovitskiy et al. 2020).

    `positions` holds the coordinates of the keys, such as patch centres in an image; 0, 1, 2, … by default. The queries
    are aligned with the last keys.
    """
    queries, keys = weights.shape[-2:]
    check_enough_keys(queries, keys)
    if positions is None:
        positions = torch.arange(keys, dtype=weights.dtype, device=weights.device)[:, None]
    return (weights * torch.cdist(positions[keys - queries :], positions)).sum(-1)


_LAYERS = (SelfAttention, MultiHeadAttention)


def _hook_self(layer: SelfAttention, store: Callable[[Tensor], None]) -> Callable[[], None]:
    """Store the weights at every call of the layer; returns a function that removes the hook."""

    def store_weights(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        store(weights(*args, **kwargs))

    def weights(x: Tensor, mask: Tensor | None = None, cache: LayerCache | None = None) -> Tensor:
        if cache is not None:
            raise ValueError("attention maps need the whole sequence in one call; got a cache")
        return layer.weights(x, mask)

    return layer.register_forward_pre_hook(store_weights, with_kwargs=True).remove


def _hook_cross(layer: MultiHeadAttention, store: Callable[[Tensor], None]) -> Callable[[], None]:
    """Store the weights of cross-attention, which may be called by `attend` with precomputed keys and values."""

    def store_weights(query: Tensor, memory: KeyValueHeads, mask: Tensor | None = None) -> Tensor:
        query_heads = split_heads(layer.query(query), layer.heads)
        head_mask = None if mask is None else mask.unsqueeze(-3)
        store(attention_weights(query_heads, memory.keys, head_mask, scale=layer.scale))
        return attend(query, memory, mask)

    attend = layer.attend
    layer.attend = store_weights  # type: ignore[method-assign]  # on this instance only, until the hook is removed
    return partial(delattr, layer, "attend")
