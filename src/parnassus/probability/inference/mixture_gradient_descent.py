"""Gaussian mixtures fitted by gradient descent with an unconstrained parametrisation (Diehl sec. 6)."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.optim import Adam

from parnassus.arrays import accepts_arrays
from parnassus.probability.inference.gaussian_mixture import GaussianMixture


class UnconstrainedMixture(nn.Module):
    """A Gaussian mixture with unconstrained parameters (Diehl ex. 6.3).

    φ = softmax(a),   Σ_i = L_i L_iᵀ,   L_i lower triangular with diagonal exp(b_i)
    """

    def __init__(self, start: GaussianMixture) -> None:
        super().__init__()
        roots = start.roots
        self.logits = nn.Parameter(start.weights.log().clamp(min=-30.0))
        self.means = nn.Parameter(start.means.clone())
        self.lower = nn.Parameter(roots.tril(-1))
        self.log_diagonal = nn.Parameter(roots.diagonal(dim1=-2, dim2=-1).log())

    def mixture(self) -> GaussianMixture:
        """The mixture for the current parameters, differentiable with respect to them."""
        roots = self.lower.tril(-1) + torch.diag_embed(self.log_diagonal.exp())
        return GaussianMixture(self.logits.softmax(0), self.means, roots @ roots.mT)

    def loss(self, x: Float[Tensor, "count dim"]) -> Float[Tensor, ""]:
        """The mean negative log-likelihood."""
        return -self.mixture().log_prob(x).mean()


@accepts_arrays
def fit_by_gradient_descent(
    x: Float[Tensor, "count dim"], start: GaussianMixture, *, steps: int = 500, learning_rate: float = 0.05
) -> tuple[GaussianMixture, Float[Tensor, " steps"]]:
    """Fit by Adam with a learning rate that decreases linearly to 0; also the mean log-likelihood before each step.

    EM needs no learning rate and never decreases the likelihood; gradient descent also applies where the M-step has no
    closed form (Diehl sec. 6).
    """
    if not (learning_rate > 0 and steps >= 1):
        raise ValueError(f"need learning_rate > 0 and steps ≥ 1; got learning_rate={learning_rate}, steps={steps}")
    model = UnconstrainedMixture(start)
    optimizer = Adam(model.parameters(), lr=learning_rate)
    log_likelihoods = []
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = learning_rate * (1 - step / steps)
        loss = model.loss(x)
        if not bool(loss.isfinite()):
            raise ValueError(f"the likelihood is not finite at step {step}; use a learning_rate below {learning_rate}")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        log_likelihoods.append(-loss.detach())
    fitted = model.mixture()
    return (
        GaussianMixture(fitted.weights.detach(), fitted.means.detach(), fitted.covariances.detach()),
        torch.stack(log_likelihoods),
    )
