"""Gaussian mixtures: density, sampling, responsibilities, and fitting by expectation-maximisation (Diehl sec. 6)."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import log, pi

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.arrays import accepts_arrays
from parnassus.probability.distributions.simplex import check_distribution
from parnassus.short_repr import short_repr

MIN_FRACTION = 1e-8
"""Components with a smaller fraction of the rows are rejected: their moments would be dominated by rounding."""


@dataclass(frozen=True)
class GaussianMixture:
    """A mixture of Gaussians with categorical component Z (Diehl ex. 6.3).

        P(Z = i) = φ_i,   X | Z = i ~ N(μ_i, Σ_i),   p(x) = Σ_i φ_i N(x | μ_i, Σ_i)

    φ lies in the simplex and each Σ_i is a positive definite d × d matrix (the notes print n × d × d for each).

    >>> mixture = GaussianMixture(torch.tensor([0.5, 0.5]), torch.tensor([[0.0], [4.0]]), torch.ones(2, 1, 1))
    >>> mixture.responsibilities(torch.tensor([[2.0]]))
    tensor([[0.5000, 0.5000]])
    """

    weights: Float[Tensor, " components"]
    means: Float[Tensor, "components dim"]
    covariances: Float[Tensor, "components dim dim"]

    __repr__ = short_repr

    def __post_init__(self) -> None:
        check_distribution(self.weights, "weights")
        components, dim = self.means.shape
        if len(self.weights) != components or self.covariances.shape != (components, dim, dim):
            raise ValueError(
                f"need one weight and one {dim} × {dim} covariance per mean; got {components} means, "
                f"{len(self.weights)} weights, covariances of shape {tuple(self.covariances.shape)}"
            )
        failed = torch.linalg.cholesky_ex(self.covariances).info != 0
        if not bool(self.means.isfinite().all()) or bool(failed.any()):
            raise ValueError(
                "means must be finite and covariances positive definite; they are not for components "
                f"{(failed | ~self.means.isfinite().all(-1)).nonzero()[:, 0].tolist()} (collapsed onto too few points, "
                "or NaN)"
            )

    @property
    def roots(self) -> Float[Tensor, "components dim dim"]:
        """The Cholesky factors L_i with L_i L_iᵀ = Σ_i."""
        root: Tensor = torch.linalg.cholesky(self.covariances)
        return root

    def log_joint(self, x: Float[Tensor, "count dim"]) -> Float[Tensor, "count components"]:
        """The logarithm of p(x, z = i) = φ_i N(x | μ_i, Σ_i) (Diehl ex. 6.3)."""
        roots = self.roots
        whitened: Tensor = torch.linalg.solve_triangular(roots, (x - self.means[:, None]).mT, upper=False)
        half_log_det = roots.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        constant = self.weights.log() - half_log_det - x.shape[1] * log(2 * pi) / 2
        return constant - whitened.square().sum(-2).mT / 2  # whitened is (component, dim, row)

    @accepts_arrays
    def log_prob(self, x: Float[Tensor, "count dim"]) -> Float[Tensor, " count"]:
        """The logarithm of Σ_i φ_i N(x | μ_i, Σ_i), by log-sum-exp (Diehl ex. 6.3)."""
        return self.log_joint(x).logsumexp(-1)

    @accepts_arrays
    def responsibilities(self, x: Float[Tensor, "count dim"]) -> Float[Tensor, "count components"]:
        """P(Z = i | x), the posterior over components; rows sum to one."""
        return self.log_joint(x).softmax(-1)

    def sample(self, count: int) -> Float[Tensor, "count dim"]:
        """Sample components by their weights, then points from those components."""
        return self.sample_given(torch.multinomial(self.weights, count, replacement=True))

    def sample_given(self, component: Int[Tensor, " count"]) -> Float[Tensor, "count dim"]:
        """One sample from each of these components: μ_i + L_i ε with ε ~ N(0, I)."""
        noise = torch.randn(len(component), self.means.shape[1], dtype=self.means.dtype, device=self.means.device)
        return self.means[component] + (self.roots[component] @ noise[..., None])[..., 0]

    def ellipses(self, radius: float = 2.0, *, points: int = 73) -> Float[Tensor, "components points 2"]:
        """The ellipses (x − μ_i)ᵀ Σ_i⁻¹ (x − μ_i) = radius² of two-dimensional components, for plotting."""
        if self.means.shape[1] != 2:
            raise ValueError(f"ellipses need two-dimensional components; got {self.means.shape[1]} dimensions")
        angle = torch.linspace(0, 2 * pi, points, dtype=self.means.dtype, device=self.means.device)
        circle = radius * torch.stack([angle.cos(), angle.sin()])
        return self.means[:, None] + (self.roots @ circle).mT

    @classmethod
    @accepts_arrays
    def fit(
        cls,
        x: Float[Tensor, "count dim"],
        components: int,
        *,
        starts: int = 5,
        steps: int = 200,
        tolerance: float = 1e-7,
        floor: float = 1e-6,
        seed: int = 0,
    ) -> "GaussianMixture":
        """Fit by EM, keeping the best of `starts` runs; computed in float64, returned in x's dtype (Diehl ex. 6.3).

        Each run starts from `kmeans_plus_plus_start` and stops when a step increases the mean log-likelihood by less
        than `tolerance`. `floor` is added to every variance. Runs with a degenerate component are discarded.
        """
        _check_rows(x, components)
        if not (starts >= 1 and steps >= 1 and floor >= 0):
            raise ValueError(
                f"need starts ≥ 1, steps ≥ 1 and floor ≥ 0; got starts={starts}, steps={steps}, floor={floor}"
            )
        exact, fits, message = x.double(), [], ""
        for start in range(starts):
            try:
                initial = kmeans_plus_plus_start(exact, components, seed=seed * starts + start)
                fits.append(_run_em(exact, initial, steps=steps, tolerance=tolerance, floor=floor))
            except ValueError as error:
                message = str(error)
        if not fits:
            raise ValueError(f"none of {starts} starts converged; the last error was: {message}")
        best = max(fits, key=lambda mixture: float(mixture.log_prob(exact).mean()))
        return cls(best.weights.to(x), best.means.to(x), best.covariances.to(x))


def em_step(x: Float[Tensor, "count dim"], mixture: GaussianMixture, *, floor: float = 1e-6) -> GaussianMixture:
    """One EM step: responsibilities under the current mixture, then its weighted moments (book sec. 6.1).

    r_ni = P(Z = i | x_n)                                               (E: the ELBO equals the log-likelihood)
    φ_i  = N_i / N,  N_i = Σ_n r_ni                                     (M: maximises the ELBO)
    μ_i  = Σ_n r_ni x_n / N_i,  Σ_i = Σ_n r_ni (x_n − μ_i)(x_n − μ_i)ᵀ / N_i + floor · I
    """
    return m_step(x, mixture.responsibilities(x), floor=floor)


def m_step(
    x: Float[Tensor, "count dim"], responsibilities: Float[Tensor, "count components"], *, floor: float = 1e-6
) -> GaussianMixture:
    """The M-step: the mixture with the weighted moments of the rows (Diehl ex. 6.3).

    It maximises `mixture_elbo` for these responsibilities if `floor` is 0.
    """
    check_distribution(responsibilities, "responsibilities")
    total = responsibilities.sum(0)
    if not float(total.min()) > MIN_FRACTION * len(x):
        empty = (total <= MIN_FRACTION * len(x)).nonzero()[:, 0].tolist()
        raise ValueError(f"components {empty} have no responsibility left: use fewer components or another start")
    means = responsibilities.mT @ x / total[:, None]
    centred = x - means[:, None]  # component, row, dim
    covariances = (responsibilities.mT[..., None] * centred).mT @ centred / total[:, None, None]
    return GaussianMixture(
        total / total.sum(), means, covariances + floor * torch.eye(x.shape[1], dtype=x.dtype, device=x.device)
    )


def mixture_elbo(
    x: Float[Tensor, "count dim"], responsibilities: Float[Tensor, "count components"], mixture: GaussianMixture
) -> Float[Tensor, " count"]:
    """E_r[log p(x, z)] + H(r) ≤ log p(x), increased by both halves of an EM step (book eq. 6.11, sign corrected).

    The gap to log p(x) is KL(r ‖ P(Z | x)), which is 0 after the E-step.
    """
    check_distribution(responsibilities, "responsibilities")
    energy = torch.where(responsibilities > 0, responsibilities * mixture.log_joint(x), 0)
    return (energy - torch.xlogy(responsibilities, responsibilities)).sum(-1)


def em_iterates(
    x: Float[Tensor, "count dim"], start: GaussianMixture, *, floor: float = 1e-6
) -> Iterator[GaussianMixture]:
    """Yield the start, then the mixture after each EM step, indefinitely."""
    mixture = start
    while True:
        yield mixture
        mixture = em_step(x, mixture, floor=floor)


def kmeans_plus_plus_start(x: Float[Tensor, "count dim"], components: int, *, seed: int = 0) -> GaussianMixture:
    """k-means++ initialisation: means at distant rows, equal weights and one shared covariance.

    Each further mean is a row drawn with probability proportional to its squared distance from the nearest mean
    (Arthur and Vassilvitskii 2007); the covariance is that of the rows around their nearest mean.
    """
    _check_rows(x, components)
    generator = torch.Generator().manual_seed(seed)
    chosen = [int(torch.randint(len(x), (1,), generator=generator, device="cpu"))]
    nearest = (x - x[chosen[0]]).square().sum(-1)
    for _ in range(components - 1):
        all_equal = not bool((nearest > 0).any())
        weights = torch.ones(len(x), device="cpu") if all_equal else nearest.cpu()
        chosen.append(int(torch.multinomial(weights, 1, generator=generator)))
        nearest = torch.minimum(nearest, (x - x[chosen[-1]]).square().sum(-1))
    residual = x - x[chosen][torch.cdist(x, x[chosen], compute_mode="donot_use_mm_for_euclid_dist").argmin(1)]
    covariance = residual.mT @ residual / len(x)
    floor = 1e-3 * covariance.diagonal().mean().clamp(min=1e-3)
    covariance = covariance + floor * torch.eye(x.shape[1], dtype=x.dtype, device=x.device)
    return GaussianMixture(x.new_full((components,), 1 / components), x[chosen], covariance.expand(components, -1, -1))


def _run_em(x: Tensor, mixture: GaussianMixture, *, steps: int, tolerance: float, floor: float) -> GaussianMixture:
    """EM from `mixture` until convergence; one pass per step gives both likelihood and responsibilities."""
    previous = -torch.inf
    for _ in range(steps):
        log_joint = mixture.log_joint(x)
        log_likelihood = float(log_joint.logsumexp(-1).mean())
        if log_likelihood - previous < tolerance:
            break
        previous, mixture = log_likelihood, m_step(x, log_joint.softmax(-1), floor=floor)
    return mixture


def _check_rows(x: Tensor, components: int) -> None:
    if not 1 <= components <= len(x):
        raise ValueError(
            f"components must lie between 1 and the number of rows; got components={components}, {len(x)} rows"
        )
    if not bool(x.isfinite().all()):
        raise ValueError(f"x must be finite; {int((~x.isfinite()).sum())} values are NaN or infinite")


def five_gaussians() -> GaussianMixture:
    """Five Gaussians of different weights, scales and orientations."""
    means = torch.tensor([[-3.0, 2.0], [-2.0, -2.0], [0.5, 0.5], [3.0, 2.5], [3.0, -2.0]], dtype=torch.float64)
    deviations = torch.tensor([[0.9, 0.5], [1.1, 0.4], [0.4, 0.4], [0.5, 1.0], [1.0, 0.6]], dtype=torch.float64)
    angle = torch.tensor([0.6, -0.4, 0.0, 0.3, 0.9], dtype=torch.float64)
    rotation = torch.stack(
        [torch.stack([angle.cos(), -angle.sin()], -1), torch.stack([angle.sin(), angle.cos()], -1)], 1
    )
    covariances = rotation @ torch.diag_embed(deviations.square()) @ rotation.mT
    return GaussianMixture(torch.tensor([0.25, 0.2, 0.1, 0.2, 0.25], dtype=torch.float64), means, covariances)
