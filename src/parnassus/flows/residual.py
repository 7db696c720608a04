"""Residual flows: z + g(z) is invertible if g contracts (book sec. 13.1; Behrmann et al. 2019, Chen et al. 2019)."""

from collections.abc import Callable, Iterable
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils import parametrize

from parnassus.flows.contraction import solve_residual
from parnassus.flows.flow import Chain
from parnassus.flows.traces import Directions, inner, random_signs, unit_directions, with_pullback


@runtime_checkable
class LogDet(Protocol):
    """How log |det (I + J_g(z))| is found: in full, or estimated."""

    def __call__(self, branch: Callable[[Tensor], Tensor], z: Tensor, /) -> tuple[Tensor, Tensor]:
        """Give g(z) and the log-determinant for each example."""
        ...


def exact_log_det(
    branch: Callable[[Tensor], Tensor], z: Float[Tensor, "batch *event"]
) -> tuple[Float[Tensor, "batch *event"], Float[Tensor, " batch"]]:
    """From the whole Jacobian, row by row: as many products as coordinates, so for few of them."""
    value, pull = with_pullback(branch, z)
    rows = torch.stack([pull(direction).flatten(1) for direction in unit_directions(z)], 1)
    identity = torch.eye(rows.shape[-1], dtype=z.dtype, device=z.device)
    return value, torch.linalg.slogdet(identity + rows).logabsdet


class SeriesLogDet:
    """The first `terms` of the power series of log det (I + J), which converges because ‖J‖ ≤ L < 1.

        log det (I + J) = Σ_{k≥1} (−1)^{k+1} tr(Jᵏ) / k
        |what is left out after n terms| ≤ D Lⁿ⁺¹ / ((n + 1) (1 − L))

    Traces are estimated with one direction of random signs unless told otherwise; the error of stopping is a bias.
    """

    def __init__(self, terms: int, *, directions: Directions = random_signs) -> None:
        if terms < 1:
            raise ValueError(f"a series needs at least one term; got terms={terms}")
        self.terms = terms
        self.directions = directions

    def __call__(
        self, branch: Callable[[Tensor], Tensor], z: Float[Tensor, "batch *event"], /
    ) -> tuple[Float[Tensor, "batch *event"], Float[Tensor, " batch"]]:
        return _weighed_series(branch, z, z.new_ones(self.terms, len(z)), self.directions)


class RouletteLogDet:
    """The whole power series without bias, from finitely many terms (Chen et al. 2019).

        Σ_{k=1}^{N} (−1)^{k+1} tr(Jᵏ) / (k P(N ≥ k)),   N = sure + G,   P(G ≥ j) = (1 − stop)ʲ

    The `sure` first terms are always taken; after each, a coin decides whether to stop, for every example by itself.
    A term that is reached seldom counts the more. The variance is finite only if stop < 1 − L².
    """

    def __init__(self, stop: float = 0.5, *, sure: int = 2, directions: Directions = random_signs) -> None:
        if not 0 < stop < 1 or sure < 1:
            raise ValueError(
                f"need a chance to stop inside (0, 1) and at least one sure term; got stop={stop}, sure={sure}"
            )
        self.stop = stop
        self.sure = sure
        self.directions = directions

    def __call__(
        self, branch: Callable[[Tensor], Tensor], z: Float[Tensor, "batch *event"], /
    ) -> tuple[Float[Tensor, "batch *event"], Float[Tensor, " batch"]]:
        further = torch.empty(len(z), device=z.device).geometric_(self.stop) - 1  # G, from 0
        longest = self.sure + int(further.max())
        beyond = (torch.arange(1, longest + 1, device=z.device) - self.sure).clamp(min=0)[:, None]  # j of the term k
        weights = (further >= beyond) / (1 - self.stop) ** beyond
        return _weighed_series(branch, z, weights.to(z.dtype), self.directions)


class InvertibleResidual(nn.Module):
    """x = z + g(z) with a branch g of Lipschitz constant below 1 (book sec. 13.1).

        z = x − g(z), by iteration                  ‖z_k − z‖ ≤ Lᵏ ‖z_0 − z‖
        log |det J| = log det (I + J_g(z))          J_g has no eigenvalue outside the circle of radius L < 1

    Gradients pass both ways: through the inverse by the implicit function theorem, whose equation (I + Jᵀ) u = v is
    solved by the same iteration. To fit a density, put the cheap direction at the data: `Inverted(…)`. The examples of
    a batch must not mix in the branch, as they would in batch normalisation.
    """

    def __init__(self, branch: nn.Module, *, log_det: LogDet = exact_log_det, most: int = 300) -> None:
        super().__init__()
        if most < 1:
            raise ValueError(f"the inverse needs at least one iteration; got most={most}")
        self.branch = branch
        self.log_det = log_det
        self.most = most

    def forward(
        self, z: Float[Tensor, "batch *event"]
    ) -> tuple[Float[Tensor, "batch *event"], Float[Tensor, " batch"]]:
        with parametrize.cached():
            correction, log_det = self.log_det(self.branch, z)
        return z + correction, log_det

    def inverse(
        self, x: Float[Tensor, "batch *event"]
    ) -> tuple[Float[Tensor, "batch *event"], Float[Tensor, " batch"]]:
        z = self._solve(x)
        _, log_det = self(z)
        return z, -log_det

    def _solve(self, x: Tensor) -> Tensor:
        settled = solve_residual(self.branch, x, most=self.most)
        if not torch.is_grad_enabled():
            return settled
        z: Tensor = x - self.branch(settled)
        if z.requires_grad:
            with torch.no_grad():  # the products are needed, not their slopes
                _, pull = with_pullback(self.branch, settled)
            z.register_hook(lambda slope: solve_residual(pull, slope, most=self.most))
        return z.view_as(z)  # who differentiates by z must not meet the hook


def residual_chain(branches: Iterable[nn.Module], *, log_det: LogDet = exact_log_det) -> Chain:
    """Invertible residual maps, one after the other, with these branches."""
    return Chain(InvertibleResidual(branch, log_det=log_det) for branch in branches)


def _weighed_series(
    branch: Callable[[Tensor], Tensor], z: Tensor, weights: Tensor, directions: Directions
) -> tuple[Tensor, Tensor]:
    """g(z) and Σ_k w_k (−1)^{k+1} Σ_d dᵀ Jᵏ d / k, with weights (terms, batch)."""
    value, pull = with_pullback(branch, z)
    log_det = z.new_zeros(len(z))
    for direction in directions(z):
        product = direction
        for k, weight in enumerate(weights, 1):
            product = pull(product)
            log_det = log_det + (-1) ** (k + 1) / k * weight * inner(product, direction)
    return value, log_det
