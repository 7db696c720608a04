"""Flows over images: Real NVP and Glow, couplings by convolutions at several scales (book sec. 13.1)."""

from collections.abc import Callable
from math import prod, sqrt

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import layer_norm

from parnassus.flows.actnorm import ActNorm
from parnassus.flows.coupling import AffineCoupling, silenced
from parnassus.flows.dequantisation import Logit
from parnassus.flows.flow import Chain, Flow, GaussianBase, Inverted
from parnassus.flows.matrices import PLUMatrix, random_rotation
from parnassus.flows.multiscale import Multiscale
from parnassus.flows.one_by_one_convolution import OneByOneConvolution
from parnassus.flows.squeeze import checkerboard
from parnassus.layers.residual import Residual


class PixelNorm(nn.Module):
    """Every pixel's channels standardised by their own mean and deviation (Diehl sec. 1.6): how long they were is lost.

    The pixels come out channels last in memory, as convolutions on tensor cores take them.
    """

    def forward(self, x: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch channels height width"]:
        return layer_norm(x.movedim(1, -1), x.shape[1:2]).movedim(-1, 1)


class ConvNetwork(nn.Module):
    """What a coupling of images asks: a 3 × 3 convolution, residual blocks, and a last convolution that begins at zero.

        h ← h + C₁ₓ₁ silu(C₃ₓ₃ silu(h)) for each block,   (α, β) = C silu(ĥ)/√f,   f = 9 · width inputs a number

    ĥ has each pixel's channels standardised. Both this and the root keep a chain of many couplings from bursting.
    Without the norm β is as large as what was kept, the next coupling keeps what β has moved, and an unusual image is
    driven out by a factor at every coupling. Without the root a step of Adam, which moves every weight by the learning
    rate η, would move each α and β by up to f η: 1 or more in a wide network, in all couplings at once.

    Even where products are taken in bfloat16, α and β come in the precision of the images, so that log-determinants
    are summed in it.
    """

    def __init__(self, inputs: int, outputs: int, *, width: int = 64, blocks: int = 2) -> None:
        super().__init__()
        self.layers = silenced(
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
        self.root = sqrt(9 * width)  # √f

    @torch.compiler.nested_compile_region  # alike in all couplings of a scale: compiled once for them
    def forward(self, kept: Float[Tensor, "batch inputs height width"]) -> Float[Tensor, "batch outputs height width"]:
        coefficients: Tensor = self.layers(kept.contiguous(memory_format=torch.channels_last))
        return coefficients.to(kept.dtype) / self.root


class Exactly(nn.Module):
    """A transform whose products are taken in full precision, also under autocast: it must undo itself."""

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
            z, log_det = self.transform.inverse(x)  # type: ignore[operator]  # an Invertible, as above
        return z, log_det


def real_nvp_step(channels: int, *, width: int = 64, blocks: int = 2) -> Chain:
    """On a squeezed image: the two colours of a checkerboard in turns, then the two halves of the channels.

    Before each pair of couplings, seen from the data, stands a normalisation (Dinh et al. 2017 have it by batch).
    """
    black, front = checkerboard(channels), range(channels // 2)
    white, back = sorted(set(range(channels)) - set(black)), range(channels // 2, channels)

    def coupling(kept: range | tuple[int, ...] | list[int]) -> AffineCoupling:
        network = ConvNetwork(len(kept), 2 * (channels - len(kept)), width=width, blocks=blocks)
        return AffineCoupling(network, kept, channels)

    return Chain(
        [coupling(front), coupling(back), ActNorm(channels), coupling(white), coupling(black), ActNorm(channels)]
    )


def glow_step(channels: int, *, width: int = 64, blocks: int = 2) -> Chain:
    """Normalise, mix the channels by a learned matrix, couple the halves (Kingma and Dhariwal 2018)."""
    network = ConvNetwork(channels // 2, 2 * (channels - channels // 2), width=width, blocks=blocks)
    mix = Exactly(Inverted(OneByOneConvolution(PLUMatrix(random_rotation(channels)))))  # no solving in training
    return Chain([AffineCoupling(network, range(channels // 2), channels), mix, ActNorm(channels)])


def image_flow(
    shape: tuple[int, int, int],
    step: Callable[[int], nn.Module],
    *,
    scales: int = 2,
    steps: int = 2,
    margin: float = 0.05,
) -> Flow:
    """A density over images in the unit cube: `steps` of `step(channels)` at each of the scales (book sec. 13.1).

    z ~ N(0, I),   x = (σ(T(z)) − λ)/(1 − 2λ)
    """
    if steps < 1:
        raise ValueError(f"each scale needs at least one step; got steps={steps}")
    scale = Multiscale(shape, lambda channels: Chain(step(channels) for _ in range(steps)), scales=scales)
    return Flow(Chain([scale, Logit(margin)]), GaussianBase((prod(shape),)))
