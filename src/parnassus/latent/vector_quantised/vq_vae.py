"""VQ-VAE: an autoencoder with a discrete code, a grid of codebook indices (book sec. 13.3.1)."""

from math import log

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import mse_loss

from parnassus.arrays import accepts_arrays
from parnassus.latent.vector_quantised.code_priors import IndependentPrior, NeighbourPrior
from parnassus.latent.vector_quantised.codebook import Codebook, EMACodebook, straight_through


class VQVAE(nn.Module):
    """x → encoder → nearest codes → decoder, trained straight-through (van den Oord et al. 2017; book sec. 13.3.1).

        loss = mean (x − decoder(z + sg[e − z]))² + codebook term             sg[·] stops the gradient

    The encoder returns (batch, dim, rows, columns). A code has rows · columns · log₂ K bits, or −log₂ π under the
    `prior`, which is trained on codes afterwards and samples new images.
    """

    def __init__(
        self,
        encoder: nn.Module,
        decoder: nn.Module,
        codebook: Codebook | EMACodebook,
        prior: IndependentPrior | NeighbourPrior,
        *,
        grid_shape: tuple[int, int],
    ) -> None:
        super().__init__()
        if grid_shape[0] * grid_shape[1] != prior.positions:
            raise ValueError(
                f"the prior must have one position per code; got positions={prior.positions}, grid_shape={grid_shape}"
            )
        self.encoder = encoder
        self.decoder = decoder
        self.codebook = codebook
        self.prior = prior
        self.grid_shape = grid_shape

    def vectors(self, x: Float[Tensor, "batch *event"]) -> Float[Tensor, "batch rows columns dim"]:
        """The output of the encoder before quantisation."""
        z: Tensor = self.encoder(x)
        return z.movedim(1, -1)

    @accepts_arrays
    def encode(self, x: Float[Tensor, "batch *event"]) -> Int[Tensor, "batch rows columns"]:
        """The indices of the nearest codes."""
        indices: Tensor = self.codebook(self.vectors(x))
        return indices

    @accepts_arrays
    def decode(self, indices: Int[Tensor, "batch rows columns"]) -> Float[Tensor, "batch *event"]:
        x: Tensor = self.decoder(self.codebook.lookup(indices).movedim(-1, 1))
        return x

    def forward(self, x: Float[Tensor, "batch *event"]) -> Float[Tensor, "batch *event"]:
        """x̂, reconstructed from the codes."""
        return self.decode(self.encode(x))

    def loss(self, x: Float[Tensor, "batch *event"]) -> Float[Tensor, ""]:
        """Distortion and codebook term; in training mode an `EMACodebook` is updated here."""
        z = self.vectors(x)
        indices: Tensor = self.codebook(z)
        x_hat = self.decoder(straight_through(z, self.codebook.lookup(indices)).movedim(-1, 1))
        loss = mse_loss(x_hat, x) + self.codebook.loss(z, indices)
        if self.training:
            self.codebook.update(z, indices)
        return loss

    def bits(self, indices: Int[Tensor, "batch rows columns"]) -> Float[Tensor, " batch"]:
        """−log₂ prior(codes), the code length of each image."""
        return -self.prior.log_prob(indices.flatten(1)) / log(2)

    @torch.no_grad()
    def sample(self, count: int) -> Float[Tensor, "count *event"]:
        """Codes sampled from the prior, decoded."""
        return self.decode(self.prior.sample(count).unflatten(1, self.grid_shape))


def code_grid_encoder(channels: int, dim: int, *, width: int = 32) -> nn.Sequential:
    """Two convolutions of stride 2 and a 1 × 1 convolution: a vector for every 4 × 4 pixels."""
    return nn.Sequential(
        nn.Conv2d(channels, width, 4, stride=2, padding=1),
        nn.SiLU(),
        nn.Conv2d(width, 2 * width, 4, stride=2, padding=1),
        nn.SiLU(),
        nn.Conv2d(2 * width, dim, 1),
    )


def code_grid_decoder(dim: int, channels: int, *, width: int = 32) -> nn.Sequential:
    """A 3 × 3 convolution over the vectors and two transposed ones of stride 2: 4 × 4 pixels per vector.

    The last layer is linear. Early in training, with few codes in use, the best prediction is almost black, where a
    sigmoid would saturate.
    """
    return nn.Sequential(
        nn.Conv2d(dim, 2 * width, 3, padding=1),
        nn.SiLU(),
        nn.ConvTranspose2d(2 * width, width, 4, stride=2, padding=1),
        nn.SiLU(),
        nn.ConvTranspose2d(width, channels, 4, stride=2, padding=1),
    )
