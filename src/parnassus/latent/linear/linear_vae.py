"""The linear VAE: its ELBO in closed form, with probabilistic PCA as the optimum (book sec. 5.2)."""

from math import log, pi

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.distributions import Normal

from parnassus.arrays import accepts_arrays
from parnassus.errors import check_at_least_one
from parnassus.latent.linear.linear_autoencoder import LinearAutoencoder
from parnassus.latent.linear.probabilistic_pca import PPCA


class LinearVAE(nn.Module):
    """A linear decoder with learned noise and a linear encoder with constant variances (book sec. 5.2).

        p(x|z) = N(W z + μ, σ² I)                                                (book eq. 5.4)
        q(z|x) = N(V (x − μ), diag s),   s > 0 the same for every x              (book eq. 5.5, corrected)

    The printed variance V_Σ x is negative for half of the data; that of PPCA does not depend on x. With constant s the
    bound is tight at W = U_K (Λ_K − σ² I)^{1/2}, where M = Wᵀ W + σ² I is diagonal. Since diag s is exact for no other
    rotation, training finds the principal axes (Lucas et al. 2019).
    """

    def __init__(self, features: int, latent_dim: int) -> None:
        super().__init__()
        if not 1 <= latent_dim < features:
            raise ValueError(f"need 1 ≤ latent_dim < features; got latent_dim={latent_dim}, features={features}")
        self.W = nn.Parameter(torch.randn(features, latent_dim) / features**0.5)
        self.V = nn.Parameter(torch.randn(latent_dim, features) / features**0.5)
        self.mean = nn.Parameter(torch.zeros(features))
        self.log_variance = nn.Parameter(torch.zeros(()))  # ln σ²
        self.log_s = nn.Parameter(torch.zeros(latent_dim))

    @accepts_arrays
    def encode(self, x: Float[Tensor, "batch features"]) -> Normal:
        """q(z|x), with independent coordinates."""
        return Normal((x - self.mean) @ self.V.mT, (self.log_s / 2).exp())

    @accepts_arrays
    def decode(self, z: Float[Tensor, "batch latent"]) -> Float[Tensor, "batch features"]:
        """The mean W z + μ of p(x|z)."""
        return z @ self.W.mT + self.mean

    def elbo(self, x: Float[Tensor, "batch features"]) -> Float[Tensor, " batch"]:
        """The lower bound on ln p(x) of each row, in closed form.

        E_q ln p(x|z) = −(N/2) ln 2πσ² − (‖x − W m − μ‖² + Σ_k s_k ‖w_k‖²) / 2σ²
        KL = ½ Σ_k (m_k² + s_k − ln s_k − 1),   m = V (x − μ)
        """
        m, s = (x - self.mean) @ self.V.mT, self.log_s.exp()
        misfit = (x - self.decode(m)).square().sum(1) + (s * self.W.square()).sum()
        expected = -(x.shape[1] * (log(2 * pi) + self.log_variance) + misfit / self.log_variance.exp()) / 2
        kl = (m.square() + s - self.log_s - 1).sum(1) / 2
        return expected - kl

    def loss(self, x: Float[Tensor, "batch features"]) -> Float[Tensor, ""]:
        """The mean of −ELBO over the rows."""
        return -self.elbo(x).mean()

    @torch.no_grad()
    def to_ppca(self) -> PPCA:
        """The density defined by the decoder, independent of the encoder: log_prob, sample, posterior."""
        return PPCA(self.mean.clone(), self.W.clone(), self.log_variance.exp())

    @torch.no_grad()
    def match_ppca(self, model: PPCA) -> "LinearVAE":
        """Set the decoder to that of `model` and the encoder to the optimal one for it; returns self.

        V = M⁻¹ Wᵀ and s_k = σ² / M_kk: exact where M is diagonal, elsewhere the best factorised q.
        """
        M = model.scaled_precision
        self.W.copy_(model.W)
        self.V.copy_(torch.linalg.solve(M, model.W.mT))
        self.mean.copy_(model.mean)
        self.log_variance.copy_(model.variance.log())
        self.log_s.copy_((model.variance / M.diagonal()).log())
        return self


def fit_by_lbfgs(
    model: LinearVAE | LinearAutoencoder, x: Float[Tensor, "count features"], *, num_rounds: int = 20
) -> list[float]:
    """Minimise the exact loss over all rows by L-BFGS; returns the losses after every round of 100 steps.

    Use float64: float32 does not resolve the differences of the loss that fix the last digits of the principal axes.
    """
    check_at_least_one(num_rounds=num_rounds)
    optimizer = torch.optim.LBFGS(
        model.parameters(), max_iter=100, history_size=50, line_search_fn="strong_wolfe", tolerance_grad=1e-11,
        tolerance_change=0.0,
    )  # fmt: skip

    def closure() -> float:
        optimizer.zero_grad()
        loss = model.loss(x)
        loss.backward()
        return float(loss.detach())

    losses = []
    for _ in range(num_rounds):
        optimizer.step(closure)
        losses.append(closure())
    return losses
