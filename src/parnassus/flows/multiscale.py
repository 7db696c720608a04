"""Many scales: half of what a scale has found goes straight to the latent vector (Dinh et al. 2017)."""

from collections.abc import Callable
from math import prod

import torch
from jaxtyping import Float
from torch import Tensor, nn

from parnassus.flows.squeeze import Squeeze


class Multiscale(nn.Module):
    """Squeeze, transform, and put half of the channels aside, scale after scale (book sec. 13.1, Dinh et al. 2017).

        h_0 = x,   (h_{k+1}, z_{k+1}) = halves of T_k⁻¹(squeeze(h_k)),   z = (z_1, …, z_K),   z_K the whole of the last

    From data to latents; drawing goes the other way. `scale(channels)` makes the transform T_k of a squeezed picture.
    The latent is one flat vector as long as the picture has numbers, the finest scale first; later scales are small,
    so they are cheap and look far. A last coupling in T_k that moves the half set aside gives it a mean and a deviation
    that depend on the half that stays: this is the learned prior of Kingma and Dhariwal (2018).
    """

    def __init__(self, shape: tuple[int, int, int], scale: Callable[[int], nn.Module], *, scales: int) -> None:
        super().__init__()
        channels, height, width = shape
        if scales < 1 or height % 2**scales or width % 2**scales:
            raise ValueError(
                f"height and width must be multiples of 2 to the number of scales; got height={height}, width={width}, "
                f"scales={scales}"
            )
        self.squeeze = Squeeze()
        self.scales = nn.ModuleList()
        self.shapes: list[tuple[int, int, int]] = []  # of z_1, …, z_K
        for _ in range(scales - 1):
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
            aside = part.unflatten(1, shape)
            h, change = scale(aside if h is None else torch.cat([h, aside], dim=1))
            h, _ = self.squeeze(h)
            log_det = log_det + change
        assert h is not None
        return h, log_det

    def inverse(
        self, x: Float[Tensor, "batch channels height width"]
    ) -> tuple[Float[Tensor, "batch latent"], Float[Tensor, " batch"]]:
        parts, log_det = [], x.new_zeros(len(x))
        for scale, shape in zip(self.scales, self.shapes, strict=True):
            squeezed, _ = self.squeeze.inverse(x)
            h, change = scale.inverse(squeezed)  # type: ignore[operator]  # an Invertible, which nn.Module cannot say
            log_det = log_det + change
            x, aside = h.split([h.shape[1] - shape[0], shape[0]], dim=1)
            parts.append(aside.flatten(1))
        return torch.cat(parts, dim=1), log_det
