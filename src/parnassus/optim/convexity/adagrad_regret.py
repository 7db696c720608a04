"""Regret bound of full-matrix AdaGrad, with every term of its proof (book sec. 3.3.1)."""

from dataclasses import dataclass
from math import sqrt

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.optim.optimisers.adagrad import inverse_root
from parnassus.optim.optimisers.averaged_sgd import Subgradient, averaged_sgd, biased_coin, coin_subgradient


def weighted_squared_norm(
    v: Float[Tensor, "*batch dim"], matrix: Float[Tensor, "*batch dim dim"]
) -> Float[Tensor, "*batch"]:
    """‖v‖²_A = vᵀAv (book sec. 3.3.1)."""
    return (v * (matrix @ v[..., None])[..., 0]).sum(-1)


@dataclass(frozen=True)
class AdaGradTrajectory:
    """A run of AdaGrad with all quantities of its regret bound; row t belongs to step t = 0, …, T − 1.

    >>> run = AdaGradTrajectory.compute(lambda t, w: 2 * w, torch.tensor([1.0, 2.0]), steps=3, learning_rate=0.5)
    >>> run.path.shape
    torch.Size([4, 2])
    """

    path: Float[Tensor, "points dim"]  # w⁽⁰⁾, …, w⁽ᵀ⁾
    gradients: Float[Tensor, "steps dim"]
    roots: Float[Tensor, "steps dim dim"]  # G⁽ᵗ⁾ = (Σ_{i≤t} g_i g_iᵀ)^½
    inverses: Float[Tensor, "steps dim dim"]  # pseudo-inverses of the roots: the first G has rank one
    learning_rate: float

    @classmethod
    def compute(
        cls, subgradient: Subgradient, start: Float[Tensor, " dim"], *, learning_rate: float, steps: int
    ) -> "AdaGradTrajectory":
        """w⁽ᵗ⁺¹⁾ = w⁽ᵗ⁾ − η (G⁽ᵗ⁾)⁻¹ g_t with G⁽ᵗ⁾ = (Σ_{i≤t} g_i g_iᵀ)^½ (book eqs. 3.34-3.35)."""
        if not learning_rate > 0 or steps < 1:
            raise ValueError(f"need learning_rate > 0 and steps ≥ 1; got learning_rate={learning_rate}, steps={steps}")
        path, gradients, roots, inverses = [start], [], [], []
        total = torch.zeros(len(start), len(start), dtype=start.dtype)
        for t in range(steps):
            gradient = subgradient(t, path[-1])
            total = total + torch.outer(gradient, gradient)
            inverse = inverse_root(total, cutoff=1e-14)
            path.append(path[-1] - learning_rate * inverse @ gradient)
            gradients.append(gradient)
            roots.append(total @ inverse)  # S (S^½)⁺ = S^½
            inverses.append(inverse)
        return cls(torch.stack(path), torch.stack(gradients), torch.stack(roots), torch.stack(inverses), learning_rate)

    @property
    def traces(self) -> Float[Tensor, " steps"]:
        """The traces of G⁽ᵗ⁾, in terms of which every bound is stated."""
        return self.roots.diagonal(dim1=-2, dim2=-1).sum(-1)

    def linearised_regret(self, target: Float[Tensor, " dim"]) -> Float[Tensor, " steps"]:
        """g_tᵀ (w⁽ᵗ⁾ − w*), by convexity at least f_t(w⁽ᵗ⁾) − f_t(w*) (book eq. 3.53)."""
        return (self.gradients * (self.path[:-1] - target)).sum(-1)

    def distance_decreases(self, target: Float[Tensor, " dim"]) -> Float[Tensor, " steps"]:
        """‖w⁽ᵗ⁾ − w*‖²_G − ‖w⁽ᵗ⁺¹⁾ − w*‖²_G with G = G⁽ᵗ⁾ (book eq. 3.52)."""
        return weighted_squared_norm(self.path[:-1] - target, self.roots) - weighted_squared_norm(
            self.path[1:] - target, self.roots
        )

    def preconditioned_norms(self) -> Float[Tensor, " steps"]:
        """‖g_t‖² in the norm of (G⁽ᵗ⁾)⁻¹ (book eq. 3.52)."""
        return weighted_squared_norm(self.gradients, self.inverses)

    def diameter(self, target: Float[Tensor, " dim"]) -> float:
        """The smallest D with ‖w⁽ᵗ⁾ − w*‖ ≤ D for all t (book eq. 3.57)."""
        return float(torch.linalg.vector_norm(self.path - target, dim=-1).max())

    def distance_bound(self, diameter: float) -> Float[Tensor, " steps"]:
        """D² tr G⁽ᵗ⁾ ≥ the sum of `distance_decreases` up to t (book eqs. 3.57-3.62)."""
        return diameter**2 * self.traces

    def preconditioned_norm_bound(self) -> Float[Tensor, " steps"]:
        """2 tr G⁽ᵗ⁾ ≥ the sum of `preconditioned_norms` up to t (book ex. 3.4).

        tr X^½ is concave, so gᵀG⁻¹g ≤ 2 (tr G⁽ᵗ⁾ − tr G⁽ᵗ⁻¹⁾); the sum over t telescopes.
        """
        return 2 * self.traces

    def regret_bound(self, diameter: float) -> Float[Tensor, " steps"]:
        """(D²/(2η) + η) tr G⁽ᵗ⁾ ≥ Σ_{i≤t} (f_i(w⁽ⁱ⁾) − f_i(w*)) (book eqs. 3.64-3.65).

        η = D gives (3/2) D tr G; the optimal learning rate, η = D/√2, gives √2 D tr G.
        """
        return (diameter**2 / (2 * self.learning_rate) + self.learning_rate) * self.traces


def lipschitz_trace_bound(t: Float[Tensor, " steps"], *, lipschitz: float, dim: int) -> Float[Tensor, " steps"]:
    """ρ√(d t) ≥ tr G after t gradients of norm at most ρ: the mean regret decays as 1/√t (book sec. 3.3.1)."""
    return lipschitz * (dim * t).sqrt()


def smooth_regret_bound(*, beta: float, dim: int, diameter: float) -> float:
    """(9/2) βdD² ≥ the total regret S, for exact gradients of a β-smooth f and η = D (book sec. 3.3.1).

    S ≤ (3/2) D tr G and tr G ≤ √(d Σ‖g‖²) ≤ √(2βd S); this makes the mean regret O(1/T).
    """
    return 4.5 * beta * dim * diameter**2


def biased_coin_error(steps: int, *, runs: int, generator: torch.Generator) -> Float[Tensor, ""]:
    """Mean suboptimality of AdaGrad's mean iterate on the biased-coin problem (bias 1/√T), η = R = 1.

    Gradients are ±1, so that G⁽ᵗ⁾ = √(t + 1) in every run, and runs can be batched.
    """
    bias = steps**-0.5
    problem, subgradient = biased_coin(bias), coin_subgradient(bias, generator=generator)
    start = problem.start.repeat(runs, 1)
    mean = averaged_sgd(lambda t, w: subgradient(t, w) / sqrt(t + 1), start, learning_rate=1.0, steps=steps)
    return problem.excess(mean).mean()
