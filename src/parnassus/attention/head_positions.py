"""How a head of attention may know where things stand: by turning queries and keys, or by a bias on the scores."""

from typing import Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor, nn


def additive_map(
    x: Float[Tensor, "*batch time width"], code: Float[Tensor, "time width"], weight: Float[Tensor, "out width"]
) -> Float[Tensor, "*batch time out"]:
    """f_η(x, m) = W^η (x + pe_m) for η ∈ {q, k, v}, each with its own W (Diehl sec. 3).

    The code may be learned or made of waves. R_m W^η x, the other family, is `Rotary`'s. The notes print f_k for the
    values too.
    """
    return (x + code) @ weight.mT


@runtime_checkable
class HeadPositions(Protocol):
    """Positions inside attention: q_m = f_q(x_m, m), k_n = f_k(x_n, n), and a bias b(m, n) (Diehl sec. 3).

    A scheme that only turns gives None as its bias, one that only has a bias turns nothing. The queries stand at the
    last places of the keys: with a cache there are more keys than queries.
    """

    def turn(self, x: Float[Tensor, "batch heads time width"], start: int) -> Float[Tensor, "batch heads time width"]:
        """Queries or keys of the places start, start + 1, …, as these places see them."""
        ...

    def bias(
        self, query: Float[Tensor, "batch heads queries width"], keys: int
    ) -> Float[Tensor, "*batch heads queries keys"] | None:
        """What is added to the scores before the softmax, scale included."""
        ...


class Unturned(nn.Module):
    """Positions that are a bias alone: queries and keys stay as they are."""

    def turn(
        self,
        x: Float[Tensor, "batch heads time width"],
        start: int,  # noqa: ARG002 - as HeadPositions has it
    ) -> Float[Tensor, "batch heads time width"]:
        return x
