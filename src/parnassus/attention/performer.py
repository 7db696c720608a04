"""Performer: softmax attention by random features, linear in the length (Diehl sec. 4.1, Choromanski et al. 2021)."""

from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from parnassus.attention.cache import Memory
from parnassus.attention.head_positions import HeadPositions
from parnassus.attention.linear import recall, shown, with_column, with_ones
from parnassus.attention.linear_self_attention import FeatureAttention, mask_of_keys
from parnassus.attention.random_features import orthogonal_directions, positive_features
from parnassus.attention.self_attention import SelfAttention, join_heads

Draw: TypeAlias = Callable[[int, int], Tensor]
"""draw(count, width): that many random directions, such as `orthogonal_directions`."""
LARGE = 1 << 19
"""Numbers that stay in a core's cache through all passes over them: of heads with more, only some are at work."""


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

    The two lines are the same numbers: each direction looks at all keys, each query at all directions. Nothing can
    overflow and no sum can vanish; ‖q_i‖² and k cancel. `visible` is False at keys that nobody sees; where no key is
    seen the answer is 0. `scale` is 1/√width unless told.
    """
    if key.shape[-2] == 0:
        return query.new_zeros(*query.shape[:-1], value.shape[-1])
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    at_once = max(1, LARGE // (key.shape[-2] * len(directions)))
    if visible is None and query.is_cpu and query.shape[:-2].numel() > at_once:
        heads = zip(*(x.flatten(0, -3).split(at_once) for x in (query, key, value)), strict=True)
        parts = [performer_attention(q, k, v, directions, scale=scale) for q, k, v in heads]
        return torch.cat(parts).view(*query.shape[:-1], value.shape[-1])
    turned = directions * scale**0.5
    height = -scale / 2 * key.square().sum(-1)
    sees = None if visible is None else visible.any(-1)[..., None, None]
    if visible is not None and sees is not None:
        height = height.masked_fill(~(visible | ~sees.squeeze(-1)), -torch.inf)
        value = value.masked_fill(~visible.unsqueeze(-1), 0.0)  # a NaN in padding must not come through
    turned = turned.expand(*key.shape[:-2], -1, -1)
    look = _Looked.apply
    with torch.autocast(value.device.type, enabled=False):  # backward would find mixed precisions
        turned, query, key, height = (x.to(value.dtype) for x in (turned, query, key, height))
        mixed, total, _ = look(turned, key, value, height, True)  # type: ignore[no-untyped-call]  # torch has no type for it
        answer: Tensor = look(query, turned, mixed, total, False)[0]  # type: ignore[no-untyped-call]  # nor here
    return answer if sees is None else answer.masked_fill(~sees, 0.0)


class _Looked(torch.autograd.Function):
    """R = P V with P = softmax(X), X = Q Kᵀ + 1 hᵀ, and if asked for c_i = log Σ_j exp(X_ij). Slopes ∂ of the loss:

        ∂X = P ⊙ (∂R Vᵀ + (∂c − ⟨∂R, R⟩) 1ᵀ),   ∂Q = ∂X K,   ∂K = ∂Xᵀ Q,   ∂V = Pᵀ ∂R,   ∂h = ∂Xᵀ 1

    X and P are large, and passes over them are the cost. So what is added to each row or column of a product is one
    more column of its factors, where autograd would add it afterwards.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        height: Tensor,
        totals: bool,  # noqa: FBT001 - apply takes no names
    ) -> tuple[Tensor, Tensor | None, Tensor]:
        scores = with_ones(query) @ with_column(key, height.unsqueeze(-1)).mT
        weights = scores.softmax(-1)
        total = scores.amax(-1) - weights.amax(-1).log() if totals else None
        return weights @ value, total, weights

    @staticmethod
    def setup_context(
        ctx: Any, inputs: tuple[Tensor, Tensor, Tensor, Tensor, bool], output: tuple[Tensor, Tensor | None, Tensor]
    ) -> None:
        query, key, value, _, _ = inputs
        answer, _, weights = output
        ctx.mark_non_differentiable(weights)
        ctx.save_for_backward(query, key, value, answer, weights)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_answer: Tensor, d_total: Tensor | None, _: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, answer, weights = ctx.saved_tensors
        level = -(d_answer * answer).sum(-1, keepdim=True)
        level = level if d_total is None else level + d_total.unsqueeze(-1)
        d_scores = (with_column(d_answer, level) @ with_ones(value).mT).mul_(weights)
        d_query = d_scores @ key if ctx.needs_input_grad[0] else None
        if ctx.needs_input_grad[1]:
            summed = d_scores.mT @ with_ones(query)
            d_key, d_height = summed[..., : key.shape[-1]], summed[..., key.shape[-1]]
            return d_query, d_key, weights.mT @ d_answer, d_height, None
        return d_query, None, weights.mT @ d_answer, d_scores.sum(-2), None


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
    """The same where a query sees itself and what came before, by running sums.

    Of each feature the largest key is divided out, and given back to the queries: nothing overflows. Queries whose
    keys are all e⁸⁰ times smaller than what comes later would underflow in single precision, and get 0.
    """
    if key.shape[-2] == 0:
        return torch.zeros_like(value)
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    turned = directions * scale**0.5
    scores = (key @ turned.mT).sub_(scale / 2 * key.square().sum(-1, keepdim=True))
    if visible is not None:
        scores = scores.masked_fill(~visible.unsqueeze(-1), torch.finfo(scores.dtype).min)
    peak = scores.detach().amax(-2, keepdim=True)
    offered = scores.sub_(peak).exp_()
    if visible is not None:
        offered = offered.masked_fill(~visible.unsqueeze(-1), 0.0)
        value = value.masked_fill(~visible.unsqueeze(-1), 0.0)
    asked = (query @ turned.mT).add_(peak).softmax(-1)
    return recall(asked, offered, value, chunk=chunk)[0]


class PerformerAttention(FeatureAttention):
    """Self-attention whose weights are those of softmax on average, in linear time (Diehl sec. 4.1).

    All heads share the `features` directions. They are no parameters: draw new ones now and then with `redraw`, so that
    the model cannot fit itself to one draw. `draw` gives orthogonal ones unless told; compose it with `paired` for the
    hyperbolic cosine. Only whole keys can be hidden. When it reads on from sums, features are taken as they are.
    """

    directions: Tensor

    def __init__(
        self,
        width: int,
        heads: int,
        *,
        features: int = 256,
        draw: Draw = orthogonal_directions,
        causal: bool = False,
        positions: HeadPositions | None = None,
        bias: bool = True,
    ) -> None:
        super().__init__(width, heads, causal=causal, positions=positions, bias=bias)
        self.features, self.draw = features, draw
        self.register_buffer("directions", draw(features, width // heads))

    @classmethod
    def like(
        cls, softmax: SelfAttention, *, features: int = 256, draw: Draw = orthogonal_directions
    ) -> "PerformerAttention":
        """A stand-in for a trained layer, with its weights."""
        width, biased = softmax.answer.in_features, softmax.answer.bias is not None
        layer = cls(
            width, softmax.heads, features=features, draw=draw, causal=softmax.causal, positions=softmax.positions,
            bias=biased,
        )  # fmt: skip
        layer.ask.load_state_dict(softmax.ask.state_dict())
        layer.answer.load_state_dict(softmax.answer.state_dict())
        layer.directions = layer.directions.to(softmax.ask.weight)
        return layer.to(softmax.ask.weight)

    def redraw(self) -> None:
        """Forget these directions and draw new ones."""
        self.directions.copy_(self.draw(self.features, self.directions.shape[1]))

    def forward(
        self,
        x: Float[Tensor, "batch time width"],
        mask: Bool[Tensor, "*mask_batch _time keys"] | None = None,
        cache: Memory | None = None,
    ) -> Float[Tensor, "batch time width"]:
        sums, visible = self.sums(cache), mask_of_keys(mask)
        query, key, value = self.project(x, 0 if sums is None else sums.count)
        if self.positions is not None and self.positions.bias(query, key.shape[2]) is not None:
            raise ValueError("random features know no bias on the scores; use positions that turn, such as Rotary")
        if sums is not None:
            asked = (query * query.shape[-1] ** -0.25 @ self.directions.mT).softmax(-1)
            mixed = sums.recall(asked, shown(self.lifted(key), visible), shown(value, visible))
        else:
            attend = causal_performer_attention if self.causal else performer_attention
            mixed = attend(query, key, value, self.directions, visible=visible)
        answer: Tensor = self.answer(join_heads(mixed))
        return answer

    def lifted(self, x: Float[Tensor, "*batch time part"]) -> Float[Tensor, "*batch time features"]:
        """ψ(d^{−1/4} x): the scale 1/√d of the scores, half of it on each side."""
        return positive_features(x * x.shape[-1] ** -0.25, self.directions)
