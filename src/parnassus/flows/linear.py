"""Linear flows: x = W z + b, whose Jacobian is W wherever one looks (book sec. 13.1)."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from parnassus.flows.matrices import InvertibleMatrix


class LinearFlow(nn.Module):
    """The flow x = W z + b, log |det J| = log |det W| for every z (book sec. 13.1).

    `matrix` says how W is held: dense, triangular, PLU or a product of reflections. The shift b is learned and begins
    at zero. With N(0, I) as base the flow is the Gaussian N(b, W Wᵀ), all Gaussians and no more.
    """

    def __init__(self, matrix: nn.Module) -> None:
        super().__init__()
        if not isinstance(matrix, InvertibleMatrix):
            raise ValueError(f"a linear flow needs times, solve and log_abs_det; {type(matrix).__name__} has not all")
        self.matrix: InvertibleMatrix = matrix
        self.shift = nn.Parameter(torch.zeros(matrix.features))

    def forward(
        self, z: Float[Tensor, "batch features"]
    ) -> tuple[Float[Tensor, "batch features"], Float[Tensor, " batch"]]:
        return self.matrix.times(z) + self.shift, self.matrix.log_abs_det().expand(len(z))

    def inverse(
        self, x: Float[Tensor, "batch features"]
    ) -> tuple[Float[Tensor, "batch features"], Float[Tensor, " batch"]]:
        return self.matrix.solve(x - self.shift), -self.matrix.log_abs_det().expand(len(x))


class Permutation(nn.Module):
    """x_i = z_{order_i} along dim 1: a linear flow that moves nothing but the places, log |det J| = 0."""

    order: Tensor
    back: Tensor

    def __init__(self, order: Sequence[int]) -> None:
        super().__init__()
        if not order or sorted(order) != list(range(len(order))):
            raise ValueError(f"an order names each of 0 … D − 1 once; got order={tuple(order)}")
        self.register_buffer("order", torch.tensor(order))
        self.register_buffer("back", self.order.argsort())

    @classmethod
    def reversing(cls, features: int) -> "Permutation":
        """The last becomes the first."""
        return cls(range(features)[::-1])

    @classmethod
    def random(cls, features: int, *, generator: torch.Generator | None = None) -> "Permutation":
        return cls(torch.randperm(features, generator=generator).tolist())

    def forward(
        self, z: Float[Tensor, "batch features *place"]
    ) -> tuple[Float[Tensor, "batch features *place"], Float[Tensor, " batch"]]:
        return z.index_select(1, self.order), z.new_zeros(len(z))

    def inverse(
        self, x: Float[Tensor, "batch features *place"]
    ) -> tuple[Float[Tensor, "batch features *place"], Float[Tensor, " batch"]]:
        return x.index_select(1, self.back), x.new_zeros(len(x))
