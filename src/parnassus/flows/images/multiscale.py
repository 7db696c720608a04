"""The multiscale architecture: half of the channels of each scale are factored out (Dinh et al. 2017)."""

from collections.abc import Callable
from math import prod

import torch
from jaxtyping import Float
from torch import Tensor, nn

from parnassus.flows.images.squeeze import Squeeze


class MultiscaleTransform(nn.Module):
    """Squeeze, transform and factor out half of the channels, at every scale (book sec. 13.1, Dinh et al. 2017).

        h_0 = x,   (h_{k+1}, z_{k+1}) = halves of T_k⁻¹(squeeze(h_k)),   z = (z_1, …, z_K),   z_K all of the last

    This is `inverse`, from data to latents; `forward` samples. `scale(channels)` builds the transform T_k of a squeezed
    image. The latent is one flat vector of the dimension of the image, the finest scale first. A last coupling in T_k
    that transforms the half factored out gives it a mean and a scale that depend on the other half: the learned prior
    of Kingma and Dhariwal (2018).

    >>> transform = MultiscaleTransform((1, 4, 4), lambda channels: ActNorm(channels), num_scales=1)
    >>> transform(torch.zeros(5, 16))[0].shape
    torch.Size([5, 1, 4, 4])
    """

    def __init__(self, shape: tuple[int, int, int], scale: Callable[[int], nn.Module], *, num_scales: int) -> None:
        super().__init__()
        channels, height, width = shape
        if num_scales < 1 or height % 2**num_scales or width % 2**num_scales:
            raise ValueError(
                f"height and width must be multiples of 2**num_scales; got height={height}, width={width}, "
                f"num_scales={num_scales}"
            )
        self.squeeze = Squeeze()
        self.scales = nn.ModuleList()
        self.shapes: list[tuple[int, int, int]] = []  # of z_1, …, z_K
        for _ in range(num_scales - 1):
            channels, height, width = 2 * channels, height // 2, width // 2
            self.scales.append(scale(2 * channels))
            self.shapes.append((channels, height, width))
        self.scales.append(scale(4 * channels))
        self.shapes.append((4 * channels, height // 2, width // 2))

    def forward(
        self, z: Float[Tensor, "batch latent"]
    ) -> tuple[Float[Tensor, "batch channels height width"], Float[Tensor, " batch"]]:
        parts = z.split([prod(shape) for shape in self.shapes], dim=1)
        log_det = z.new_zeros(len(z))
        h: Tensor | None = None
        for scale, shape, part in reversed(list(zip(self.scales, self.shapes, parts, strict=True))):
            factored = part.unflatten(1, shape)
            h, log_det_k = scale(factored if h is None else torch.cat([h, factored], dim=1))
            h, _ = self.squeeze(h)
            log_det = log_det + log_det_k
        assert h is not None
        return h, log_det

    def inverse(
        self, x: Float[Tensor, "batch channels height width"]
    ) -> tuple[Float[Tensor, "batch latent"], Float[Tensor, " batch"]]:
        parts, log_det = [], x.new_zeros(len(x))
        for scale, shape in zip(self.scales, self.shapes, strict=True):
            squeezed, _ = self.squeeze.inverse(x)
            h, log_det_k = scale.inverse(squeezed)  # type: ignore[operator]  # an Invertible; nn.Module does not declare it
            log_det = log_det + log_det_k
            x, factored = h.split([h.shape[1] - shape[0], shape[0]], dim=1)
            parts.append(factored.flatten(1))
        return torch.cat(parts, dim=1), log_det
