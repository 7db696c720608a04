"""Residual flows z + g(z) with a contraction g (book sec. 13.1; Behrmann et al. 2019, Chen et al. 2019)."""

from collections.abc import Callable, Iterable
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils import parametrize

from parnassus.errors import check_at_least_one
from parnassus.flows.flow import Chain
from parnassus.flows.residual.jacobian_traces import (
    Directions,
    inner_product,
    rademacher_directions,
    unit_directions,
    value_and_vjp,
)
from parnassus.flows.residual.lipschitz_networks import invert_residual


@runtime_checkable
class LogDetEstimator(Protocol):
    """A way to compute or estimate log |det (I + J_g(z))|."""

    def __call__(self, branch: Callable[[Tensor], Tensor], z: Tensor, /) -> tuple[Tensor, Tensor]:
        """Return g(z) and the log-determinant for each example."""
        ...


def exact_log_det(
    branch: Callable[[Tensor], Tensor], z: Float[Tensor, "batch *event"]
) -> tuple[Float[Tensor, "batch *event"], Float[Tensor, " batch"]]:
    """From the full Jacobian, with one vector-Jacobian product per coordinate; for low dimensions."""
    value, vjp = value_and_vjp(branch, z)
    rows = torch.stack([vjp(direction).flatten(1) for direction in unit_directions(z)], 1)
    identity = torch.eye(rows.shape[-1], dtype=z.dtype, device=z.device)
    return value, torch.linalg.slogdet(identity + rows).logabsdet


class PowerSeriesLogDet:
    """The first `terms` of the power series of log det (I + J), which converges because ‖J‖ ≤ L < 1.

        log det (I + J) = Σ_{k≥1} (−1)^{k+1} tr(Jᵏ) / k
        |remainder after n terms| ≤ D Lⁿ⁺¹ / ((n + 1) (1 − L))

    By default traces are estimated with one vector of random signs. Truncation makes the estimate biased.

    >>> branch = nn.Linear(2, 2, bias=False)
    >>> _ = nn.init.constant_(branch.weight, 0.25)
    >>> InvertibleResidual(branch, log_det=PowerSeriesLogDet(terms=8))(torch.ones(1, 2))[0].tolist()
    [[1.5, 1.5]]
    """

    def __init__(self, terms: int, *, directions: Directions = rademacher_directions) -> None:
        check_at_least_one(terms=terms)
        self.terms = terms
        self.directions = directions

    def __call__(
        self, branch: Callable[[Tensor], Tensor], z: Float[Tensor, "batch *event"], /
    ) -> tuple[Float[Tensor, "batch *event"], Float[Tensor, " batch"]]:
        return _weighted_series(branch, z, z.new_ones(self.terms, len(z)), self.directions)


class RussianRouletteLogDet:
    """The power series by the unbiased Russian-roulette estimator (Chen et al. 2019).

        Σ_{k=1}^{N} (−1)^{k+1} tr(Jᵏ) / (k P(N ≥ k)),   N = min_terms + G,   P(G ≥ j) = (1 − p)ʲ

    After `min_terms` terms the series of each example ends with probability p = `stop_probability` per term; terms are
    weighted by the inverse probability of being reached. The variance is finite only if p < 1 − L².

    >>> branch = nn.Linear(2, 2, bias=False)
    >>> _ = nn.init.constant_(branch.weight, 0.25)
    >>> InvertibleResidual(branch, log_det=RussianRouletteLogDet())(torch.ones(1, 2))[0].tolist()
    [[1.5, 1.5]]
    """

    def __init__(
        self, stop_probability: float = 0.5, *, min_terms: int = 2, directions: Directions = rademacher_directions
    ) -> None:
        if not 0 < stop_probability < 1 or min_terms < 1:
            raise ValueError(
                "stop_probability must lie inside (0, 1) and min_terms be at least 1; got "
                f"stop_probability={stop_probability}, min_terms={min_terms}"
            )
        self.stop_probability = stop_probability
        self.min_terms = min_terms
        self.directions = directions

    def __call__(
        self, branch: Callable[[Tensor], Tensor], z: Float[Tensor, "batch *event"], /
    ) -> tuple[Float[Tensor, "batch *event"], Float[Tensor, " batch"]]:
        extra_terms = torch.empty(len(z), device=z.device).geometric_(self.stop_probability) - 1  # G, from 0
        num_terms = self.min_terms + int(extra_terms.max())
        k = torch.arange(1, num_terms + 1, dtype=z.dtype, device=z.device)[:, None]
        beyond = (k - self.min_terms).clamp(min=0)  # j of term k
        weights = (extra_terms >= beyond) / (1 - self.stop_probability) ** beyond
        return _weighted_series(branch, z, weights, self.directions)


class InvertibleResidual(nn.Module):
    """x = z + g(z) with a branch g of Lipschitz constant below 1 (book sec. 13.1).

        z = x − g(z), by iteration                  ‖z_k − z‖ ≤ Lᵏ ‖z_0 − z‖
        log |det J| = log det (I + J_g(z))          eigenvalues of J_g have modulus at most L < 1

    Both directions are differentiable; the inverse by the implicit function theorem, whose equation (I + Jᵀ) u = v is
    solved by the same iteration. For maximum likelihood use `InverseTransform(…)`, which makes the density the cheap
    direction. The branch must act on every example independently, which excludes batch normalisation.

    >>> branch = nn.Linear(2, 2, bias=False)
    >>> _ = nn.init.constant_(branch.weight, 0.25)
    >>> InvertibleResidual(branch)(torch.ones(1, 2))[0].tolist()
    [[1.5, 1.5]]
    """

    def __init__(
        self, branch: nn.Module, *, log_det: LogDetEstimator = exact_log_det, max_iterations: int = 300
    ) -> None:
        super().__init__()
        check_at_least_one(max_iterations=max_iterations)
        self.branch = branch
        self.log_det = log_det
        self.max_iterations = max_iterations

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
        solution = invert_residual(self.branch, x, max_iterations=self.max_iterations)
        if not torch.is_grad_enabled():
            return solution
        z: Tensor = x - self.branch(solution)
        if z.requires_grad:
            with torch.no_grad():  # the products themselves need no gradient
                _, vjp = value_and_vjp(self.branch, solution)
            z.register_hook(lambda gradient: invert_residual(vjp, gradient, max_iterations=self.max_iterations))
        return z.view_as(z)  # gradients with respect to z must not trigger the hook


def residual_flow(branches: Iterable[nn.Module], *, log_det: LogDetEstimator = exact_log_det) -> Chain:
    """A chain of invertible residual maps with the given branches."""
    return Chain(InvertibleResidual(branch, log_det=log_det) for branch in branches)


def _weighted_series(
    branch: Callable[[Tensor], Tensor], z: Tensor, weights: Tensor, directions: Directions
) -> tuple[Tensor, Tensor]:
    """g(z) and Σ_k w_k (−1)^{k+1} Σ_d dᵀ Jᵏ d / k, with weights (terms, batch)."""
    value, vjp = value_and_vjp(branch, z)
    log_det = z.new_zeros(len(z))
    for direction in directions(z):
        product = direction
        for k, weight in enumerate(weights, 1):
            product = vjp(product)
            log_det = log_det + (-1) ** (k + 1) / k * weight * inner_product(product, direction)
    return value, log_det
