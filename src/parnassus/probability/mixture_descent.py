"""Gaussian mixtures fitted by gradient descent on the likelihood, without constraints to keep (Diehl sec. 6)."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.optim import Adam

from parnassus.probability.mixtures import GaussianMixture


class FreeMixture(nn.Module):
    """A Gaussian mixture by parameters that may take any value (Diehl ex. 6.3).

    φ = softmax(a),   Σ_i = L_i L_iᵀ,   L_i lower triangular with diagonal exp(b_i)
    """

    def __init__(self, start: GaussianMixture) -> None:
        super().__init__()
        roots = start.roots
        self.logits = nn.Parameter(start.weights.log().clamp(min=-30.0))
        self.means = nn.Parameter(start.means.clone())
        self.below = nn.Parameter(roots.tril(-1))
        self.log_diagonal = nn.Parameter(roots.diagonal(dim1=-2, dim2=-1).log())

    def mixture(self) -> GaussianMixture:
        """The mixture that the parameters stand for; gradients flow through it."""
        roots = self.below.tril(-1) + torch.diag_embed(self.log_diagonal.exp())
        return GaussianMixture(self.logits.softmax(0), self.means, roots @ roots.mT)

    def loss(self, x: Float[Tensor, "count dim"]) -> Float[Tensor, ""]:
        """The mean of −log p(x)."""
        return -self.mixture().log_prob(x).mean()


def fit_by_descent(
    x: Float[Tensor, "count dim"], start: GaussianMixture, *, steps: int = 500, rate: float = 0.05
) -> tuple[GaussianMixture, Float[Tensor, " steps"]]:
    """A mixture after `steps` of Adam, its rate falling linearly to 0, and the mean of log p(x) before each step.

    EM needs no rate and no step ever lowers the likelihood; descent needs only a gradient, so it goes on where the
    M-step has no closed form (Diehl sec. 6).
    """
    if not (rate > 0 and steps >= 1):
        raise ValueError(f"need rate > 0 and at least one step; got rate={rate}, steps={steps}")
    model = FreeMixture(start)
    optimizer = Adam(model.parameters(), lr=rate)
    heights = []
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = rate * (1 - step / steps)
        loss = model.loss(x)
        if not bool(loss.isfinite()):
            raise ValueError(f"the likelihood is not finite at step {step}: take a smaller rate than {rate}")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        heights.append(-loss.detach())
    found = model.mixture()
    return (
        GaussianMixture(found.weights.detach(), found.means.detach(), found.covariances.detach()),
        torch.stack(heights),
    )
