"""Activation normalisation (ActNorm): a scale and shift per channel, initialised from the first batch."""

import torch
from jaxtyping import Float
from torch import Tensor, nn


class ActNorm(nn.Module):
    """x = exp(s) ⊙ z + b with one s and b per channel, dim 1 (Kingma and Dhariwal 2018).

        log |det J| = pixels · Σ_c s_c          (pixels: height · width of an image, 1 for a vector)

    The first call of `inverse` in training mode sets s and b so that z has mean 0 and variance 1 in every channel; from
    then on they are ordinary parameters, and no batch statistics are needed. A channel that is constant in that batch
    keeps the scale 1. Whether the layer is initialised is part of its state dict. In distributed training, pass a
    batch through the model before distributing it; otherwise each process initialises from its own batch.

    >>> x, log_det = ActNorm(3)(torch.zeros(5, 3))
    >>> x.shape, log_det.shape
    (torch.Size([5, 3]), torch.Size([5]))
    """

    initialised: Tensor

    def __init__(self, features: int) -> None:
        super().__init__()
        if features < 1:
            raise ValueError(f"ActNorm needs at least one feature; got features={features}")
        self.log_scale = nn.Parameter(torch.zeros(features))
        self.shift = nn.Parameter(torch.zeros(features))
        self.register_buffer("initialised", torch.tensor(False))
        self._is_initialised = False  # avoids reading the buffer from the GPU at every step

    def forward(
        self, z: Float[Tensor, "batch features *space"]
    ) -> tuple[Float[Tensor, "batch features *space"], Float[Tensor, " batch"]]:
        log_scale, shift = self._broadcast(z)
        return log_scale.exp() * z + shift, self._log_det(z)

    def inverse(
        self, x: Float[Tensor, "batch features *space"]
    ) -> tuple[Float[Tensor, "batch features *space"], Float[Tensor, " batch"]]:
        if self.training and not self._is_initialised:
            if not self.initialised:
                self.initialise(x)
            self._is_initialised = True
        log_scale, shift = self._broadcast(x)
        return (x - shift) * (-log_scale).exp(), -self._log_det(x)

    @torch.no_grad()
    def initialise(self, x: Float[Tensor, "batch features *space"]) -> None:
        """Set scale and shift such that `inverse` standardises this batch."""
        channels = x.movedim(1, 0).flatten(1)
        std = channels.std(1, correction=0)
        self.log_scale.copy_(torch.where(std > 1e-6 * channels.abs().amax(1), std, 1.0).log())
        self.shift.copy_(channels.mean(1))
        self.initialised.fill_(True)

    def _broadcast(self, like: Tensor) -> tuple[Tensor, Tensor]:
        """Scale and shift with shapes that broadcast over `like`."""
        shape = (-1, *[1] * (like.dim() - 2))
        return self.log_scale.reshape(shape), self.shift.reshape(shape)

    def _log_det(self, example: Tensor) -> Float[Tensor, " batch"]:
        return (example[0, 0].numel() * self.log_scale.sum()).expand(len(example))
