"""Tensor rank by alternating least squares: W tensor, Strassen's algorithm, random tensors (Diehl sec. 1.2)."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import pi
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from parnassus.atlas import exponent
from parnassus.layers import (
    CPDecomposition,
    cp_decomposition,
    matrix_multiplication_tensor,
    pure_tensor,
    rank_bounds,
    sum_of_pure_tensors,
    unfolding_ranks,
)
from parnassus.report import FAINT, PALETTE, subplots
from parnassus.train import Positive, Run, at_least, at_most, between

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("D1.2.1", "D1.2.4", "D1.2.5")
expected = {
    "rank_of_w": between(3, 3, "rank of the W tensor"),
    "w_error_2_terms": between(1e-4, 0.05, "relative error of a two-term decomposition of the W tensor"),
    "w_error_exponent": between(
        -0.6, -0.4, "exponent of the number of sweeps in the error of two terms on the W tensor"
    ),
    "matmul_error_7_terms": at_most(
        1e-6, "relative error of a seven-term decomposition of the 2×2 matrix multiplication tensor"
    ),
    "matmul_error_6_terms": between(
        0.2, 0.5, "relative error of a six-term decomposition of the 2×2 matrix multiplication tensor"
    ),
    "fraction_of_rank_2": between(0.7, 0.87, "fraction of random 2×2×2 tensors of rank 2; π/4 = 0.785 is expected"),
    "hyperdeterminant_agreement": at_least(
        0.95, "fraction of random 2×2×2 tensors for which least squares and the hyperdeterminant agree"
    ),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"max_sweeps": 100, "num_starts": 8, "num_draws": 4}, "gpu": {}}


@dataclass(frozen=True)
class Experiment:
    max_sweeps: Positive[int] = 1_000  # maximum number of sweeps of alternating least squares
    num_starts: Positive[int] = 32  # random initialisations per decomposition
    num_draws: Positive[int] = 200  # random 2×2×2 tensors

    def __call__(self, run: Run) -> dict[str, float]:
        generator = torch.Generator().manual_seed(run.options.seed)
        e1, e2 = torch.eye(2, dtype=torch.float64)
        w = pure_tensor(e1, e1, e2) + pure_tensor(e1, e2, e1) + pure_tensor(e2, e1, e1)
        tensors = {
            "pure, 3×4×5": sum_of_pure_tensors(random_factors(generator, 1, (3, 4, 5))),
            "sum of 3, 4×4×4": sum_of_pure_tensors(random_factors(generator, 3, (4, 4, 4))),
            "W, 2×2×2": w,
            "2×2 matrix product, 4×4×4": matrix_multiplication_tensor(2),
        }
        errors = {name: self.errors_by_terms(tensor, generator) for name, tensor in tensors.items()}
        run.figure(
            "error by number of terms",
            plot_errors(errors),
            "Smallest relative error found with r pure tensors; it drops to rounding error at the rank. The 2×2 matrix "
            "product needs seven multiplications instead of eight (Strassen 1969).",
        )

        two = cp_decomposition(w, 2, generator=generator, num_starts=1, max_sweeps=3 * self.max_sweeps)
        three = cp_decomposition(w, 3, generator=generator, num_starts=1, max_sweeps=3 * self.max_sweeps)
        run.figure(
            "W tensor",
            plot_w_tensor(two, three),
            "Left: two terms approach W = e₁⊗e₁⊗e₂ + e₁⊗e₂⊗e₁ + e₂⊗e₁⊗e₁ arbitrarily closely without reaching it, "
            "three terms represent it: the set of tensors of rank at most 2 is not closed. Right: the two terms grow "
            "and cancel (dots: an explicit sequence of such sums).",
        )

        cubes = torch.randn(self.num_draws, 2, 2, 2, generator=generator, dtype=torch.float64)
        discriminants = hyperdeterminant(cubes)
        fits = torch.tensor(
            [cp_decomposition(cube, 2, generator=generator, num_starts=8, max_sweeps=300).error for cube in cubes]
        )
        is_fitted = fits < 1e-3
        run.figure(
            "random tensors",
            plot_fits(discriminants, fits),
            f"{self.num_draws} random 2×2×2 tensors: those with positive hyperdeterminant have rank 2, the others "
            "rank 3. Unlike for matrices, both ranks have positive probability.",
        )
        rows = [self.bounds_row(name, tensor, generator) for name, tensor in tensors.items()]
        run.table(
            "bounds on the rank",
            rows,
            "Lower bounds from the ranks of the unfoldings, upper bounds from decompositions that fit.",
        )
        sweep = torch.arange(len(two.errors))[len(two.errors) // 10 :].double()
        return {
            "rank_of_w": float(rank_bounds(w, generator=generator).upper),
            "w_error_2_terms": two.error,
            "w_error_exponent": exponent(sweep, two.errors[-len(sweep) :]),
            "matmul_error_7_terms": float(errors["2×2 matrix product, 4×4×4"][6]),
            "matmul_error_6_terms": float(errors["2×2 matrix product, 4×4×4"][5]),
            "fraction_of_rank_2": float((discriminants > 0).double().mean()),
            "hyperdeterminant_agreement": float((is_fitted == (discriminants > 0)).double().mean()),
        }

    def errors_by_terms(self, tensor: Tensor, generator: torch.Generator) -> Tensor:
        """The smallest relative error with 1, 2, … terms, up to the first exact fit."""
        errors: list[float] = []
        while not errors or (errors[-1] > 1e-8 and len(errors) < 8):
            decomposition = cp_decomposition(
                tensor, len(errors) + 1, generator=generator, num_starts=self.num_starts, max_sweeps=self.max_sweeps
            )
            errors.append(decomposition.error)
        return torch.tensor(errors)

    def bounds_row(self, name: str, tensor: Tensor, generator: torch.Generator) -> dict[str, str | float]:
        bounds = rank_bounds(tensor, generator=generator, num_starts=self.num_starts, max_sweeps=self.max_sweeps)
        return {
            "tensor": name,
            "order": tensor.ndim,
            "unfolding ranks": ", ".join(str(rank) for rank in unfolding_ranks(tensor)),
            "rank ≥": bounds.lower,
            "rank ≤": bounds.upper,
        }


def random_factors(generator: torch.Generator, terms: int, sizes: tuple[int, ...]) -> list[Tensor]:
    return [torch.randn(size, terms, generator=generator, dtype=torch.float64) for size in sizes]


def hyperdeterminant(t: Tensor) -> Tensor:
    """Cayley's hyperdeterminant of 2×2×2 tensors: the discriminant of det(T₀ + λ T₁) as a polynomial in λ."""
    first, second = t[:, 0], t[:, 1]
    mixed = torch.linalg.det(first + second) - torch.linalg.det(first) - torch.linalg.det(second)
    discriminant: Tensor = mixed.square() - 4 * torch.linalg.det(first) * torch.linalg.det(second)
    return discriminant


def plot_errors(errors: Mapping[str, Tensor]) -> "Figure":
    figure, axes = subplots(size=(7.2, 4.0))
    ax = axes[0, 0]
    for (name, error), colour in zip(errors.items(), PALETTE, strict=False):
        ax.semilogy(range(1, len(error) + 1), error.clamp(min=1e-16), color=colour, marker="o", label=name)
    ax.set(xlabel="number of terms r", ylabel="relative error", ylim=(1e-17, 3), xticks=range(1, 9))
    ax.legend(loc="center", bbox_to_anchor=(0.56, 0.35))
    return figure


def plot_w_tensor(two: CPDecomposition, three: CPDecomposition) -> "Figure":
    figure, axes = subplots(1, 2, size=(10.0, 3.8))
    for decomposition, terms, colour in ((two, "two terms", PALETTE[0]), (three, "three terms", PALETTE[1])):
        axes[0, 0].loglog(range(1, len(decomposition.errors)), decomposition.errors[1:], color=colour, label=terms)
    axes[0, 0].set(xlabel="sweep", title="relative error", ylim=(1e-9, 2))
    axes[0, 0].legend(loc="lower left")
    eps = torch.logspace(-0.3, -2, 18, dtype=torch.float64)
    size = (1 + eps.square()).pow(1.5) / (2 * eps)  # of each term in [(e₁ + ε e₂)^⊗3 − (e₁ − ε e₂)^⊗3] / 2ε
    axes[0, 1].loglog(eps.square() / 3**0.5, size, "o", color=FAINT, markersize=4, label="explicit sequence")
    axes[0, 1].loglog(two.error, two.largest_term, "D", color=PALETTE[0], label="two terms, least squares")
    axes[0, 1].set(xlabel="relative error", title="norm of the largest term")
    axes[0, 1].legend(loc="upper right")
    return figure


def plot_fits(discriminants: Tensor, fits: Tensor) -> "Figure":
    figure, axes = subplots(size=(7.2, 4.0))
    ax = axes[0, 0]
    for mask, name, colour in (
        (discriminants > 0, "positive: rank 2", PALETTE[2]),
        (discriminants <= 0, "negative: rank 3", PALETTE[3]),
    ):
        fraction = float(mask.double().mean())
        ax.scatter(
            discriminants[mask],
            fits[mask].clamp(min=1e-15),
            s=16,
            color=colour,
            linewidths=0,
            label=f"{name}, {fraction:.0%}",
        )
    ax.axvline(0, color=FAINT, linewidth=1)
    ax.set(xlabel="hyperdeterminant", ylabel="relative error with two terms", yscale="log", xscale="symlog")
    ax.set_title(f"Expected fraction of rank 2: π/4 = {pi / 4:.1%}")
    ax.legend(loc="center left")
    return figure
