"""cosFormer: linear attention with a locality bias, a cosine of the distance (Diehl sec. 4.1)."""

from functools import partial
from math import pi

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.attention.efficient.linear_attention import causal_linear_attention, linear_attention


def cosine_weight(distance: Float[Tensor, "*shape"], horizon: int) -> Float[Tensor, "*shape"]:
    """cos(π (i − j) / 2M): 1 at distance 0, 0 at the horizon M (Diehl sec. 4.1)."""
    return (pi / 2 * distance / horizon).cos()


def cosine_features(
    x: Float[Tensor, "*batch time width"], horizon: int, *, start: int = 0
) -> Float[Tensor, "*batch time twice"]:
    """relu(x_i) cos(πi/2M) and relu(x_i) sin(πi/2M), concatenated, i = start, start + 1, … (Qin et al. 2022).

        cos(π(i−j)/2M) = cos(πi/2M) cos(πj/2M) + sin(πi/2M) sin(πj/2M)

    so their inner product is ⟨relu(q_i), relu(k_j)⟩ cos(π(i−j)/2M). A weight e^{i−j} = eⁱ e^{−j} factorises too, but eⁱ
    cancels between numerator and normaliser, so that the position of the query would have no effect.
    """
    end = start + x.shape[-2]
    if end > horizon:
        raise ValueError(f"positions must not exceed the horizon; got {horizon=}, {end=}")
    angle = pi / 2 * torch.arange(start, end, device=x.device, dtype=x.dtype).unsqueeze(-1) / horizon
    positive = x.relu()
    return torch.cat([positive * angle.cos(), positive * angle.sin()], -1)


def cosformer_attention(
    query: Float[Tensor, "*batch queries width"],
    key: Float[Tensor, "*batch keys width"],
    value: Float[Tensor, "*batch keys out"],
    *,
    horizon: int | None = None,
) -> Float[Tensor, "*batch queries out"]:
    """Weights ∝ ⟨relu(q_i), relu(k_j)⟩ cos(π(i−j)/2M); M is the larger length by default (Diehl sec. 4.1)."""
    horizon = max(query.shape[-2], key.shape[-2]) if horizon is None else horizon
    return linear_attention(query, key, value, partial(cosine_features, horizon=horizon))


def causal_cosformer_attention(
    query: Float[Tensor, "*batch time width"],
    key: Float[Tensor, "*batch time width"],
    value: Float[Tensor, "*batch time out"],
    *,
    horizon: int | None = None,
    chunk: int = 64,
) -> Float[Tensor, "*batch time out"]:
    """Causal cosFormer attention by running sums."""
    horizon = query.shape[-2] if horizon is None else horizon
    return causal_linear_attention(query, key, value, partial(cosine_features, horizon=horizon), chunk=chunk)
