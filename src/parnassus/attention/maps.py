"""Attention maps of a whole model: who looked where, in every layer and head (book sec. 10.1)."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from parnassus.attention.cache import Memory
from parnassus.attention.dot_product import attention_weights
from parnassus.attention.multi_head import MultiHeadAttention, Offered
from parnassus.attention.self_attention import SelfAttention, split_heads


def attention_maps(
    model: nn.Module, *inputs: Shaped[Tensor, "..."]
) -> dict[str, Float[Tensor, "_batch _heads _queries _keys"]]:
    """The weights of every attention layer while the model reads these inputs: by the layer's name, in order of use.

    Fused kernels keep no weights, so each layer is asked for them anew from what came into it. Dropout is off while
    that happens. Of a layer that is used more than once the last use is shown.
    """
    layers = {name: layer for name, layer in model.named_modules() if isinstance(layer, _LAYERS)}
    if not layers:
        raise ValueError(f"{type(model).__name__} has no attention layer to look at")
    maps: dict[str, Tensor] = {}
    with ExitStack() as watching, _evaluating(model), torch.no_grad():
        for name, layer in layers.items():
            keep = partial(maps.__setitem__, name)
            watching.callback(_watch(layer, keep) if isinstance(layer, SelfAttention) else _watch_across(layer, keep))
        model(*inputs)
    return maps


def attention_entropy(weights: Float[Tensor, "*batch queries keys"]) -> Float[Tensor, "*batch queries"]:
    """−Σ_j α_j log α_j in nats: 0 for a query that looks at one key, log of their number for one that looks at all.

    A query that sees nothing, whose weights are all 0, has entropy 0.
    """
    terms: Tensor = torch.special.entr(weights)
    return terms.sum(-1)


def attention_distance(
    weights: Float[Tensor, "*batch queries keys"], places: Float[Tensor, "keys axes"] | None = None
) -> Float[Tensor, "*batch queries"]:
    """Σ_j α_ij ‖p_i − p_j‖: how far each query looks on average (Dosovitskiy et al. 2020).

    `places` says where the keys stand, such as patches in an image; in a row, one apart, unless told. The queries are
    the last of the keys.
    """
    queries, keys = weights.shape[-2:]
    if queries > keys:
        raise ValueError(f"the queries are the last of the keys, so keys ≥ queries; got {queries} queries, {keys} keys")
    if places is None:
        places = torch.arange(keys, dtype=weights.dtype, device=weights.device)[:, None]
    return (weights * torch.cdist(places[keys - queries :], places)).sum(-1)


_LAYERS = (SelfAttention, MultiHeadAttention)


@contextmanager
def _evaluating(model: nn.Module) -> Iterator[None]:
    """In evaluation mode for a while; then every part is in its own mode again."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training


def _watch(layer: SelfAttention, keep: Callable[[Tensor], None]) -> Callable[[], None]:
    """Keep the weights whenever the layer is used; what is returned ends that."""

    def look(_: nn.Module, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        keep(weights(*given, **named))

    def weights(x: Tensor, mask: Tensor | None = None, cache: Memory | None = None) -> Tensor:
        if cache is not None:
            raise ValueError("attention maps are of a whole sequence, not of one that is read on from a cache")
        return layer.weights(x, mask)

    return layer.register_forward_pre_hook(look, with_kwargs=True).remove


def _watch_across(layer: MultiHeadAttention, keep: Callable[[Tensor], None]) -> Callable[[], None]:
    """The same where keys and values may have been worked out before: then `ask` is called, and not the layer."""

    def look(query: Tensor, offered: Offered, mask: Tensor | None = None) -> Tensor:
        asked = split_heads(layer.query(query), layer.heads)
        shown = None if mask is None else mask.unsqueeze(-3)
        keep(attention_weights(asked, offered.keys, shown, scale=layer.scale))
        return ask(query, offered, mask)

    ask = layer.ask
    layer.ask = look  # type: ignore[method-assign]  # of this one layer, while it is watched
    return partial(delattr, layer, "ask")
