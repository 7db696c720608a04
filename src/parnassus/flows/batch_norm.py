"""Batch normalisation between the maps of a flow, with statistics that stand still (book sec. 13.1)."""

import torch
from jaxtyping import Float
from torch import Tensor, nn


class BatchNormFlow(nn.Module):
    """Standardise every coordinate by running statistics, then scale and shift it (book eqs. 13.20-13.21).

        z' = α ⊙ (z − μ) / √(σ² + ε) + β,   log |det J| = Σ_i log(α_i / √(σ_i² + ε))

    The book's ε_i is one scalar ε, and α = exp(log α) here, which cannot vanish. The formula is that of a map in which
    μ and σ² are constants. Statistics of the batch itself depend on all of its rows: that map forgets mean and scale of
    each coordinate, so it has no inverse and its determinant over the batch is zero. Hence training first moves the
    running statistics towards those of the batch, by `momentum`, and then uses them as constants in both directions.

    A flow is trained from data to noise: `Inverted(BatchNormFlow(d))` standardises what comes from the data there.
    Coordinates are those of dim 1, as in a coupling.
    """

    mean: Tensor
    variance: Tensor
    updates: Tensor

    def __init__(self, features: int, *, momentum: float = 0.1, epsilon: float = 1e-5) -> None:
        super().__init__()
        if features < 1:
            raise ValueError(f"a layer needs at least one coordinate; got features={features}")
        if not 0 < momentum <= 1 or epsilon < 0:
            raise ValueError(
                f"momentum must be in (0, 1] and epsilon not negative; got momentum={momentum}, epsilon={epsilon}"
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
            self.update(z)
        log_slope, mean, shift = self._constants(z)
        return (z - mean) * log_slope.exp() + shift, self._log_det(log_slope, z)

    def inverse(
        self, x: Float[Tensor, "batch features *space"]
    ) -> tuple[Float[Tensor, "batch features *space"], Float[Tensor, " batch"]]:
        log_slope, mean, shift = self._constants(x)
        return (x - shift) * (-log_slope).exp() + mean, -self._log_det(log_slope, x)

    @torch.no_grad()
    def update(self, z: Float[Tensor, "batch features *space"]) -> None:
        """Move μ and σ² towards those of the batch: all the way at first, then by 1/n, at last by `momentum`."""
        if z.numel() < 2 * z.shape[1]:
            raise ValueError(f"a batch needs two numbers a coordinate to have a variance; got shape {tuple(z.shape)}")
        around = [dim for dim in range(z.dim()) if dim != 1]
        variance, mean = torch.var_mean(z, around, correction=0)
        self.updates += 1
        share = (1 / self.updates).clamp(min=self.momentum)
        self.mean.lerp_(mean, share)
        self.variance.lerp_(variance, share)

    def _constants(self, z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """log(α/√(σ² + ε)), μ and β, of a shape that spreads over z."""
        log_slope = self.log_scale - (self.variance + self.epsilon).log() / 2
        shape = -1, *[1] * (z.dim() - 2)
        return log_slope.view(shape), self.mean.view(shape), self.shift.view(shape)

    def _log_det(self, log_slope: Tensor, z: Tensor) -> Tensor:
        return (log_slope.sum() * z[0, 0].numel()).expand(len(z))
