"""What a kernel does to its paths: smooth, rough, straight, wandering (book fig. 15.2)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from parnassus.atlas import exponent
from parnassus.kernels import RBF, Brownian, GaussianProcess, Kernel, Linear, OrnsteinUhlenbeck
from parnassus.report import FAINT, PALETTE, curves, subplots
from parnassus.train import Run, between

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B15.1-1", "B15.1-3", "B15.1-4")
expected = {
    "exponent/rbf": between(0.95, 1.05, "p where the paths of the RBF kernel move by hᵖ over a small step h"),
    "exponent/ornstein_uhlenbeck": between(0.45, 0.55, "the same of the Ornstein-Uhlenbeck kernel"),
    "exponent/linear": between(0.99, 1.01, "the same of the linear kernel"),
    "exponent/brownian": between(0.45, 0.55, "the same of Brownian motion"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"places": 256, "many": 50}, "gpu": {}}


@dataclass(frozen=True)
class Experiment:
    length: float = 0.5  # length scale s of the RBF and Ornstein-Uhlenbeck kernels
    places: int = 1_024  # places at which a path is known, over a stretch of 4
    shown: int = 2  # realisations drawn of each kernel
    many: int = 200  # realisations measured

    def __call__(self, run: Run) -> dict[str, float]:
        kernels: dict[str, Kernel] = {
            "RBF": RBF(self.length),
            "Ornstein-Uhlenbeck": OrnsteinUhlenbeck(self.length),
            "linear": Linear(),
            "Brownian": Brownian(),
        }
        grids = {name: self.places_of(name).to(run.device) for name in kernels}
        drawn = {name: GaussianProcess(kernel).sample(grids[name], self.many) for name, kernel in kernels.items()}
        run.figure(
            "paths",
            path_figure(kernels, grids, {name: paths.values[-self.shown :] for name, paths in drawn.items()}),
            f"{self.shown} realisations of each process, and the band of two standard deviations in which 95 % of all "
            "values lie. The book draws two kernels and does not say which.",
        )
        run.figure(
            "kernels",
            kernel_figure(kernels, grids),
            "K(x, x′) for x, x′ on the same stretch. Stationary kernels are constant along diagonals; the sharp ridge "
            "of Ornstein-Uhlenbeck is what makes its paths rough.",
        )
        strides = [1, 2, 4, 8, 16, 32]
        steps = torch.tensor(strides, dtype=torch.float64) * 4 / (self.places - 1)
        moves = {name: typical_moves(paths.values, strides).cpu() for name, paths in drawn.items()}
        figure = curves(
            {name: (steps, move) for name, move in moves.items()},
            x_label="step h",
            y_label="root mean square of y(x + h) − y(x)",
            log_x=True,
            log_y=True,
        )
        run.figure("roughness", figure, "Smooth paths have a slope and move by ∝ h; rough ones by ∝ √h, however near.")
        run.table(
            "jitter",
            [{"kernel": name, "jitter": f"{paths.jitter:.1g}"} for name, paths in drawn.items()],
            "What was added to each diagonal: of smooth kernels the matrix on a fine grid is singular to rounding.",
        )
        exponents = {name: exponent(steps, move) for name, move in moves.items()}
        run.note(
            "what to see",
            "Over a small step h the paths of the RBF kernel move by a power "
            f"{exponents['RBF']:.2f} of h, those of Ornstein-Uhlenbeck by {exponents['Ornstein-Uhlenbeck']:.2f} and "
            f"those of Brownian motion by {exponents['Brownian']:.2f}: near by, the latter two look alike, but the "
            "first of them is drawn back to 0 and stays in its band. A linear path is known from one value.",
        )
        return {f"exponent/{name.lower().replace('-', '_')}": exponent for name, exponent in exponents.items()}

    def places_of(self, name: str) -> Tensor:
        """A stretch of length 4: from −2 to 2, but times begin at 0."""
        low = 0.0 if name == "Brownian" else -2.0
        return torch.linspace(low, low + 4, self.places, dtype=torch.float64)[:, None]


def typical_moves(paths: Tensor, strides: list[int]) -> Tensor:
    return torch.stack([(paths[:, stride:] - paths[:, :-stride]).square().mean().sqrt() for stride in strides])


@torch.no_grad()
def path_figure(kernels: Mapping[str, Kernel], grids: Mapping[str, Tensor], paths: Mapping[str, Tensor]) -> "Figure":
    figure, axes = subplots(2, 2, size=(9.6, 5.6))
    for ax, (name, kernel) in zip(axes.flat, kernels.items(), strict=True):
        x, deviation = grids[name][:, 0].cpu(), kernel.diagonal(grids[name]).sqrt().cpu()
        ax.fill_between(x, -2 * deviation, 2 * deviation, color=FAINT, alpha=0.25, linewidth=0)
        for path, colour in zip(paths[name].cpu(), PALETTE, strict=False):
            ax.plot(x, path, color=colour, linewidth=1.2)
        ax.set(title=name, xlim=(float(x[0]), float(x[-1])), xlabel="x")
    return figure


@torch.no_grad()
def kernel_figure(kernels: Mapping[str, Kernel], grids: Mapping[str, Tensor]) -> "Figure":
    figure, axes = subplots(1, 4, size=(11.0, 3.0))
    for ax, (name, kernel) in zip(axes.flat, kernels.items(), strict=True):
        low, high = float(grids[name][0]), float(grids[name][-1])
        every = torch.linspace(low, high, 129, dtype=torch.float64)[:, None].to(grids[name].device)
        picture = ax.imshow(kernel(every).cpu().numpy(), origin="lower", extent=(low, high, low, high), cmap="viridis")
        ax.grid(visible=False)
        ax.set(title=name, xticks=[low, (low + high) / 2, high], yticks=[low, (low + high) / 2, high])
        figure.colorbar(picture, ax=ax, shrink=0.7).outline.set_visible(False)
    return figure
