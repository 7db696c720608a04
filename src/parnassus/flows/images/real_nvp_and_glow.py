"""Real NVP and Glow for images: multiscale flows with convolutional couplings (book sec. 13.1)."""

from collections.abc import Callable
from math import prod, sqrt

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import layer_norm

from parnassus.errors import check_at_least_one
from parnassus.flows.coupling.affine_coupling import AffineCoupling, zero_last_layer
from parnassus.flows.flow import Chain, Flow, GaussianBase, InverseTransform
from parnassus.flows.images.dequantisation import Logit
from parnassus.flows.images.multiscale import MultiscaleTransform
from parnassus.flows.images.squeeze import checkerboard_channels
from parnassus.flows.linear.actnorm import ActNorm
from parnassus.flows.linear.invertible_1x1_convolution import InvertibleConv1x1
from parnassus.flows.linear.invertible_matrices import PLUMatrix, random_rotation
from parnassus.layers.residual import Residual


class PixelNorm(nn.Module):
    """Layer normalisation over the channels of every pixel, without parameters (Diehl sec. 1.6).

    The output has the memory format channels_last, which convolutions on tensor cores prefer.

    >>> PixelNorm()(torch.zeros(5, 8, 4, 4)).shape
    torch.Size([5, 8, 4, 4])
    """

    def forward(self, x: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch channels height width"]:
        return layer_norm(x.movedim(1, -1), x.shape[1:2]).movedim(-1, 1)


class ConvConditioner(nn.Module):
    """The network of an image coupling: 3 × 3 convolution, residual blocks, last convolution initialised to zero.

        h ← h + C₁ₓ₁ silu(C₃ₓ₃ silu(h)) for each block,   (α, β) = C silu(ĥ)/√f,   f = 9 · width inputs per output

    ĥ is h after `PixelNorm`. The normalisation and the factor 1/√f stabilise chains of many couplings. Without the
    normalisation β is as large as the kept half and an unusual image is amplified by every coupling. Without the factor
    a step of Adam with learning rate η changes α and β by up to f η: by 1 or more in wide networks.

    Under autocast α and β are returned in the precision of the images, so that log-determinants are summed in it.

    >>> ConvConditioner(1, 2, width=8)(torch.zeros(3, 1, 4, 4)).shape
    torch.Size([3, 2, 4, 4])
    """

    def __init__(self, inputs: int, outputs: int, *, width: int = 64, blocks: int = 2) -> None:
        super().__init__()
        self.network = zero_last_layer(
            nn.Sequential(
                nn.Conv2d(inputs, width, 3, padding=1),
                *(
                    Residual(
                        nn.Sequential(
                            nn.SiLU(), nn.Conv2d(width, width, 3, padding=1), nn.SiLU(), nn.Conv2d(width, width, 1)
                        )
                    )
                    for _ in range(blocks)
                ),
                PixelNorm(),
                nn.SiLU(),
                nn.Conv2d(width, outputs, 3, padding=1),
            )
        )
        self.sqrt_fan_in = sqrt(9 * width)  # √f

    @torch.compiler.nested_compile_region  # compiled once for all couplings of a scale
    def forward(self, kept: Float[Tensor, "batch inputs height width"]) -> Float[Tensor, "batch outputs height width"]:
        coefficients: Tensor = self.network(kept.contiguous(memory_format=torch.channels_last))
        return coefficients.to(kept.dtype) / self.sqrt_fan_in


class FullPrecision(nn.Module):
    """A transform evaluated in full precision, also under autocast, so that it remains invertible."""

    def __init__(self, transform: nn.Module) -> None:
        super().__init__()
        self.transform = transform

    def forward(
        self, z: Float[Tensor, "batch *event"]
    ) -> tuple[Float[Tensor, "batch *event"], Float[Tensor, " batch"]]:
        with torch.autocast(z.device.type, enabled=False):
            x, log_det = self.transform(z)
        return x, log_det

    def inverse(
        self, x: Float[Tensor, "batch *event"]
    ) -> tuple[Float[Tensor, "batch *event"], Float[Tensor, " batch"]]:
        with torch.autocast(x.device.type, enabled=False):
            z, log_det = self.transform.inverse(x)  # type: ignore[operator]  # an Invertible; nn.Module does not declare it
        return z, log_det


def real_nvp_step(channels: int, *, width: int = 64, blocks: int = 2) -> Chain:
    """A Real NVP step on squeezed images: two checkerboard couplings and two channel couplings.

    In the direction from data to latents each pair of couplings follows an ActNorm (batch normalisation in Dinh et al.
    2017).
    """
    black, front = checkerboard_channels(channels), range(channels // 2)
    white, back = sorted(set(range(channels)) - set(black)), range(channels // 2, channels)

    def coupling(kept: range | tuple[int, ...] | list[int]) -> AffineCoupling:
        network = ConvConditioner(len(kept), 2 * (channels - len(kept)), width=width, blocks=blocks)
        return AffineCoupling(network, kept, channels)

    return Chain(
        [coupling(front), coupling(back), ActNorm(channels), coupling(white), coupling(black), ActNorm(channels)]
    )


def glow_step(channels: int, *, width: int = 64, blocks: int = 2) -> Chain:
    """A Glow step: ActNorm, invertible 1×1 convolution, affine coupling (Kingma and Dhariwal 2018)."""
    network = ConvConditioner(channels // 2, 2 * (channels - channels // 2), width=width, blocks=blocks)
    convolution = FullPrecision(
        InverseTransform(InvertibleConv1x1(PLUMatrix(random_rotation(channels))))
    )  # no solve in training
    return Chain([AffineCoupling(network, range(channels // 2), channels), convolution, ActNorm(channels)])


def image_flow(
    shape: tuple[int, int, int],
    step: Callable[[int], nn.Module],
    *,
    num_scales: int = 2,
    steps_per_scale: int = 2,
    margin: float = 0.05,
) -> Flow:
    """A flow on images in the unit cube with `steps_per_scale` of `step(channels)` at every scale (book sec. 13.1).

    z ~ N(0, I),   x = (σ(T(z)) − λ)/(1 − 2λ)
    """
    check_at_least_one(steps_per_scale=steps_per_scale)
    transform = MultiscaleTransform(
        shape, lambda channels: Chain(step(channels) for _ in range(steps_per_scale)), num_scales=num_scales
    )
    return Flow(Chain([transform, Logit(margin)]), GaussianBase((prod(shape),)))
