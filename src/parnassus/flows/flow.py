"""Normalising flows: a base density transformed by a chain of invertible maps (book sec. 13.1)."""

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.distributions import Distribution, Independent, Normal

from parnassus.arrays import accepts_arrays


@runtime_checkable
class Invertible(Protocol):
    """An invertible map T with the log-determinant of its Jacobian for each example of a batch.

    Any module with these two methods can be used in a `Chain`; no base class is needed.
    """

    def __call__(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Return x = T(z) and log |det J_T(z)|."""
        ...

    def inverse(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return z = T⁻¹(x) and log |det J_{T⁻¹}(x)| = −log |det J_T(z)|."""
        ...


class Chain(nn.ModuleList):
    """T = T_K ∘ … ∘ T_1: log-determinants add up; inverses apply in reverse order (book eqs. 13.3-13.4).

    log |det J_T(z_0)| = Σ_k log |det J_{T_k}(z_{k−1})|,   z_k = T_k(z_{k−1})
    T⁻¹ = T_1⁻¹ ∘ … ∘ T_K⁻¹
    """

    def forward(
        self, z: Float[Tensor, "batch *latent"]
    ) -> tuple[Float[Tensor, "batch *event"], Float[Tensor, " batch"]]:
        log_det = z.new_zeros(len(z))
        for transform in self:
            z, log_det_k = transform(z)
            log_det = log_det + log_det_k
        return z, log_det

    def inverse(
        self, x: Float[Tensor, "batch *event"]
    ) -> tuple[Float[Tensor, "batch *latent"], Float[Tensor, " batch"]]:
        log_det = x.new_zeros(len(x))
        for transform in reversed(list(self)):
            x, log_det_k = transform.inverse(x)  # type: ignore[operator]  # an Invertible; nn.Module does not declare it
            log_det = log_det + log_det_k
        return x, log_det

    def path(self, z: Float[Tensor, "batch *latent"]) -> Iterator[Float[Tensor, "batch *event"]]:
        """The intermediate states z_0, z_1, …, z_K of the chain (book eq. 13.4)."""
        yield z
        for transform in self:
            z, _ = transform(z)
            yield z


class InverseTransform(nn.Module):
    """T⁻¹ as a transform: forward and inverse of T, and their costs, are exchanged."""

    def __init__(self, transform: nn.Module) -> None:
        super().__init__()
        self.transform = transform

    def forward(
        self, z: Float[Tensor, "batch *latent"]
    ) -> tuple[Float[Tensor, "batch *event"], Float[Tensor, " batch"]]:
        x, log_det = self.transform.inverse(z)  # type: ignore[operator]  # an Invertible; nn.Module does not declare it
        return x, log_det

    def inverse(
        self, x: Float[Tensor, "batch *event"]
    ) -> tuple[Float[Tensor, "batch *latent"], Float[Tensor, " batch"]]:
        z, log_det = self.transform(x)
        return z, log_det


class GaussianBase(nn.Module):
    """The base density p_z(·; ψ): N(0, I), or N(m, diag s²) with trainable m and log s (book sec. 13.1)."""

    mean: Tensor
    log_std: Tensor

    def __init__(self, shape: tuple[int, ...], *, trainable: bool = False) -> None:
        super().__init__()
        if not shape or min(shape) < 1:
            raise ValueError(f"the shape of a base must have positive sizes; got shape={tuple(shape)}")
        if trainable:
            self.mean, self.log_std = nn.Parameter(torch.zeros(shape)), nn.Parameter(torch.zeros(shape))
        else:
            self.register_buffer("mean", torch.zeros(shape))
            self.register_buffer("log_std", torch.zeros(shape))

    def forward(self) -> Distribution:
        """The base as a torch distribution on the device of the module, differentiable with respect to ψ."""
        return Independent(Normal(self.mean, self.log_std.exp(), validate_args=False), self.mean.dim())


class Flow(nn.Module):
    """A density by change of variables: z ~ p_z, x = T(z) (book eqs. 13.1-13.2).

        log p_x(x) = log p_z(T⁻¹(x)) + log |det J_{T⁻¹}(x)|

    `transform` is any `Invertible`, often a `Chain`; `base()` returns the distribution of z. Log-densities and samples
    are exact.
    """

    def __init__(self, transform: nn.Module, base: nn.Module) -> None:
        super().__init__()
        if not isinstance(transform, Invertible):
            raise ValueError(f"transform must have an inverse; got {type(transform).__name__}")
        self.transform: Invertible = transform
        self.base = base

    @accepts_arrays
    def log_prob(self, x: Float[Tensor, "batch *event"]) -> Float[Tensor, " batch"]:
        """The exact logarithm of the density, in nats (book eq. 13.2)."""
        z, log_det = self.transform.inverse(x)
        log_prob: Tensor = self.base().log_prob(z)
        return log_prob + log_det

    def loss(self, x: Float[Tensor, "batch *event"]) -> Float[Tensor, ""]:
        """−(1/N) Σ_n log p_x(x_n): KL(q ‖ p_x) up to the entropy of the data (book eq. 13.9)."""
        return -self.log_prob(x).mean()

    def sample_with_log_prob(self, count: int) -> tuple[Float[Tensor, "{count} *event"], Float[Tensor, " {count}"]]:
        """Differentiable samples T(z) and log p_x(T(z)) = log p_z(z) − log |det J_T(z)| (book eq. 13.1)."""
        base: Distribution = self.base()
        z = base.rsample(torch.Size([count]))
        x, log_det = self.transform(z)
        return x, base.log_prob(z) - log_det

    @torch.no_grad()
    def sample(self, count: int) -> Float[Tensor, "{count} *event"]:
        """Samples T(z) with z ~ p_z."""
        base: Distribution = self.base()
        return self.transform(base.sample(torch.Size([count])))[0]
