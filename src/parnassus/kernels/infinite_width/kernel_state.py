"""Covariances and tangent kernel of two sets of inputs at a layer of infinite width (book sec. 15.3)."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True)
class KernelState:
    """Covariances Σ(x, x') of a unit at a layer and its tangent kernel Θ(x, x'), x on the left and x' on the right.

    `*positions` is empty for vectors, (h, w) for images with only the covariances of equal positions p = p', and
    (h, w, h, w) for images with all pairs of positions; `left` and `right` may then hold only the variances (h, w).
    `features` is the number of units where it is finite, at the inputs.

    >>> one = torch.ones(1, 1)
    >>> KernelState(nngp=one, ntk=None, left=one[0], right=one[0]).nngp.item()
    1.0
    """

    nngp: Float[Tensor, "left right *positions"]
    ntk: Float[Tensor, "left right *positions"] | None
    left: Float[Tensor, "left *own"]
    right: Float[Tensor, "right *own"]
    features: int | None = None

    @classmethod
    def from_inputs(
        cls,
        x: Float[Tensor, "left *shape"],
        y: Float[Tensor, "right *other"],
        *,
        tangent: bool = True,
        all_positions: bool = False,
        within_images: bool = True,
    ) -> "KernelState":
        """Σ = xᵀx' / d, the mean over the features or channels; nothing is learned yet, so Θ = 0.

        For images, covariances of equal positions, or of `all_positions`; then `within_images` also keeps the
        covariances inside each image rather than only its variances. Where `y is x` the diagonal equals the variances
        to the last bit, so that equal inputs have an angle of 0.
        """
        if x.shape[1:] != y.shape[1:]:
            sizes = [size[0] if len(size) == 1 else tuple(size) for size in (x.shape[1:], y.shape[1:])]
            raise ValueError(f"x and y must have the same features; got {sizes[0]} and {sizes[1]}")
        if x.ndim == 4:
            nngp = _image_covariances(x, y, all_positions=all_positions)
            left, right = (
                _position_covariances(side, all_positions=all_positions and within_images) for side in (x, y)
            )
            if y is x:
                _self_covariances(nngp).copy_((position_variances(left) if left.ndim == 5 else left).flatten(1))
        else:
            nngp, left, right = (x @ y.mT).div_(x.shape[1]), variance(x), variance(y)
            if y is x:
                nngp.diagonal().copy_(left)
        return cls(nngp, torch.zeros_like(nngp) if tangent else None, left, right, x.shape[1])

    @property
    def position_axes(self) -> int:
        """The number of position axes: 0 for vectors, 2 for equal positions, 4 for all pairs of positions."""
        return self.nngp.ndim - 2

    def map_positions(self, linear: Callable[[Tensor], Tensor]) -> "KernelState":
        """Apply a linear map of positions to covariances, tangent kernel and variances."""
        ntk = None if self.ntk is None else linear(self.ntk)
        return KernelState(linear(self.nngp), ntk, linear(self.left), linear(self.right), self.features)

    def mix_positions(self, linear: Callable[[Tensor], Tensor]) -> "KernelState":
        """Like `map_positions`, for a map that mixes positions; variances become NaN if they cannot be computed."""
        if self.left.ndim == self.right.ndim == self.nngp.ndim - 1:
            return self.map_positions(linear)
        nngp = linear(self.nngp)
        left, right = (nngp.new_full((rows, *nngp.shape[2:]), torch.nan) for rows in nngp.shape[:2])
        return KernelState(nngp, None if self.ntk is None else linear(self.ntk), left, right, self.features)

    def broadcast_variances(self) -> tuple[Tensor, Tensor]:
        """The variances on both sides, shaped to broadcast against the covariances."""
        if self.position_axes == 4:  # all pairs: variances are on the diagonal
            left, right = (position_variances(side) if side.ndim == 5 else side for side in (self.left, self.right))
            return left[:, None, :, :, None, None], right[None, :, None, None]
        return self.left[:, None], self.right[None]


def variance(x: Float[Tensor, "rows features"]) -> Float[Tensor, " rows"]:
    """Σ(x, x) of each row: the mean of its squares."""
    squares: Tensor = torch.linalg.vecdot(x, x)
    return squares / x.shape[1]


def _image_covariances(
    x: Float[Tensor, "left channels h w"], y: Float[Tensor, "right channels h w"], *, all_positions: bool
) -> Float[Tensor, "left right *positions"]:
    positions = x.shape[2:]
    if all_positions:
        products = x.flatten(2).mT[:, None] @ y.flatten(2)[None]
        return products.div_(x.shape[1]).view(len(x), len(y), *positions, *positions)
    products = torch.einsum("ncp,mcp->nmp", x.flatten(2), y.flatten(2)).div_(x.shape[1])
    return products.contiguous().view(len(x), len(y), *positions)  # positions are strided after einsum, which is slow


def _position_covariances(
    x: Float[Tensor, "rows channels h w"], *, all_positions: bool
) -> Float[Tensor, "rows *positions"]:
    if not all_positions:
        return x.square().mean(1)
    return (x.flatten(2).mT @ x.flatten(2)).div_(x.shape[1]).view(len(x), *x.shape[2:], *x.shape[2:])


def _self_covariances(nngp: Float[Tensor, "rows rows *positions"]) -> Float[Tensor, "rows own"]:
    """A view of the entries where an image meets itself at equal positions."""
    count = nngp.shape[2:4].numel()
    diagonal = nngp.view(*nngp.shape[:2], *[count] * (nngp.ndim // 2 - 1)).diagonal(dim1=0, dim2=1)
    return (diagonal.diagonal(dim1=0, dim2=1) if diagonal.ndim == 3 else diagonal.mT).view(len(nngp), count)


def position_variances(side: Float[Tensor, "rows h w h w"]) -> Float[Tensor, "rows h w"]:
    """The variance at each position, from the covariances of all pairs of positions."""
    rows, height, width = side.shape[:3]
    return side.reshape(rows, height * width, height * width).diagonal(dim1=1, dim2=2).reshape(rows, height, width)
