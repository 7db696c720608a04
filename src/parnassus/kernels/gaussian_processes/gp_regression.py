"""Gaussian-process regression: condition a prior over functions on noisy values (book sec. 15.1)."""

from dataclasses import dataclass
from math import log, pi
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.arrays import accepts_arrays
from parnassus.kernels.gaussian_processes.covariance import Kernel
from parnassus.kernels.solvers.jittered_cholesky import jittered_cholesky
from parnassus.probability.distributions.gaussian import Gaussian, symmetrise
from parnassus.probability.distributions.gaussian_conditioning import clip_rounded_eigenvalues
from parnassus.short_repr import short_repr


class GPPrediction(NamedTuple):
    """Predictive moments of the value y(x) and of a noisy target t = y(x) + ε at each of m points.

    >>> ones = torch.ones(5)
    >>> GPPrediction(mean=torch.zeros(5, 1), variance=ones, target_variance=1.1 * ones).mean.shape
    torch.Size([5, 1])
    """

    mean: Float[Tensor, "m *outputs"]
    variance: Float[Tensor, " m"]
    """Var(y | t_N), without noise."""
    target_variance: Float[Tensor, " m"]
    """Var(t | t_N) = Var(y | t_N) + σ²."""


@dataclass(frozen=True)
class GPRegression:
    """The posterior of y ~ GP(0, K) after t = y(x) + ε with ε ~ N(0, σ²) is observed at N points (book sec. 15.1).

        p(t_N) = N(0, L_N),   L_N = K_N + σ² I                                              (book eqs. 15.4-15.5)
        E[y | t_N]   = k_Nᵀ L_N⁻¹ t_N,   k_N = (K(x_n, x))                                  (book eq. 15.9)
        Var(y | t_N) = K(x, x) − k_Nᵀ L_N⁻¹ k_N                                             (book eq. 15.10)
        Var(t | t_N) = Var(y | t_N) + σ²

    The book calls eq. 15.10 the variance of t and omits σ². Targets may have several columns: independent outputs with
    the same kernel, which share their variances. `noise_variance` is σ².

    >>> x = torch.tensor([[0.0], [1.0]], dtype=torch.float64)
    >>> model = GPRegression.fit(RBFKernel().double(), x, x, noise_variance=1e-6)
    >>> model.predict(x).mean.detach().round(decimals=2).flatten().tolist()
    [0.0, 1.0]
    """

    kernel: Kernel
    x: Float[Tensor, "n dim"]
    t: Float[Tensor, "n *outputs"]
    noise_variance: Float[Tensor, ""]
    root: Float[Tensor, "n n"]
    """Lower-triangular R with R Rᵀ = L_N + jitter I."""
    weights: Float[Tensor, "n *outputs"]
    """L_N⁻¹ t_N: the mean is a sum of kernels centred at the training points with these weights."""
    jitter: float

    __repr__ = short_repr

    @classmethod
    @accepts_arrays
    def fit(
        cls,
        kernel: Kernel,
        x: Float[Tensor, "n dim"],
        t: Float[Tensor, "rows *outputs"],
        *,
        noise_variance: float | Float[Tensor, ""] = 0.0,
    ) -> "GPRegression":
        """Factorise L_N once. Without noise the mean interpolates the targets; `jitter` reports what was added."""
        check_training_data(x, t)
        variance = torch.as_tensor(noise_variance, dtype=x.dtype, device=x.device)
        if not 0 <= float(variance.detach()) < torch.inf:
            raise ValueError(
                f"noise_variance must be finite and non-negative; got noise_variance={float(variance.detach())}"
            )
        root, jitter = jittered_cholesky(kernel(x) + variance * torch.eye(len(x), dtype=x.dtype, device=x.device))
        return cls(kernel, x, t, variance, root, _solve(root, t), jitter)

    @accepts_arrays
    @torch.no_grad()
    def predict(self, x: Float[Tensor, "m size"]) -> GPPrediction:
        """Mean and variances at each point x alone (book eqs. 15.9-15.10, with σ² for targets)."""
        k = self.kernel(self.x, x)
        explained = torch.linalg.solve_triangular(self.root, k, upper=False).square().sum(0)
        variance = (self.kernel.diagonal(x) - explained).clamp(min=0)  # rounding may make it negative
        return GPPrediction(_weighted_sums(k, self.weights), variance, variance + self.noise_variance)

    @accepts_arrays
    def posterior(self, x: Float[Tensor, "m size"]) -> Gaussian:
        """Joint distribution of the noise-free values at all points x; one batch entry per output.

        Cov(y, y′ | t_N) = K(x, x′) − k_Nᵀ L_N⁻¹ k′_N
        """
        k = self.kernel(self.x, x)
        whitened = torch.linalg.solve_triangular(self.root, k, upper=False)
        mean = _weighted_sums(k, self.weights)
        prior = self.kernel(x).detach()
        covariance = symmetrise(prior - (whitened.mT @ whitened).detach())
        return Gaussian(mean.movedim(0, -1).detach(), clip_rounded_eigenvalues(covariance, prior))

    def log_marginal_likelihood(self) -> Float[Tensor, ""]:
        """The log marginal likelihood (evidence) log p(t_N), summed over outputs (book eq. 15.4).

        log p(t_N) = −½ t_Nᵀ L_N⁻¹ t_N − ½ log det L_N − ½ N log 2π
        """
        outputs = self.t[0].numel()
        half_log_det: Tensor = self.root.diagonal().log().sum()
        return -(self.t * self.weights).sum() / 2 - outputs * (half_log_det + len(self.t) * log(2 * pi) / 2)

    @torch.no_grad()
    def leave_one_out(self) -> GPPrediction:
        """Leave-one-out predictions at the training points, without refitting.

            E[t_i | t_{−i}] = t_i − (L⁻¹t)_i / (L⁻¹)_ii,   Var(t_i | t_{−i}) = 1 / (L⁻¹)_ii

        (Rasmussen & Williams 2006, sec. 5.4).
        """
        target_variance = 1 / torch.cholesky_inverse(self.root).diagonal()
        shape = (-1, *[1] * (self.t.ndim - 1))
        mean = self.t - self.weights * target_variance.view(shape)
        return GPPrediction(mean, (target_variance - self.noise_variance).clamp(min=0), target_variance)


def check_training_data(x: Float[Tensor, "n *shape"], t: Float[Tensor, "rows *outputs"]) -> None:
    """Raise a ValueError unless there is one target per point, at least one of each, all finite."""
    if len(x) != len(t) or not len(x):
        raise ValueError(f"x and t need the same positive length; got {len(x)} points, {len(t)} targets")
    if not bool(x.isfinite().all() and t.isfinite().all()):
        raise ValueError("x and t must be finite; got NaN or ∞")


def _solve(root: Float[Tensor, "n n"], t: Float[Tensor, "n *outputs"]) -> Float[Tensor, "n *outputs"]:
    solution: Tensor = torch.cholesky_solve(t.reshape(len(t), -1), root)
    return solution.reshape(t.shape)


def _weighted_sums(k: Float[Tensor, "n m"], weights: Float[Tensor, "n *outputs"]) -> Float[Tensor, "m *outputs"]:
    """Σ_n K(x_n, x) weights_n at each of m points x."""
    sums: Tensor = torch.tensordot(k, weights, dims=([0], [0]))
    return sums
