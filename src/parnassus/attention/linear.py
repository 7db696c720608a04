"""Linear attention: where the similarity is ⟨φ(q), φ(k)⟩, sum over the keys once for all queries (Diehl sec. 4.1)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import pad

Features: TypeAlias = Callable[[Tensor], Tensor]
"""φ: queries or keys (…, time, width) as features (…, time, features)."""
GROUP = {"cpu": 16, "cuda": 128}
"""Chunks whose sums one product adds up; the sums of the groups are added up in the same way, by passes of their own.

A GPU has arithmetic to spare but waits for memory, so it takes the larger groups.
"""


def elu_features(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """φ(x) = elu(x) + 1, entry by entry: x + 1 above zero, eˣ below, so always positive (Diehl sec. 4.1).

    Not as (eˣ − 1) + 1, which in single precision is 0 below x = −17.
    """
    if not (x.requires_grad and torch.is_grad_enabled()):
        return _EluFeatures.forward(x)
    features: Tensor = _EluFeatures.apply(x)  # type: ignore[no-untyped-call]  # torch has no type for it
    return features


class _EluFeatures(torch.autograd.Function):
    """φ(x) = min(max(x + 1, 1), eˣ) and φ′(x) = min(φ(x), 1): half the passes over memory that autograd would make."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return torch.clamp(x + 1, x.new_ones(()), x.exp())

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:  # noqa: ARG004 - as torch calls it
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> Tensor:
        (features,) = ctx.saved_tensors
        gradient: Tensor = slope * features.clamp(max=1.0)
        return gradient


def kernel_weights(
    query: Float[Tensor, "*batch queries width"],
    key: Float[Tensor, "*batch keys width"],
    features: Features,
    mask: Bool[Tensor, "*mask_batch queries keys"] | None = None,
) -> Float[Tensor, "*batch queries keys"]:
    """⟨φ(q_i), φ(k_j)⟩ / Z_i, the n × n weights that linear attention never forms: to look at and to check against."""
    kernel = features(query) @ features(key).mT
    kernel = kernel if mask is None else kernel.masked_fill(~mask, 0.0)
    return _divided(kernel, kernel.sum(-1, keepdim=True))


def linear_attention(
    query: Float[Tensor, "*batch queries width"],
    key: Float[Tensor, "*batch keys width"],
    value: Float[Tensor, "*batch keys out"],
    features: Features = elu_features,
    *,
    visible: Bool[Tensor, "*mask_batch keys"] | None = None,
) -> Float[Tensor, "*batch queries out"]:
    """Every query sees every key, in time and memory O(n · features) (Diehl sec. 4.1).

        r_i = φ(q_i)ᵀ S / Z_i,   S = Σ_j φ(k_j) v_jᵀ,   Z_i = φ(q_i)ᵀ Σ_j φ(k_j)

    Z has an index i: each query is divided by its own sum. `visible` is False at keys that nobody sees: padding.
    """
    return mix(features(query), shown(features(key), visible), shown(value, visible))


def causal_linear_attention(
    query: Float[Tensor, "*batch time width"],
    key: Float[Tensor, "*batch time width"],
    value: Float[Tensor, "*batch time out"],
    features: Features = elu_features,
    *,
    visible: Bool[Tensor, "*mask_batch time"] | None = None,
    chunk: int = 64,
) -> Float[Tensor, "*batch time out"]:
    """The same where a query sees itself and what came before: sums up to i in place of sums over all j."""
    return recall(features(query), shown(features(key), visible), shown(value, visible), chunk=chunk)[0]


def mix(
    asked: Float[Tensor, "*batch queries features"],
    offered: Float[Tensor, "*batch keys features"],
    value: Float[Tensor, "*batch keys out"],
) -> Float[Tensor, "*batch queries out"]:
    """Linear attention of features φ(q) and φ(k) that are there already, and need not come from one φ."""
    return _divided(asked @ (offered.mT @ value), asked @ offered.sum(-2).unsqueeze(-1))


@dataclass(frozen=True)
class Sums:
    """All that causal linear attention remembers, as large after a million tokens as after one (Diehl sec. 4.1).

    S_i = S_{i−1} + φ(k_i) v_iᵀ,   z_i = z_{i−1} + φ(k_i)
    """

    values: Float[Tensor, "*batch features out"]
    normaliser: Float[Tensor, "*batch features"]


def recall(
    asked: Float[Tensor, "*batch time features"],
    offered: Float[Tensor, "*batch time features"],
    value: Float[Tensor, "*batch time out"],
    past: Sums | None = None,
    *,
    chunk: int = 64,
) -> tuple[Float[Tensor, "*batch time out"], Sums]:
    """φ(q_i)ᵀ S_i / φ(q_i)ᵀ z_i for each new token, after the `past`, and the sums that the next one continues from.

    Tokens are taken in chunks: those of a chunk see each other through a small masked product, and what came before
    through its sums. Memory is O(time · (chunk + features · out / chunk)); to keep every S_i would take features · out.
    """
    if chunk < 1:
        raise ValueError(f"a chunk holds at least one token; got chunk={chunk}")
    time, out = value.shape[-2:]
    chunk = min(chunk, max(time, 1))
    valued = with_ones(value)  # 1 is a value too, and its mixture the sum of the weights
    q, k, v = (_in_chunks(x, chunk) for x in (asked, offered, valued))
    sums = k.mT @ v  # of each chunk
    before = _before(sums.flatten(-2)).view_as(sums)
    wide = torch.promote_types(sums.dtype, torch.float32)  # long sums of halves would stand still
    after = before[..., -1, :, :].to(wide) + sums[..., -1, :, :]
    if past is not None:
        known = torch.cat([past.values, past.normaliser.unsqueeze(-1)], -1)
        known = pad(known, (0, sums.shape[-1] - out - 1))
        before, after = (before + known.unsqueeze(-3)).to(q.dtype), after + known
    near = (q @ k.mT).tril_()
    close, q, before = (x.flatten(0, -3) for x in (near @ v, q, before))
    mixed = close.baddbmm_(q, before).view(v.shape)  # in place, or it would be copied first
    values, total, _ = mixed.split([out, 1, mixed.shape[-1] - out - 1], -1)
    return _divided(values, total).flatten(-3, -2)[..., :time, :], Sums(after[..., :out], after[..., out])


def with_ones(x: Float[Tensor, "*batch width"]) -> Float[Tensor, "*batch wider"]:
    """One more column, of ones, and more of them until a row has whole 16 bytes: a GPU multiplies such rows far faster.

    Padded: a GPU would take several times as long to concatenate.
    """
    return pad(x, (0, 1 + _spare(x)), value=1.0)


def with_column(x: Float[Tensor, "*batch width"], column: Float[Tensor, "*#batch 1"]) -> Float[Tensor, "*batch wider"]:
    """The same with a column of any numbers."""
    return torch.cat([x, column.expand(*x.shape[:-1], 1), x.new_zeros(1).expand(*x.shape[:-1], _spare(x))], -1)


def _spare(x: Tensor) -> int:
    """Columns after one more."""
    return -(x.shape[-1] + 1) % (16 // x.element_size())


def shown(
    x: Float[Tensor, "*batch keys width"], visible: Bool[Tensor, "*mask_batch keys"] | None
) -> Float[Tensor, "*batch keys width"]:
    """With 0 at the keys that nobody sees: a NaN in padding must not come through."""
    return x if visible is None else x.masked_fill(~visible.unsqueeze(-1), 0.0)


def _in_chunks(x: Float[Tensor, "*batch time width"], chunk: int) -> Float[Tensor, "*batch chunks {chunk} width"]:
    """One chunk at least; the last is filled up with zeros."""
    chunks = max(1, -(-x.shape[-2] // chunk))
    spare = chunks * chunk - x.shape[-2]
    filled = pad(x, (0, 0, 0, spare)) if spare else x  # to pad by nothing would copy
    parts: Tensor = filled.unflatten(-2, (chunks, chunk))
    return parts


def _before(sums: Float[Tensor, "*batch chunks numbers"]) -> Float[Tensor, "*batch chunks numbers"]:
    """Σ_{j < i} of the sums of chunks, by products with a triangle of ones.

    A product adds in single precision at least, whatever it takes and gives. A cumsum would have to be asked for a
    copy in single precision, which then is shifted and made small again; and its gradient is four more passes.
    """
    chunks = sums.shape[-2]
    if chunks == 1:
        return torch.zeros_like(sums)
    group = GROUP.get(sums.device.type, 16)
    grouped = _in_chunks(sums, min(chunks, group))
    earlier = sums.new_ones(grouped.shape[-2], grouped.shape[-2]).tril(-1)
    within = earlier @ grouped
    if chunks > group:
        within += _before(within[..., -1, :] + grouped[..., -1, :]).unsqueeze(-2)
    return within.flatten(-3, -2)[..., :chunks, :]


def _divided(mixed: Float[Tensor, "*batch out"], total: Float[Tensor, "*batch 1"]) -> Float[Tensor, "*batch out"]:
    """Where nothing was seen the total is 0, and so is the answer: never NaN."""
    share: Tensor = total.masked_fill(total == 0, 1.0).reciprocal()  # the gradient of a division takes twice the passes
    return mixed * share
