"""Batch normalisation as a flow layer, with running statistics (book sec. 13.1)."""

import torch
from jaxtyping import Float
from torch import Tensor, nn


class BatchNormFlow(nn.Module):
    """Standardise every coordinate by running statistics, then scale and shift it (book eqs. 13.20-13.21).

        z' = α ⊙ (z − μ) / √(σ² + ε) + β,   log |det J| = Σ_i log(α_i / √(σ_i² + ε))

    The book's ε_i is one scalar ε here, and α = exp(log α) is always positive. The formula holds for constant μ and σ².
    Statistics of the batch itself depend on all of its rows: that map discards the mean and scale of each coordinate,
    so it has no inverse and its determinant over the batch is zero. Hence a training step first updates the running
    statistics with `momentum` and then uses them as constants in both directions.

    A flow is trained from data to noise: `InverseTransform(BatchNormFlow(d))` standardises in that direction.
    Coordinates are those of dim 1, as in a coupling.

    >>> BatchNormFlow(3)(torch.randn(5, 3))[1].shape
    torch.Size([5])
    """

    mean: Tensor
    variance: Tensor
    updates: Tensor

    def __init__(self, features: int, *, momentum: float = 0.1, epsilon: float = 1e-5) -> None:
        super().__init__()
        if features < 1:
            raise ValueError(f"batch normalisation needs at least one feature; got features={features}")
        if not 0 < momentum <= 1 or epsilon < 0:
            raise ValueError(
                f"momentum must be in (0, 1] and epsilon at least 0; got momentum={momentum}, epsilon={epsilon}"
            )
        self.momentum, self.epsilon = momentum, epsilon
        self.log_scale = nn.Parameter(torch.zeros(features))  # log α
        self.shift = nn.Parameter(torch.zeros(features))  # β
        self.register_buffer("mean", torch.zeros(features))  # μ
        self.register_buffer("variance", torch.ones(features))  # σ²
        self.register_buffer("updates", torch.zeros(()))

    def forward(
        self, z: Float[Tensor, "batch features *space"]
    ) -> tuple[Float[Tensor, "batch features *space"], Float[Tensor, " batch"]]:
        if self.training:
            self.update_statistics(z)
        log_factor, mean, shift = self._constants(z)
        return (z - mean) * log_factor.exp() + shift, self._log_det(log_factor, z)

    def inverse(
        self, x: Float[Tensor, "batch features *space"]
    ) -> tuple[Float[Tensor, "batch features *space"], Float[Tensor, " batch"]]:
        log_factor, mean, shift = self._constants(x)
        return (x - shift) * (-log_factor).exp() + mean, -self._log_det(log_factor, x)

    @torch.no_grad()
    def update_statistics(self, z: Float[Tensor, "batch features *space"]) -> None:
        """Update μ and σ² by the batch, with weight max(1/n, `momentum`) in the n-th update."""
        if z.numel() < 2 * z.shape[1]:
            raise ValueError(f"a variance needs at least two values per feature; got shape {tuple(z.shape)}")
        reduced = [dim for dim in range(z.dim()) if dim != 1]
        variance, mean = torch.var_mean(z, reduced, correction=0)
        self.updates += 1
        weight = (1 / self.updates).clamp(min=self.momentum)
        self.mean.lerp_(mean, weight)
        self.variance.lerp_(variance, weight)

    def _constants(self, z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """log(α/√(σ² + ε)), μ and β with shapes that broadcast over z."""
        log_factor = self.log_scale - (self.variance + self.epsilon).log() / 2
        shape = -1, *[1] * (z.dim() - 2)
        return log_factor.view(shape), self.mean.view(shape), self.shift.view(shape)

    def _log_det(self, log_factor: Tensor, z: Tensor) -> Tensor:
        return (log_factor.sum() * z[0, 0].numel()).expand(len(z))
