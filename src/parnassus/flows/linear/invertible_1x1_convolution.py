"""Glow's invertible 1×1 convolution: one matrix mixes the channels of every pixel (Kingma and Dhariwal 2018)."""

from jaxtyping import Float
from torch import Tensor, nn

from parnassus.flows.linear.invertible_matrices import as_invertible_matrix


class InvertibleConv1x1(nn.Module):
    """x[·, i, j] = W z[·, i, j] at every pixel: log |det J| = height · width · log |det W| (book sec. 13.1).

    It generalises a fixed permutation of the channels between two couplings. `matrix` is the parametrisation of W;
    Glow uses `PLUMatrix(random_rotation(channels))`.

    >>> InvertibleConv1x1(DenseMatrix(torch.eye(3)))(torch.zeros(5, 3, 4, 4))[0].shape
    torch.Size([5, 3, 4, 4])
    """

    def __init__(self, matrix: nn.Module) -> None:
        super().__init__()
        self.matrix = as_invertible_matrix(matrix)

    def forward(
        self, z: Float[Tensor, "batch channels height width"]
    ) -> tuple[Float[Tensor, "batch channels height width"], Float[Tensor, " batch"]]:
        return _to_image(self.matrix.multiply(_pixels(z)), z), self._log_det(z)

    def inverse(
        self, x: Float[Tensor, "batch channels height width"]
    ) -> tuple[Float[Tensor, "batch channels height width"], Float[Tensor, " batch"]]:
        return _to_image(self.matrix.solve(_pixels(x)), x), -self._log_det(x)

    def _log_det(self, image: Tensor) -> Float[Tensor, " batch"]:
        return (image[0, 0].numel() * self.matrix.log_abs_det()).expand(len(image))


def _pixels(image: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "pixels channels"]:
    """All pixels as rows."""
    return image.movedim(1, -1).flatten(0, -2)


def _to_image(
    pixels: Float[Tensor, "pixels channels"], image: Float[Tensor, "batch channels height width"]
) -> Float[Tensor, "batch channels height width"]:
    return pixels.reshape(len(image), *image.shape[2:], -1).movedim(-1, 1)
