"""Performer: softmax attention approximated by positive random features (Diehl sec. 4.1, Choromanski et al. 2021)."""

from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from parnassus.attention.core.cache import LayerCache
from parnassus.attention.core.masks import zero_masked
from parnassus.attention.core.self_attention import SelfAttention, join_heads
from parnassus.attention.efficient.linear_attention import append_column, append_ones, causal_feature_attention
from parnassus.attention.efficient.linear_self_attention import FeatureAttention, key_mask
from parnassus.attention.efficient.random_features import orthogonal_directions, positive_features
from parnassus.attention.positions.head_positions import HeadPositions

DrawDirections: TypeAlias = Callable[[int, int], Tensor]
"""draw(count, width) returns `count` random directions, for example `orthogonal_directions`."""
MAX_CACHED_SCORES = 1 << 19
"""Entries that stay in the cache of a CPU core through all passes; larger batches of heads are processed in parts."""


def performer_attention(
    query: Float[Tensor, "*batch queries width"],
    key: Float[Tensor, "*batch keys width"],
    value: Float[Tensor, "*batch keys out"],
    directions: Float[Tensor, "features width"],
    *,
    visible: Bool[Tensor, "*mask_batch keys"] | None = None,
    scale: float | None = None,
) -> Float[Tensor, "*batch queries out"]:
    """r_i = ψ(q_i)ᵀ Σ_j ψ(k_j) v_jᵀ / ψ(q_i)ᵀ Σ_j ψ(k_j) with positive features, in O(n · features) (Diehl sec. 4.1).

        S_m = Σ_j softmax_j(ω_m·k_j − ‖k_j‖²/2) v_j,   c_m = log Σ_j exp(ω_m·k_j − ‖k_j‖²/2)
        r_i = Σ_m softmax_m(ω_m·q_i + c_m) S_m

    The second form is equal to the first: each direction attends to all keys, each query to all directions. It cannot
    overflow, and no normaliser can vanish; ‖q_i‖² and k cancel. `visible` is False at padding; without any visible key
    the output is 0. `scale` is 1/√width by default.
    """
    if key.shape[-2] == 0:
        return query.new_zeros(*query.shape[:-1], value.shape[-1])
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    heads_per_part = max(1, MAX_CACHED_SCORES // (key.shape[-2] * len(directions)))
    if visible is None and query.is_cpu and query.shape[:-2].numel() > heads_per_part:
        heads = zip(*(x.flatten(0, -3).split(heads_per_part) for x in (query, key, value)), strict=True)
        parts = [performer_attention(q, k, v, directions, scale=scale) for q, k, v in heads]
        return torch.cat(parts).view(*query.shape[:-1], value.shape[-1])
    omega = directions * scale**0.5
    bias = -scale / 2 * key.square().sum(-1)
    has_keys = None if visible is None else visible.any(-1)[..., None, None]
    if visible is not None and has_keys is not None:
        bias = bias.masked_fill(~(visible | ~has_keys.squeeze(-1)), -torch.inf)
        value = zero_masked(value, visible)
    omega = omega.expand(*key.shape[:-2], -1, -1)
    softmax_product = _SoftmaxProduct.apply
    with torch.autocast(value.device.type, enabled=False):  # backward would get mixed precisions
        omega, query, key, bias = (x.to(value.dtype) for x in (omega, query, key, bias))
        sums, log_total, _ = softmax_product(omega, key, value, bias, True)  # type: ignore[no-untyped-call]  # apply is untyped in torch
        output: Tensor = softmax_product(query, omega, sums, log_total, False)[0]  # type: ignore[no-untyped-call]  # as above
    return output if has_keys is None else output.masked_fill(~has_keys, 0.0)


class _SoftmaxProduct(torch.autograd.Function):
    """R = P V with P = softmax(X), X = Q Kᵀ + 1 hᵀ, and optionally c_i = log Σ_j exp(X_ij). Gradients ∂ of the loss:

        ∂X = P ⊙ (∂R Vᵀ + (∂c − ⟨∂R, R⟩) 1ᵀ),   ∂Q = ∂X K,   ∂K = ∂Xᵀ Q,   ∂V = Pᵀ ∂R,   ∂h = ∂Xᵀ 1

    Passes over the large X and P dominate the cost. Terms that autograd would add to the rows or columns of a product
    afterwards are therefore included as one more column of its factors.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        bias: Tensor,
        with_total: bool,  # noqa: FBT001 - apply takes no keywords
    ) -> tuple[Tensor, Tensor | None, Tensor]:
        scores = append_ones(query) @ append_column(key, bias.unsqueeze(-1)).mT
        weights = scores.softmax(-1)
        log_total = scores.amax(-1) - weights.amax(-1).log() if with_total else None
        return weights @ value, log_total, weights

    @staticmethod
    def setup_context(
        ctx: Any, inputs: tuple[Tensor, Tensor, Tensor, Tensor, bool], output: tuple[Tensor, Tensor | None, Tensor]
    ) -> None:
        query, key, value, _, _ = inputs
        result, _, weights = output
        ctx.mark_non_differentiable(weights)
        ctx.save_for_backward(query, key, value, result, weights)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_result: Tensor, d_total: Tensor | None, _: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, result, weights = ctx.saved_tensors
        shift = -(d_result * result).sum(-1, keepdim=True)
        shift = shift if d_total is None else shift + d_total.unsqueeze(-1)
        d_scores = (append_column(d_result, shift) @ append_ones(value).mT).mul_(weights)
        d_query = d_scores @ key if ctx.needs_input_grad[0] else None
        if ctx.needs_input_grad[1]:
            d_key_and_bias = d_scores.mT @ append_ones(query)
            d_key, d_bias = d_key_and_bias[..., : key.shape[-1]], d_key_and_bias[..., key.shape[-1]]
            return d_query, d_key, weights.mT @ d_result, d_bias, None
        return d_query, None, weights.mT @ d_result, d_scores.sum(-2), None


def causal_performer_attention(
    query: Float[Tensor, "*batch time width"],
    key: Float[Tensor, "*batch time width"],
    value: Float[Tensor, "*batch time out"],
    directions: Float[Tensor, "features width"],
    *,
    visible: Bool[Tensor, "*mask_batch time"] | None = None,
    scale: float | None = None,
    chunk: int = 64,
) -> Float[Tensor, "*batch time out"]:
    """Causal Performer attention by running sums.

    Each feature is divided by its maximum over the keys, which is multiplied back into the queries, so that nothing
    overflows. If all visible keys of a query are smaller than a later key by a factor of about e⁸⁰, its weights
    underflow in single precision and the output is 0.
    """
    if key.shape[-2] == 0:
        return torch.zeros_like(value)
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    omega = directions * scale**0.5
    scores = (key @ omega.mT).sub_(scale / 2 * key.square().sum(-1, keepdim=True))
    if visible is not None:
        scores = scores.masked_fill(~visible.unsqueeze(-1), torch.finfo(scores.dtype).min)
    peak = scores.detach().amax(-2, keepdim=True)
    key_features = zero_masked(scores.sub_(peak).exp_(), visible)
    query_features = (query @ omega.mT).add_(peak).softmax(-1)
    return causal_feature_attention(query_features, key_features, zero_masked(value, visible), chunk=chunk)[0]


class PerformerAttention(FeatureAttention):
    """Self-attention with random features whose products estimate the softmax kernel, in linear time (Diehl sec. 4.1).

    All heads share the `features` directions, which are a buffer: redraw them during training with `redraw`, so that
    the model does not adapt to one sample. `draw` gives orthogonal directions by default; compose it with
    `antithetic_pairs` for the hyperbolic cosine. A mask must be the same for all queries. With a cache, key features
    are not rescaled by their maximum.

    >>> PerformerAttention(16, 2, features=32)(torch.zeros(1, 5, 16)).shape
    torch.Size([1, 5, 16])
    """

    directions: Tensor

    def __init__(
        self,
        width: int,
        heads: int,
        *,
        features: int = 256,
        draw: DrawDirections = orthogonal_directions,
        causal: bool = False,
        positions: HeadPositions | None = None,
        bias: bool = True,
    ) -> None:
        super().__init__(width, heads, causal=causal, positions=positions, bias=bias)
        self.features, self.draw = features, draw
        self.register_buffer("directions", draw(features, width // heads))

    @classmethod
    def from_softmax(
        cls, softmax: SelfAttention, *, features: int = 256, draw: DrawDirections = orthogonal_directions
    ) -> "PerformerAttention":
        """A Performer layer with the weights of a trained softmax layer."""
        width, biased = softmax.out_proj.in_features, softmax.out_proj.bias is not None
        layer = cls(
            width, softmax.heads, features=features, draw=draw, causal=softmax.causal, positions=softmax.positions,
            bias=biased,
        )  # fmt: skip
        layer.in_proj.load_state_dict(softmax.in_proj.state_dict())
        layer.out_proj.load_state_dict(softmax.out_proj.state_dict())
        layer.directions = layer.directions.to(softmax.in_proj.weight)
        return layer.to(softmax.in_proj.weight)

    def redraw(self) -> None:
        """Replace the directions by newly sampled ones."""
        self.directions.copy_(self.draw(self.features, self.directions.shape[1]))

    def forward(
        self,
        x: Float[Tensor, "batch time width"],
        mask: Bool[Tensor, "*mask_batch _time keys"] | None = None,
        cache: LayerCache | None = None,
    ) -> Float[Tensor, "batch time width"]:
        sums, visible = self.running_sums(cache), key_mask(mask)
        query, key, value = self.project(x, 0 if sums is None else sums.count)
        if self.positions is not None and self.positions.bias(query, key.shape[2]) is not None:
            raise ValueError("a Performer supports positions that rotate, such as Rotary, but no bias on the scores")
        if sums is not None:
            query_features = (query * query.shape[-1] ** -0.25 @ self.directions.mT).softmax(-1)
            key_features = zero_masked(self.feature_map(key), visible)
            heads = sums.attend(query_features, key_features, zero_masked(value, visible))
        else:
            attend = causal_performer_attention if self.causal else performer_attention
            heads = attend(query, key, value, self.directions, visible=visible)
        output: Tensor = self.out_proj(join_heads(heads))
        return output

    def feature_map(self, x: Float[Tensor, "*batch time part"]) -> Float[Tensor, "*batch time features"]:
        """ψ(d^{−1/4} x): queries and keys each take the square root of the scale 1/√d."""
        return positive_features(x * x.shape[-1] ** -0.25, self.directions)
