"""The linear autoencoder: reconstruction error, gradients and optimum in closed form (book sec. 4.3)."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from parnassus.arrays import accepts_arrays
from parnassus.latent.linear.projection import pseudo_inverse
from parnassus.losses import mean_squared_error


class LinearAutoencoder(nn.Module):
    """x → W (V x + b₁) + b₂ with an encoder V (latent × features) and a decoder W (book eqs. 4.3-4.4).

    At the optimum the rows of V and the columns of W span the principal subspace; the text exchanges rows and columns.
    Neither holds the eigenvectors: (W A, A⁻¹ V) has the same error for every invertible A.
    """

    def __init__(self, features: int, latent_dim: int, *, bias: bool = True) -> None:
        super().__init__()
        if not 1 <= latent_dim <= features:
            raise ValueError(
                f"latent_dim must lie between 1 and features; got latent_dim={latent_dim}, features={features}"
            )
        self.encoder = nn.Linear(features, latent_dim, bias=bias)
        self.decoder = nn.Linear(latent_dim, features, bias=bias)

    @accepts_arrays
    def encode(self, x: Float[Tensor, "*batch features"]) -> Float[Tensor, "*batch latent"]:
        z: Tensor = self.encoder(x)
        return z

    @accepts_arrays
    def decode(self, z: Float[Tensor, "*batch latent"]) -> Float[Tensor, "*batch features"]:
        x: Tensor = self.decoder(z)
        return x

    def forward(self, x: Float[Tensor, "*batch features"]) -> Float[Tensor, "*batch features"]:
        return self.decode(self.encode(x))

    def loss(self, x: Float[Tensor, "batch features"]) -> Float[Tensor, ""]:
        """⟨‖x − F(x)‖²⟩: squares summed over features, averaged over rows (book eq. 4.5)."""
        return mean_squared_error(self(x), x)

    def offset(self) -> Float[Tensor, " features"]:
        """W b₁ + b₂ = F(0); at the optimum it equals (I − W V) x̄, so centred data need no biases."""
        return self.decode(self.encode(self.encoder.weight.new_zeros(self.encoder.in_features)))


def linear_error(
    V: Float[Tensor, "latent features"],
    W: Float[Tensor, "targets latent"],
    *,
    sigma_xx: Float[Tensor, "features features"],
    sigma_yx: Float[Tensor, "targets features"],
    sigma_yy: Float[Tensor, "targets targets"],
) -> Float[Tensor, ""]:
    """⟨‖y − W V x‖²⟩ = tr(Σ_yy − 2 W V Σ_yxᵀ + W V Σ_xx Vᵀ Wᵀ) from second moments alone (book eq. 4.5)."""
    T = W @ V
    return (sigma_yy - 2 * T @ sigma_yx.mT + T @ sigma_xx @ T.mT).trace()


def linear_gradients(
    V: Float[Tensor, "latent features"],
    W: Float[Tensor, "targets latent"],
    *,
    sigma_xx: Float[Tensor, "features features"],
    sigma_yx: Float[Tensor, "targets features"],
) -> tuple[Float[Tensor, "latent features"], Float[Tensor, "targets latent"]]:
    """∂E/∂V = −2 Wᵀ (Σ_yx − W V Σ_xx) and ∂E/∂W = −2 (Σ_yx − W V Σ_xx) Vᵀ (book sec. 4.3)."""
    residual = sigma_yx - W @ V @ sigma_xx
    return -2 * W.mT @ residual, -2 * residual @ V.mT


def optimal_encoder(
    W: Float[Tensor, "targets latent"],
    *,
    sigma_xx: Float[Tensor, "features features"],
    sigma_yx: Float[Tensor, "targets features"],
) -> Float[Tensor, "latent features"]:
    """V = pInv(W) Σ_yx Σ_xx⁻¹, the optimal encoder of x for a decoder W of y (book sec. 4.3).

    For y = x this is the text's V = pInv(W); for another target its z = pInv(W) y would need y as input.
    """
    regression: Tensor = torch.linalg.solve(sigma_xx, sigma_yx.mT).mT
    return pseudo_inverse(W) @ regression


def reduced_rank_regression(
    latent_dim: int,
    *,
    sigma_xx: Float[Tensor, "features features"],
    sigma_yx: Float[Tensor, "targets features"],
) -> tuple[Float[Tensor, "latent features"], Float[Tensor, "targets latent"]]:
    """The optimal (V, W) for a target y: W holds the top eigenvectors of Σ_yx Σ_xx⁻¹ Σ_xy; y = x gives PCA."""
    explained = sigma_yx @ torch.linalg.solve(sigma_xx, sigma_yx.mT)
    _, eigenvectors = torch.linalg.eigh((explained + explained.mT) / 2)
    W = eigenvectors.flip(1)[:, :latent_dim]
    return optimal_encoder(W, sigma_xx=sigma_xx, sigma_yx=sigma_yx), W
