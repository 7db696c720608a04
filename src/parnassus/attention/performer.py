"""Performer: softmax attention by random features, linear in the length (Diehl sec. 4.1, Choromanski et al. 2021)."""

from collections.abc import Callable
from typing import TypeAlias

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import pad

from parnassus.attention.cache import Memory
from parnassus.attention.head_positions import HeadPositions
from parnassus.attention.linear import RunningSums, mask_of_keys, recall, weights_by_features
from parnassus.attention.random_features import orthogonal_directions, positive_features
from parnassus.attention.self_attention import SelfAttention, join_heads

Draw: TypeAlias = Callable[[int, int], Tensor]
"""draw(count, width): that many random directions, such as `orthogonal_directions`."""
LARGE = 1 << 19
"""Features of one head, from which on a CPU takes one head after the other: they then stay in its cache."""


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
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    large = query.device.type == "cpu" and key.shape[-2] * len(directions) >= LARGE
    if large and visible is None and query.shape[:-2].numel() > 1:
        heads = zip(*(x.flatten(0, -3) for x in (query, key, value)), strict=True)
        parts = [performer_attention(q, k, v, directions, scale=scale) for q, k, v in heads]
        return torch.stack(parts).view(*query.shape[:-1], value.shape[-1])
    turned = directions * scale**0.5
    scores = (turned @ key.mT).sub_(scale / 2 * key.square().sum(-1).unsqueeze(-2))
    sees = None if visible is None else visible.any(-1)[..., None, None]
    if visible is not None and sees is not None:
        scores = scores.masked_fill(~visible.unsqueeze(-2) & sees, -torch.inf)
        value = value.masked_fill(~visible.unsqueeze(-1), 0.0)  # a NaN in padding must not come through
    peak = scores.detach().amax(-1, keepdim=True)
    looked = scores.sub_(peak).exp_() @ pad(value, (0, 1), value=1.0)  # in place: at n · features memory is the cost
    mixed, total = looked[..., :-1], looked[..., -1:]
    answer: Tensor = (query @ turned.mT).add_((peak + total.log()).mT).softmax(-1) @ (mixed / total)
    return answer if sees is None else answer.masked_fill(~sees, 0.0)


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


class PerformerAttention(SelfAttention):
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
        if cache is not None and not (isinstance(cache, RunningSums) and self.causal):
            raise TypeError(f"a causal Performer reads on from RunningSums; got {type(cache).__name__}")
        query, key, value = self.project(x, 0 if cache is None else cache.count)
        if self.positions is not None and self.positions.bias(query, key.shape[2]) is not None:
            raise ValueError("random features know no bias on the scores; use positions that turn, such as Rotary")
        if isinstance(cache, RunningSums):
            mixed = self._read_on(query, key, value, cache)
        else:
            attend = causal_performer_attention if self.causal else performer_attention
            mixed = attend(query, key, value, self.directions, visible=mask_of_keys(mask))
        answer: Tensor = self.answer(join_heads(mixed))
        return answer

    def remember(self, batch: int, room: int) -> RunningSums:  # noqa: ARG002 - as SelfAttention has it
        """Nothing yet; whatever comes, it takes no more room than one matrix a head."""
        return RunningSums()

    def weights(
        self, x: Float[Tensor, "batch time width"], mask: Bool[Tensor, "*mask_batch _time keys"] | None = None
    ) -> Float[Tensor, "batch heads time time"]:
        """ψ(q_i)ᵀψ(k_j), divided by its sum over j: what the linear form never holds."""
        return weights_by_features(self, x, self._lifted, mask)

    def _lifted(self, x: Tensor) -> Tensor:
        """ψ(d^{−1/4} x): the scale 1/√d of the scores, half of it on each side."""
        return positive_features(x * x.shape[-1] ** -0.25, self.directions)

    def _read_on(self, query: Tensor, key: Tensor, value: Tensor, cache: RunningSums) -> Tensor:
        asked = (query * query.shape[-1] ** -0.25 @ self.directions.mT).softmax(-1)
        mixed, sums = recall(asked, self._lifted(key), value, cache.sums)
        cache.sums, cache.count = sums, cache.count + query.shape[2]
        return mixed
