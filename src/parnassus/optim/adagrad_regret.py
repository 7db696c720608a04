"""The regret of AdaGrad with the full matrix, term by term as its proof goes (book sec. 3.3.1)."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.optim.adagrad import inverse_root
from parnassus.optim.averaging import Slope


def squared_norm(v: Float[Tensor, "*batch dim"], matrix: Float[Tensor, "*batch dim dim"]) -> Float[Tensor, "*batch"]:
    """‖v‖²_A = vᵀAv (book sec. 3.3.1)."""
    return (v * (matrix @ v[..., None])[..., 0]).sum(-1)


@dataclass(frozen=True)
class AdaGradRun:
    """A run of AdaGrad with everything that its regret bound speaks of; row t belongs to step t = 0, …, T − 1."""

    path: Float[Tensor, "places dim"]  # w⁽⁰⁾, …, w⁽ᵀ⁾
    gradients: Float[Tensor, "steps dim"]
    roots: Float[Tensor, "steps dim dim"]  # G⁽ᵗ⁾ = (Σ_{i≤t} g_i g_iᵀ)^½
    inverses: Float[Tensor, "steps dim dim"]  # their pseudo-inverses: the first G has rank one
    rate: float

    @classmethod
    def follow(cls, slope: Slope, start: Float[Tensor, " dim"], *, rate: float, steps: int) -> "AdaGradRun":
        """w⁽ᵗ⁺¹⁾ = w⁽ᵗ⁾ − η (G⁽ᵗ⁾)⁻¹ g_t with G⁽ᵗ⁾ = (Σ_{i≤t} g_i g_iᵀ)^½ (book eqs. 3.34-3.35)."""
        if not rate > 0 or steps < 1:
            raise ValueError(f"need rate > 0 and steps ≥ 1; got rate={rate}, steps={steps}")
        path, gradients, roots, inverses = [start], [], [], []
        total = torch.zeros(len(start), len(start), dtype=start.dtype)
        for t in range(steps):
            gradient = slope(t, path[-1])
            total = total + torch.outer(gradient, gradient)
            inverse = inverse_root(total, cutoff=1e-14)
            path.append(path[-1] - rate * inverse @ gradient)
            gradients.append(gradient)
            roots.append(total @ inverse)  # S (S^½)⁺ = S^½
            inverses.append(inverse)
        return cls(torch.stack(path), torch.stack(gradients), torch.stack(roots), torch.stack(inverses), rate)

    @property
    def traces(self) -> Float[Tensor, " steps"]:
        """The traces of G⁽ᵗ⁾, on which every bound rests."""
        return self.roots.diagonal(dim1=-2, dim2=-1).sum(-1)

    def linear_losses(self, target: Float[Tensor, " dim"]) -> Float[Tensor, " steps"]:
        """g_tᵀ (w⁽ᵗ⁾ − w*), by convexity at least f_t(w⁽ᵗ⁾) − f_t(w*) (book eq. 3.53)."""
        return (self.gradients * (self.path[:-1] - target)).sum(-1)

    def approaches(self, target: Float[Tensor, " dim"]) -> Float[Tensor, " steps"]:
        """‖w⁽ᵗ⁾ − w*‖²_G − ‖w⁽ᵗ⁺¹⁾ − w*‖²_G with G = G⁽ᵗ⁾: how much nearer a step came (book eq. 3.52)."""
        return squared_norm(self.path[:-1] - target, self.roots) - squared_norm(self.path[1:] - target, self.roots)

    def lengths(self) -> Float[Tensor, " steps"]:
        """‖g_t‖² in the norm of (G⁽ᵗ⁾)⁻¹ (book eq. 3.52)."""
        return squared_norm(self.gradients, self.inverses)

    def diameter(self, target: Float[Tensor, " dim"]) -> float:
        """The least D with ‖w⁽ᵗ⁾ − w*‖ ≤ D all along the path (book eq. 3.57)."""
        return float(torch.linalg.vector_norm(self.path - target, dim=-1).max())

    def approach_bound(self, diameter: float) -> Float[Tensor, " steps"]:
        """D² tr G⁽ᵗ⁾, at least the sum of `approaches` up to t (book eqs. 3.57-3.62)."""
        return diameter**2 * self.traces

    def length_bound(self) -> Float[Tensor, " steps"]:
        """2 tr G⁽ᵗ⁾, at least the sum of `lengths` up to t (book ex. 3.4).

        tr X^½ is concave, so gᵀG⁻¹g ≤ 2 (tr G⁽ᵗ⁾ − tr G⁽ᵗ⁻¹⁾); summed over t, all but the last trace drops out.
        """
        return 2 * self.traces

    def regret_bound(self, diameter: float) -> Float[Tensor, " steps"]:
        """(D²/(2η) + η) tr G⁽ᵗ⁾ ≥ Σ_{i≤t} (f_i(w⁽ⁱ⁾) − f_i(w*)) (book eqs. 3.64-3.65).

        η = D gives (3/2) D tr G; the best rate, η = D/√2, gives √2 D tr G.
        """
        return (diameter**2 / (2 * self.rate) + self.rate) * self.traces


def lipschitz_trace_bound(t: Float[Tensor, " steps"], *, lipschitz: float, size: int) -> Float[Tensor, " steps"]:
    """ρ√(d t) ≥ tr G after t gradients of length at most ρ, so the mean regret falls as 1/√t (book sec. 3.3.1)."""
    return lipschitz * (size * t).sqrt()


def smooth_regret_bound(*, beta: float, size: int, diameter: float) -> float:
    """(9/2) βdD²: what all the regret stays below, for exact gradients of a β-smooth f and η = D (book sec. 3.3.1).

    S ≤ (3/2) D tr G and tr G ≤ √(d Σ‖g‖²) ≤ √(2βd S); only this makes the mean regret O(1/T).
    """
    return 4.5 * beta * size * diameter**2
