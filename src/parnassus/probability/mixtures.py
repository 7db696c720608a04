"""Mixtures of Gaussians: density, sampler, responsibilities, and the fit by expectation-maximisation (Diehl sec. 6)."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import log, pi

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.probability.simplex import require_distribution

FEWEST = 1e-8
"""A component with a smaller share of the rows has died: its mean would be a quotient of rounding errors."""


@dataclass(frozen=True)
class GaussianMixture:
    """A component Z drawn by its weight, then a normal X around that component's mean (Diehl ex. 6.3).

        P(Z = i) = φ_i,   X | Z = i ~ N(μ_i, Σ_i),   p(x) = Σ_i φ_i N(x | μ_i, Σ_i)

    φ lies in the simplex and each Σ_i is a positive definite d × d matrix (the text has n × d × d for each).
    """

    weights: Float[Tensor, " components"]
    means: Float[Tensor, "components dim"]
    covariances: Float[Tensor, "components dim dim"]

    def __post_init__(self) -> None:
        require_distribution(self.weights, "weights")
        components, dim = self.means.shape
        if len(self.weights) != components or self.covariances.shape != (components, dim, dim):
            raise ValueError(
                f"need a weight and a {dim} × {dim} covariance for each of {components} means; "
                f"got {len(self.weights)} weights, covariances of shape {tuple(self.covariances.shape)}"
            )
        failed = torch.linalg.cholesky_ex(self.covariances).info != 0
        if not bool(self.means.isfinite().all()) or bool(failed.any()):
            raise ValueError(
                "means must be finite and covariances positive definite; not so for components "
                f"{(failed | ~self.means.isfinite().all(-1)).nonzero()[:, 0].tolist()}: collapsed onto too few points, "
                "or NaN among the numbers"
            )

    @property
    def roots(self) -> Float[Tensor, "components dim dim"]:
        """The Cholesky factors L_i with L_i L_iᵀ = Σ_i."""
        root: Tensor = torch.linalg.cholesky(self.covariances)
        return root

    def log_joint(self, x: Float[Tensor, "count dim"]) -> Float[Tensor, "count components"]:
        """The logarithm of p(x, z = i) = φ_i N(x | μ_i, Σ_i), tractable in larger models too (Diehl ex. 6.3)."""
        roots = self.roots
        white: Tensor = torch.linalg.solve_triangular(roots, (x - self.means[:, None]).mT, upper=False)
        half_log_det = roots.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        constant = self.weights.log() - half_log_det - x.shape[1] * log(2 * pi) / 2
        return constant - white.square().sum(-2).mT / 2  # white is (component, dim, row)

    def log_prob(self, x: Float[Tensor, "count dim"]) -> Float[Tensor, " count"]:
        """The logarithm of Σ_i φ_i N(x | μ_i, Σ_i), by log-sum-exp (Diehl ex. 6.3)."""
        return self.log_joint(x).logsumexp(-1)

    def responsibilities(self, x: Float[Tensor, "count dim"]) -> Float[Tensor, "count components"]:
        """P(Z = i | x), the posterior over components; rows sum to one."""
        return self.log_joint(x).softmax(-1)

    def sample(self, count: int) -> Float[Tensor, "count dim"]:
        """Draw components by their weights, then points around their means."""
        return self.sample_given(torch.multinomial(self.weights, count, replacement=True))

    def sample_given(self, component: Int[Tensor, " count"]) -> Float[Tensor, "count dim"]:
        """A point of each of these components: μ_i + L_i ε with ε ~ N(0, I)."""
        noise = torch.randn(len(component), self.means.shape[1], dtype=self.means.dtype, device=self.means.device)
        return self.means[component] + (self.roots[component] @ noise[..., None])[..., 0]

    def outlines(self, radius: float = 2.0, *, points: int = 73) -> Float[Tensor, "components points 2"]:
        """The ellipses (x − μ_i)ᵀ Σ_i⁻¹ (x − μ_i) = radius² of components in the plane, for a picture."""
        if self.means.shape[1] != 2:
            raise ValueError(f"only components in the plane have outlines; these have {self.means.shape[1]} dimensions")
        angle = torch.linspace(0, 2 * pi, points, dtype=self.means.dtype, device=self.means.device)
        circle = radius * torch.stack([angle.cos(), angle.sin()])
        return self.means[:, None] + (self.roots @ circle).mT

    @classmethod
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
        """The likeliest of `starts` fits by EM, found in float64 and returned in x's own type (Diehl ex. 6.3).

        Each begins at points of x far from one another and ends when a step raises the mean log-likelihood by less than
        `tolerance`. `floor` is added to every variance. A start whose component dies or collapses is left out.
        """
        _require_rows(x, components)
        if not (starts >= 1 and steps >= 1 and floor >= 0):
            raise ValueError(
                f"need starts ≥ 1, steps ≥ 1 and floor ≥ 0; got starts={starts}, steps={steps}, floor={floor}"
            )
        exact, found, complaint = x.double(), [], ""
        for start in range(starts):
            try:
                begin = spread_start(exact, components, seed=seed * starts + start)
                found.append(_climb(exact, begin, steps=steps, tolerance=tolerance, floor=floor))
            except ValueError as error:
                complaint = str(error)
        if not found:
            raise ValueError(f"none of {starts} starts ended well; the last said: {complaint}")
        best = max(found, key=lambda mixture: float(mixture.log_prob(exact).mean()))
        return cls(best.weights.to(x), best.means.to(x), best.covariances.to(x))


def em_step(x: Float[Tensor, "count dim"], mixture: GaussianMixture, *, floor: float = 1e-6) -> GaussianMixture:
    """One step of EM: responsibilities with the old mixture, then the mixture that fits them best (book sec. 6.1).

    r_ni = P(Z = i | x_n)                                               (E: the bound touches the likelihood)
    φ_i  = N_i / N,  N_i = Σ_n r_ni                                     (M: the bound is largest)
    μ_i  = Σ_n r_ni x_n / N_i,  Σ_i = Σ_n r_ni (x_n − μ_i)(x_n − μ_i)ᵀ / N_i + floor · I
    """
    return weighted_moments(x, mixture.responsibilities(x), floor=floor)


def weighted_moments(
    x: Float[Tensor, "count dim"], responsibilities: Float[Tensor, "count components"], *, floor: float = 1e-6
) -> GaussianMixture:
    """The M-step: the mixture whose components have the moments of the rows they answer for (Diehl ex. 6.3).

    Of all mixtures it has the largest `evidence_bound` for these responsibilities when `floor` is 0.
    """
    require_distribution(responsibilities, "responsibilities")
    total = responsibilities.sum(0)
    if not float(total.min()) > FEWEST * len(x):
        dead = (total <= FEWEST * len(x)).nonzero()[:, 0].tolist()
        raise ValueError(f"components {dead} answer for no row any more: take fewer components, or another start")
    means = responsibilities.mT @ x / total[:, None]
    from_mean = x - means[:, None]  # component, row, dim
    spread = (responsibilities.mT[..., None] * from_mean).mT @ from_mean / total[:, None, None]
    return GaussianMixture(
        total / total.sum(), means, spread + floor * torch.eye(x.shape[1], dtype=x.dtype, device=x.device)
    )


def evidence_bound(
    x: Float[Tensor, "count dim"], responsibilities: Float[Tensor, "count components"], mixture: GaussianMixture
) -> Float[Tensor, " count"]:
    """E_r[log p(x, z)] + H(r) ≤ log p(x), which both halves of an EM step raise (book eq. 6.11, its sign mended).

    It falls short of log p(x) by KL(r ‖ P(Z | x)), so by nothing after the E-step.
    """
    require_distribution(responsibilities, "responsibilities")
    energy = torch.where(responsibilities > 0, responsibilities * mixture.log_joint(x), 0)
    return (energy - torch.xlogy(responsibilities, responsibilities)).sum(-1)


def em_path(x: Float[Tensor, "count dim"], start: GaussianMixture, *, floor: float = 1e-6) -> Iterator[GaussianMixture]:
    """The start and then, without end, the mixture after each further step of EM."""
    mixture = start
    while True:
        yield mixture
        mixture = em_step(x, mixture, floor=floor)


def spread_start(x: Float[Tensor, "count dim"], components: int, *, seed: int = 0) -> GaussianMixture:
    """Means at rows far apart, equal weights, and for all the covariance of the rows around their nearest mean.

    Each further mean is a row drawn in proportion to its squared distance from those chosen (Arthur and Vassilvitskii
    2007).
    """
    _require_rows(x, components)
    source = torch.Generator().manual_seed(seed)
    chosen = [int(torch.randint(len(x), (1,), generator=source))]
    nearest = (x - x[chosen[0]]).square().sum(-1)
    for _ in range(components - 1):
        chance = nearest.cpu() if bool((nearest > 0).any()) else torch.ones(len(x))  # all rows alike: any will do
        chosen.append(int(torch.multinomial(chance, 1, generator=source)))
        nearest = torch.minimum(nearest, (x - x[chosen[-1]]).square().sum(-1))
    residual = x - x[chosen][torch.cdist(x, x[chosen]).argmin(1)]
    covariance = residual.mT @ residual / len(x)
    floor = 1e-3 * covariance.diagonal().mean().clamp(min=1e-3)
    covariance = covariance + floor * torch.eye(x.shape[1], dtype=x.dtype, device=x.device)
    weights = x.new_full((components,), 1 / components)
    return GaussianMixture(weights, x[chosen], covariance.expand(components, -1, -1))


def _climb(x: Tensor, mixture: GaussianMixture, *, steps: int, tolerance: float, floor: float) -> GaussianMixture:
    """EM from `mixture` on, with one look at the data a step for both the likelihood and the responsibilities."""
    before = -torch.inf
    for _ in range(steps):
        log_joint = mixture.log_joint(x)
        height = float(log_joint.logsumexp(-1).mean())
        if height - before < tolerance:
            break
        before, mixture = height, weighted_moments(x, log_joint.softmax(-1), floor=floor)
    return mixture


def _require_rows(x: Tensor, components: int) -> None:
    if not 1 <= components <= len(x):
        raise ValueError(f"components must lie between 1 and the number of rows; got {components} of {len(x)}")
    if not bool(x.isfinite().all()):
        raise ValueError(f"the rows must be finite; {int((~x.isfinite()).sum())} numbers are NaN or infinite")
