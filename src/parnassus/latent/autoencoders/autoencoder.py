"""Autoencoders: an encoder and a decoder trained to reconstruct their input (book ch. 4)."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import mse_loss

from parnassus.arrays import accepts_arrays
from parnassus.errors import check_non_negative
from parnassus.latent.autoencoders.penalties import Penalty
from parnassus.layers import Activation, Dense, evaluation_mode, identity, sigmoid


class Autoencoder(nn.Module):
    """x̂ = decoder(encoder(x)), trained without labels to reconstruct x (book sec. 4.1).

        loss(x) = mean (x − x̂)² + weight · penalty(encoder, x, z)                 (book secs. 4.4, 4.5)

    The mean runs over rows and coordinates. Without a bottleneck, a penalty or a corruption of the input the identity
    is a trivial minimum.
    """

    def __init__(
        self, encoder: nn.Module, decoder: nn.Module, *, penalty: Penalty | None = None, weight: float = 1.0
    ) -> None:
        super().__init__()
        check_non_negative(weight=weight)
        self.encoder = encoder
        self.decoder = decoder
        self.penalty = penalty
        self.weight = weight

    @accepts_arrays
    def encode(self, x: Float[Tensor, "batch *event"]) -> Float[Tensor, "batch latent"]:
        z: Tensor = self.encoder(x)
        return z

    @accepts_arrays
    def decode(self, z: Float[Tensor, "batch latent"]) -> Float[Tensor, "batch *event"]:
        x: Tensor = self.decoder(z)
        return x

    def forward(self, x: Float[Tensor, "batch *event"]) -> Float[Tensor, "batch *event"]:
        return self.decode(self.encode(x))

    def reconstruction_error(self, x: Float[Tensor, "batch *event"]) -> Float[Tensor, " batch"]:
        """The mean of (x − x̂)² over the coordinates of each row."""
        x_hat: Tensor = self(x)
        return (x - x_hat).square().flatten(1).mean(1)

    def loss(self, x: Float[Tensor, "batch *event"]) -> Float[Tensor, ""]:
        z = self.encode(x)
        distortion = mse_loss(self.decode(z), x)
        if self.penalty is None:
            return distortion
        return distortion + self.weight * self.penalty(self.encoder, x, z)


@torch.no_grad()
def mean_reconstruction_error(model: Autoencoder, x: Float[Tensor, "count *event"]) -> float:
    """The mean of (x − x̂)² over rows and coordinates, in batches and in evaluation mode.

    The mode is restored afterwards; the book's loop never returns to training mode (book sec. 4.5).
    """
    with evaluation_mode(model):
        errors = torch.cat([model.reconstruction_error(part) for part in x.split(1_000)])
    return float(errors.mean())


def shallow_autoencoder(
    features: int, latent_dim: int, *, hidden: Activation = sigmoid, output: Activation = identity
) -> Autoencoder:
    """One layer each for encoder and decoder: h = g(V x + b₁), f = g(W h + b₂) (book eqs. 4.1-4.2, fig. 4.1).

    The two activations may differ: a sigmoid output can only reconstruct data in (0, 1).
    """
    encoder = Dense(features, latent_dim, activation=hidden)
    return Autoencoder(encoder, Dense(latent_dim, features, activation=output))
