"""Activation normalisation: a scale and a shift for each channel that begin by standardising the data."""

import torch
from jaxtyping import Float
from torch import Tensor, nn


class ActNorm(nn.Module):
    """x = exp(s) ⊙ z + b with one s and b for each coordinate of dim 1 (Kingma and Dhariwal 2018).

        log |det J| = places · Σ_c s_c          (places: height · width of an image, 1 of a point)

    At the first batch of data that comes back through it in training, s and b are set so that z has mean 0 and
    variance 1 in every channel; from then on they are parameters as any other. It does what batch normalisation is for
    and needs no batch afterwards. A channel that is constant in that batch keeps the scale 1. The start is remembered
    with the weights: a model that is loaded or evaluated is not started anew. Where several processes train one model,
    show it a batch before it is distributed, or each will begin from its own.
    """

    started: Tensor

    def __init__(self, features: int) -> None:
        super().__init__()
        if features < 1:
            raise ValueError(f"a normalisation needs at least one feature; got features={features}")
        self.log_scale = nn.Parameter(torch.zeros(features))
        self.shift = nn.Parameter(torch.zeros(features))
        self.register_buffer("started", torch.tensor(False))
        self._seen = False  # so that a GPU is not asked at every step

    def forward(
        self, z: Float[Tensor, "batch features *place"]
    ) -> tuple[Float[Tensor, "batch features *place"], Float[Tensor, " batch"]]:
        log_scale, shift = self._spread(z)
        return log_scale.exp() * z + shift, self._log_det(z)

    def inverse(
        self, x: Float[Tensor, "batch features *place"]
    ) -> tuple[Float[Tensor, "batch features *place"], Float[Tensor, " batch"]]:
        if self.training and not self._seen:
            if not self.started:
                self.start(x)
            self._seen = True
        log_scale, shift = self._spread(x)
        return (x - shift) * (-log_scale).exp(), -self._log_det(x)

    @torch.no_grad()
    def start(self, x: Float[Tensor, "batch features *place"]) -> None:
        """Set scale and shift so that these data become standardised."""
        channels = x.movedim(1, 0).flatten(1)
        spread = channels.std(1, correction=0)
        self.log_scale.copy_(torch.where(spread > 1e-6 * channels.abs().amax(1), spread, 1.0).log())
        self.shift.copy_(channels.mean(1))
        self.started.fill_(True)

    def _spread(self, like: Tensor) -> tuple[Tensor, Tensor]:
        """Scale and shift, with an axis of length one for each place."""
        shape = (-1, *[1] * (like.dim() - 2))
        return self.log_scale.reshape(shape), self.shift.reshape(shape)

    def _log_det(self, example: Tensor) -> Float[Tensor, " batch"]:
        return (example[0, 0].numel() * self.log_scale.sum()).expand(len(example))
