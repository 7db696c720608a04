"""How many pure tensors does a tensor need? Least squares finds out, and finds Strassen's seven (Diehl sec. 1.2)."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import pi
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from parnassus.atlas import exponent
from parnassus.layers import (
    Decomposition,
    decompose,
    matrix_product_tensor,
    pure_tensor,
    rank_bounds,
    sum_of_pure_tensors,
    unfolding_ranks,
)
from parnassus.report import FAINT, PALETTE, subplots
from parnassus.train import Run, at_least, at_most, between

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("D1.2.1", "D1.2.4", "D1.2.5")
expected = {
    "rank_of_w": between(3, 3, "terms that the W tensor needs"),
    "w_with_two_terms": between(1e-4, 0.05, "how near two terms come to it, relative error"),
    "w_exponent": between(-0.6, -0.4, "power of the sweep at which that error falls"),
    "strassen": at_most(1e-6, "relative error of seven products for 2×2 matrices"),
    "six_products": between(0.2, 0.5, "the same with six"),
    "share_of_rank_2": between(0.7, 0.87, "share of random 2×2×2 tensors of rank 2; π/4 = 0.785 in the long run"),
    "verdicts_agree": at_least(0.95, "share on which least squares and the hyperdeterminant agree"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"sweeps": 100, "starts": 8, "draws": 4}, "gpu": {}}


@dataclass(frozen=True)
class Experiment:
    sweeps: int = 1_000  # sweeps of alternating least squares
    starts: int = 32  # random starts of each decomposition
    draws: int = 200  # random 2×2×2 tensors

    def __call__(self, run: Run) -> dict[str, float]:
        source = torch.Generator().manual_seed(run.options.seed)
        one, other = torch.eye(2, dtype=torch.float64)
        w = pure_tensor(one, one, other) + pure_tensor(one, other, one) + pure_tensor(other, one, one)
        known = {
            "pure, 3×4×5": sum_of_pure_tensors(random_factors(source, 1, (3, 4, 5))),
            "sum of 3, 4×4×4": sum_of_pure_tensors(random_factors(source, 3, (4, 4, 4))),
            "W, 2×2×2": w,
            "2×2 matrix product, 4×4×4": matrix_product_tensor(2),
        }
        errors = {name: self.errors_by_terms(tensor, source) for name, tensor in known.items()}
        run.figure(
            "error by number of terms",
            draw_errors(errors),
            "The relative error of the best sum of r pure tensors that was found. Rank is where it drops to rounding. "
            "The 2×2 matrix product has eight multiplications as it is taught and needs seven (Strassen 1969).",
        )

        two = decompose(w, 2, generator=source, starts=1, sweeps=3 * self.sweeps)
        three = decompose(w, 3, generator=source, starts=1, sweeps=3 * self.sweeps)
        run.figure(
            "the W tensor",
            draw_w(two, three),
            "Two terms come ever nearer to W = e₁⊗e₁⊗e₂ + e₁⊗e₂⊗e₁ + e₂⊗e₁⊗e₁ and never reach it (left), while "
            "they grow and cancel (right: dots are sums of two written down by hand). Three terms arrive: the set of "
            "tensors of rank at most 2 is not closed.",
        )

        cubes = torch.randn(self.draws, 2, 2, 2, generator=source, dtype=torch.float64)
        signs = hyperdeterminant(cubes)
        fits = torch.tensor([decompose(cube, 2, generator=source, starts=8, sweeps=300).error for cube in cubes])
        fitted = fits < 1e-3
        run.figure(
            "random tensors",
            draw_fits(signs, fits),
            f"{self.draws} random 2×2×2 tensors: those of positive hyperdeterminant are sums of two pure tensors, the "
            "others need three. Unlike for matrices, both kinds are common.",
        )
        rows = [self.row(name, tensor, source) for name, tensor in known.items()]
        run.table("bounds on the rank", rows, "From below by unfoldings, from above by a decomposition that fits.")
        sweep = torch.arange(len(two.errors))[len(two.errors) // 10 :].double()
        return {
            "rank_of_w": float(rank_bounds(w, generator=source).at_most),
            "w_with_two_terms": two.error,
            "w_exponent": exponent(sweep, two.errors[-len(sweep) :]),
            "strassen": float(errors["2×2 matrix product, 4×4×4"][6]),
            "six_products": float(errors["2×2 matrix product, 4×4×4"][5]),
            "share_of_rank_2": float((signs > 0).double().mean()),
            "verdicts_agree": float((fitted == (signs > 0)).double().mean()),
        }

    def errors_by_terms(self, tensor: Tensor, source: torch.Generator) -> Tensor:
        """The least relative error with 1, 2, … terms, up to the first that fits."""
        errors: list[float] = []
        while not errors or (errors[-1] > 1e-8 and len(errors) < 8):
            found = decompose(tensor, len(errors) + 1, generator=source, starts=self.starts, sweeps=self.sweeps)
            errors.append(found.error)
        return torch.tensor(errors)

    def row(self, name: str, tensor: Tensor, source: torch.Generator) -> dict[str, str | float]:
        bounds = rank_bounds(tensor, generator=source, starts=self.starts, sweeps=self.sweeps)
        return {
            "tensor": name,
            "order": tensor.ndim,
            "unfolding ranks": ", ".join(str(rank) for rank in unfolding_ranks(tensor)),
            "rank at least": bounds.at_least,
            "rank at most": bounds.at_most,
        }


def random_factors(source: torch.Generator, terms: int, sizes: tuple[int, ...]) -> list[Tensor]:
    return [torch.randn(size, terms, generator=source, dtype=torch.float64) for size in sizes]


def hyperdeterminant(t: Tensor) -> Tensor:
    """Cayley's, of 2×2×2 tensors: the discriminant of det(T₀ + λ T₁) in λ, whose real roots are the two terms."""
    first, second = t[:, 0], t[:, 1]
    mixed = torch.linalg.det(first + second) - torch.linalg.det(first) - torch.linalg.det(second)
    discriminant: Tensor = mixed.square() - 4 * torch.linalg.det(first) * torch.linalg.det(second)
    return discriminant


def draw_errors(errors: Mapping[str, Tensor]) -> "Figure":
    figure, axes = subplots(size=(7.2, 4.0))
    ax = axes[0, 0]
    for (name, error), colour in zip(errors.items(), PALETTE, strict=False):
        ax.semilogy(range(1, len(error) + 1), error.clamp(min=1e-16), color=colour, marker="o", label=name)
    ax.set(xlabel="terms r", ylabel="relative error", ylim=(1e-17, 3), xticks=range(1, 9))
    ax.legend(loc="center", bbox_to_anchor=(0.56, 0.35))
    return figure


def draw_w(two: Decomposition, three: Decomposition) -> "Figure":
    figure, axes = subplots(1, 2, size=(10.0, 3.8))
    for found, terms, colour in ((two, "two terms", PALETTE[0]), (three, "three terms", PALETTE[1])):
        axes[0, 0].loglog(range(1, len(found.errors)), found.errors[1:], color=colour, label=terms)
    axes[0, 0].set(xlabel="sweep", title="relative error", ylim=(1e-9, 2))
    axes[0, 0].legend(loc="lower left")
    eps = torch.logspace(-0.3, -2, 18, dtype=torch.float64)
    size = (1 + eps.square()).pow(1.5) / (2 * eps)  # of each term in [(e₁ + ε e₂)^⊗3 − (e₁ − ε e₂)^⊗3] / 2ε
    axes[0, 1].loglog(eps.square() / 3**0.5, size, "o", color=FAINT, markersize=4, label="by hand")
    axes[0, 1].loglog(two.error, two.largest_term, "D", color=PALETTE[0], label="two terms, found")
    axes[0, 1].set(xlabel="relative error", title="largest term")
    axes[0, 1].legend(loc="upper right")
    return figure


def draw_fits(signs: Tensor, fits: Tensor) -> "Figure":
    figure, axes = subplots(size=(7.2, 4.0))
    ax = axes[0, 0]
    for chosen, name, colour in (
        (signs > 0, "positive: rank 2", PALETTE[2]),
        (signs <= 0, "negative: rank 3", PALETTE[3]),
    ):
        share = float(chosen.double().mean())
        ax.scatter(
            signs[chosen], fits[chosen].clamp(min=1e-15), s=16, color=colour, linewidths=0, label=f"{name}, {share:.0%}"
        )
    ax.axvline(0, color=FAINT, linewidth=1)
    ax.set(xlabel="hyperdeterminant", ylabel="relative error of two terms", yscale="log", xscale="symlog")
    ax.set_title(f"π/4 = {pi / 4:.1%} of all are expected to have rank 2")
    ax.legend(loc="center left")
    return figure
