"""VQ-VAE: an autoencoder whose code is a raster of entries of a finite book (book sec. 13.3.1)."""

from math import log

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import mse_loss

from parnassus.latent.code_priors import IndependentPrior, NeighbourPrior
from parnassus.latent.vector_quantiser import Codebook, MovingCodebook, straight_through


class VQVAE(nn.Module):
    """x → encoder → nearest codes → decoder, trained through the rounding (van den Oord et al. 2017; book sec. 13.3.1).

        loss = mean (x − decoder(z + sg[e − z]))² + codebook term             sg[·] without gradient

    The encoder gives (batch, dim, rows, columns). An image costs rows · columns · log₂ K bits, and fewer if the `prior`
    knows which codes go together; it is trained on codes after the rest, and draws new images.
    """

    def __init__(
        self,
        encoder: nn.Module,
        decoder: nn.Module,
        codebook: Codebook | MovingCodebook,
        prior: IndependentPrior | NeighbourPrior,
        *,
        raster: tuple[int, int],
    ) -> None:
        super().__init__()
        if raster[0] * raster[1] != prior.positions:
            raise ValueError(f"the prior must have a position for each code; got {prior.positions}, raster={raster}")
        self.encoder = encoder
        self.decoder = decoder
        self.codebook = codebook
        self.prior = prior
        self.raster = raster

    def vectors(self, x: Float[Tensor, "batch *event"]) -> Float[Tensor, "batch rows columns dim"]:
        """What the encoder says, before rounding."""
        z: Tensor = self.encoder(x)
        return z.movedim(1, -1)

    def encode(self, x: Float[Tensor, "batch *event"]) -> Int[Tensor, "batch rows columns"]:
        """The numbers of the nearest codes."""
        indices: Tensor = self.codebook(self.vectors(x))
        return indices

    def decode(self, indices: Int[Tensor, "batch rows columns"]) -> Float[Tensor, "batch *event"]:
        x: Tensor = self.decoder(self.codebook.lookup(indices).movedim(-1, 1))
        return x

    def forward(self, x: Float[Tensor, "batch *event"]) -> Float[Tensor, "batch *event"]:
        """x̂, rebuilt from its codes."""
        return self.decode(self.encode(x))

    def loss(self, x: Float[Tensor, "batch *event"]) -> Float[Tensor, ""]:
        """Distortion and codebook term; in training mode a moving codebook takes its step here."""
        z = self.vectors(x)
        indices: Tensor = self.codebook(z)
        rebuilt = self.decoder(straight_through(z, self.codebook.lookup(indices)).movedim(-1, 1))
        loss = mse_loss(rebuilt, x) + self.codebook.loss(z, indices)
        if self.training:
            self.codebook.update(z, indices)
        return loss

    def bits(self, indices: Int[Tensor, "batch rows columns"]) -> Float[Tensor, " batch"]:
        """−log₂ prior(codes), the length of each image's message."""
        return -self.prior.log_prob(indices.flatten(1)) / log(2)

    @torch.no_grad()
    def sample(self, count: int) -> Float[Tensor, "count *event"]:
        """Codes drawn from the prior, decoded."""
        return self.decode(self.prior.sample(count).unflatten(1, self.raster))


def raster_encoder(channels: int, dim: int, *, width: int = 32) -> nn.Sequential:
    """Two convolutions of stride 2 and one of size 1: a vector for every 4×4 pixels."""
    return nn.Sequential(
        nn.Conv2d(channels, width, 4, stride=2, padding=1),
        nn.SiLU(),
        nn.Conv2d(width, 2 * width, 4, stride=2, padding=1),
        nn.SiLU(),
        nn.Conv2d(2 * width, dim, 1),
    )


def raster_decoder(dim: int, channels: int, *, width: int = 32) -> nn.Sequential:
    """The way back: every vector looks at its neighbours, then becomes 4×4 pixels.

    The last layer is linear. While few codes are in use the best answer is nearly black everywhere, and a sigmoid that
    went there at the start would stay.
    """
    return nn.Sequential(
        nn.Conv2d(dim, 2 * width, 3, padding=1),
        nn.SiLU(),
        nn.ConvTranspose2d(2 * width, width, 4, stride=2, padding=1),
        nn.SiLU(),
        nn.ConvTranspose2d(width, channels, 4, stride=2, padding=1),
    )
