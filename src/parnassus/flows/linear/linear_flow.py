"""Linear flows x = W z + b with the constant Jacobian W, and permutations (book sec. 13.1)."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from parnassus.flows.linear.invertible_matrices import as_invertible_matrix


class LinearFlow(nn.Module):
    """The flow x = W z + b, log |det J| = log |det W| for every z (book sec. 13.1).

    `matrix` is the parametrisation of W: dense, triangular, PLU or a product of reflections. The shift b is trainable
    and initially zero. With the base N(0, I) the flow is the Gaussian N(b, W Wᵀ).

    >>> x, log_det = LinearFlow(DenseMatrix(2 * torch.eye(2)))(torch.ones(1, 2))
    >>> x.tolist(), log_det.detach()
    ([[2.0, 2.0]], tensor([1.3863]))
    """

    def __init__(self, matrix: nn.Module) -> None:
        super().__init__()
        self.matrix = as_invertible_matrix(matrix)
        self.shift = nn.Parameter(torch.zeros(self.matrix.features))

    def forward(
        self, z: Float[Tensor, "batch features"]
    ) -> tuple[Float[Tensor, "batch features"], Float[Tensor, " batch"]]:
        return self.matrix.multiply(z) + self.shift, self.matrix.log_abs_det().expand(len(z))

    def inverse(
        self, x: Float[Tensor, "batch features"]
    ) -> tuple[Float[Tensor, "batch features"], Float[Tensor, " batch"]]:
        return self.matrix.solve(x - self.shift), -self.matrix.log_abs_det().expand(len(x))


class Permutation(nn.Module):
    """x_i = z_{order_i} along dim 1, with log |det J| = 0.

    >>> x, log_det = Permutation([1, 2, 0])(torch.tensor([[0.0, 1.0, 2.0]]))
    >>> x.tolist()
    [[1.0, 2.0, 0.0]]
    """

    order: Tensor
    inverse_order: Tensor

    def __init__(self, order: Sequence[int]) -> None:
        super().__init__()
        if not order or sorted(order) != list(range(len(order))):
            raise ValueError(f"order must be a permutation of 0 … D − 1; got order={tuple(order)}")
        self.register_buffer("order", torch.tensor(order))
        self.register_buffer("inverse_order", self.order.argsort())

    @classmethod
    def reversal(cls, features: int) -> "Permutation":
        """The permutation that reverses the order of the coordinates."""
        return cls(range(features)[::-1])

    @classmethod
    def random(cls, features: int, *, generator: torch.Generator | None = None) -> "Permutation":
        return cls(torch.randperm(features, generator=generator).tolist())

    def forward(
        self, z: Float[Tensor, "batch features *space"]
    ) -> tuple[Float[Tensor, "batch features *space"], Float[Tensor, " batch"]]:
        return z.index_select(1, self.order), z.new_zeros(len(z))

    def inverse(
        self, x: Float[Tensor, "batch features *space"]
    ) -> tuple[Float[Tensor, "batch features *space"], Float[Tensor, " batch"]]:
        return x.index_select(1, self.inverse_order), x.new_zeros(len(x))
