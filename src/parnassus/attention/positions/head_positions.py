"""Positions inside attention heads: rotations of queries and keys, or a bias on the scores (Diehl sec. 3)."""

from typing import Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor, nn


def additive_projection(
    x: Float[Tensor, "*batch time width"], encoding: Float[Tensor, "time width"], weight: Float[Tensor, "out width"]
) -> Float[Tensor, "*batch time out"]:
    """f_η(x, m) = W^η (x + pe_m) for η ∈ {q, k, v}, each with its own W (Diehl sec. 3).

    The encoding pe may be learned or sinusoidal; the other family, R_m W^η x, is `Rotary`. The notes print f_k for the
    values too.
    """
    return (x + encoding) @ weight.mT


@runtime_checkable
class HeadPositions(Protocol):
    """Positions inside attention: q_m = f_q(x_m, m), k_n = f_k(x_n, n), and a bias b(m, n) (Diehl sec. 3).

    A scheme that only rotates returns None as its bias; one that only has a bias rotates nothing. The queries are
    aligned with the last keys: with a cache there are more keys than queries.
    """

    def rotate(self, x: Float[Tensor, "batch heads time width"], start: int) -> Float[Tensor, "batch heads time width"]:
        """Queries or keys at the positions start, start + 1, …, rotated accordingly."""
        ...

    def bias(
        self, query: Float[Tensor, "batch heads queries width"], keys: int
    ) -> Float[Tensor, "*batch heads queries keys"] | None:
        """The bias added to the scaled scores before the softmax."""
        ...


class BiasPositions(nn.Module):
    """Positions given by a bias alone: queries and keys are not rotated."""

    def rotate(
        self,
        x: Float[Tensor, "batch heads time width"],
        start: int,  # noqa: ARG002 - the interface of HeadPositions
    ) -> Float[Tensor, "batch heads time width"]:
        return x
