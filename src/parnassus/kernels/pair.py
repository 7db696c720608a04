"""What is known of two sets of inputs at a layer of infinite width: covariances and tangents (book sec. 15.3)."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True)
class Pair:
    """Covariances Σ(x, x') of a unit at a layer and its tangent kernel Θ(x, x'), x on the left and x' on the right.

    `places` is empty for vectors, (h, w) for images of which a unit is compared with itself at the same place only, and
    (h, w, h, w) where every place is compared with every other; the two sides, of one image each, may then hold only
    the variances (h, w). `features` is how many units there are where their number is finite: at the inputs.
    """

    nngp: Float[Tensor, "left right *places"]
    ntk: Float[Tensor, "left right *places"] | None
    left: Float[Tensor, "left *own"]
    right: Float[Tensor, "right *own"]
    features: int | None = None

    @classmethod
    def of_inputs(
        cls,
        x: Float[Tensor, "left *shape"],
        y: Float[Tensor, "right *other"],
        *,
        tangent: bool = True,
        every_place: bool = False,
        within: bool = True,
    ) -> "Pair":
        """Σ = xᵀx' / d, the mean over the features or channels; nothing is learned yet, so Θ = 0.

        Images are compared at the same places, or `every_place` of one with every place of the other; then also
        `within` each image, unless the variances of its places are enough for what follows. Of inputs with
        themselves (`y is x`) the diagonal is the variances to the last bit, so that equal ones have an angle of 0.
        """
        if x.shape[1:] != y.shape[1:]:
            sizes = [size[0] if len(size) == 1 else tuple(size) for size in (x.shape[1:], y.shape[1:])]
            raise ValueError(f"both sides must have the same features; got {sizes[0]} and {sizes[1]}")
        if x.ndim == 4:
            nngp = _between_images(x, y, every_place=every_place)
            left, right = (_of_images(side, every_place=every_place and within) for side in (x, y))
            if y is x:
                _own_places(nngp).copy_((variances_of_places(left) if left.ndim == 5 else left).flatten(1))
        else:
            nngp, left, right = (x @ y.mT).div_(x.shape[1]), variance(x), variance(y)
            if y is x:
                nngp.diagonal().copy_(left)
        return cls(nngp, torch.zeros_like(nngp) if tangent else None, left, right, x.shape[1])

    @property
    def places(self) -> int:
        """How many axes of places there are: none for vectors, 2 for the same place twice, 4 for any two places."""
        return self.nngp.ndim - 2

    def mapped(self, linear: Callable[[Tensor], Tensor]) -> "Pair":
        """Covariances, tangents and variances after a linear map of their places."""
        ntk = None if self.ntk is None else linear(self.ntk)
        return Pair(linear(self.nngp), ntk, linear(self.left), linear(self.right), self.features)

    def mixed(self, linear: Callable[[Tensor], Tensor]) -> "Pair":
        """The same for a map that mixes places. Where only variances were known inside an image, they are lost: NaN."""
        if self.left.ndim == self.right.ndim == self.nngp.ndim - 1:
            return self.mapped(linear)
        nngp = linear(self.nngp)
        left, right = (nngp.new_full((rows, *nngp.shape[2:]), torch.nan) for rows in nngp.shape[:2])
        return Pair(nngp, None if self.ntk is None else linear(self.ntk), left, right, self.features)

    def spreads(self) -> tuple[Tensor, Tensor]:
        """The variances on both sides, shaped to meet the covariances."""
        if self.places == 4:  # every place with every other: the variance of a place is on the diagonal
            left, right = (variances_of_places(side) if side.ndim == 5 else side for side in (self.left, self.right))
            return left[:, None, :, :, None, None], right[None, :, None, None]
        return self.left[:, None], self.right[None]


def variance(x: Float[Tensor, "rows features"]) -> Float[Tensor, " rows"]:
    """Σ(x, x) of each row: the mean of its squares."""
    squares: Tensor = torch.linalg.vecdot(x, x)
    return squares / x.shape[1]


def _between_images(
    x: Float[Tensor, "left channels h w"], y: Float[Tensor, "right channels h w"], *, every_place: bool
) -> Float[Tensor, "left right *places"]:
    places = x.shape[2:]
    if every_place:
        products = x.flatten(2).mT[:, None] @ y.flatten(2)[None]
        return products.div_(x.shape[1]).view(len(x), len(y), *places, *places)
    products = torch.einsum("ncp,mcp->nmp", x.flatten(2), y.flatten(2)).div_(x.shape[1])
    return products.contiguous().view(len(x), len(y), *places)  # as it came, places are far apart: half the speed


def _of_images(x: Float[Tensor, "rows channels h w"], *, every_place: bool) -> Float[Tensor, "rows *places"]:
    if not every_place:
        return x.square().mean(1)
    return (x.flatten(2).mT @ x.flatten(2)).div_(x.shape[1]).view(len(x), *x.shape[2:], *x.shape[2:])


def _own_places(nngp: Float[Tensor, "rows rows *places"]) -> Float[Tensor, "rows own"]:
    """Where an image is compared with itself, and a place with itself: a view."""
    count = nngp.shape[2:4].numel()
    own = nngp.view(*nngp.shape[:2], *[count] * (nngp.ndim // 2 - 1)).diagonal(dim1=0, dim2=1)
    return (own.diagonal(dim1=0, dim2=1) if own.ndim == 3 else own.mT).view(len(nngp), count)


def variances_of_places(side: Float[Tensor, "rows h w h w"]) -> Float[Tensor, "rows h w"]:
    """Where every place of an image is compared with every other: each with itself."""
    rows, high, wide = side.shape[:3]
    return side.reshape(rows, high * wide, high * wide).diagonal(dim1=1, dim2=2).reshape(rows, high, wide)
