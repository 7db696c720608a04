"""GP sample paths of four kernels and the exponents of their increments (book fig. 15.2)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from parnassus.atlas import exponent
from parnassus.kernels import BrownianKernel, GaussianProcess, Kernel, LinearKernel, OrnsteinUhlenbeckKernel, RBFKernel
from parnassus.report import FAINT, PALETTE, curves, subplots
from parnassus.train import Positive, Run, between

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B15.1-1", "B15.1-3", "B15.1-4")
expected = {
    "exponent/rbf": between(0.95, 1.05, "exponent p of increments ∝ hᵖ over small steps h, RBF kernel"),
    "exponent/ornstein_uhlenbeck": between(
        0.45, 0.55, "exponent p of increments ∝ hᵖ over small steps h, Ornstein-Uhlenbeck kernel"
    ),
    "exponent/linear": between(0.99, 1.01, "exponent p of increments ∝ hᵖ over small steps h, linear kernel"),
    "exponent/brownian": between(0.45, 0.55, "exponent p of increments ∝ hᵖ over small steps h, Brownian motion"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"grid_size": 256, "num_paths": 50}, "gpu": {}}


@dataclass(frozen=True)
class Experiment:
    length_scale: Positive[float] = 0.5  # length scale s of the RBF and Ornstein-Uhlenbeck kernels
    grid_size: Positive[int] = 1_024  # grid points of each path, on an interval of length 4
    num_shown: Positive[int] = 2  # paths plotted for each kernel
    num_paths: Positive[int] = 200  # paths sampled for each kernel

    def __call__(self, run: Run) -> dict[str, float]:
        kernels: dict[str, Kernel] = {
            "RBF": RBFKernel(self.length_scale),
            "Ornstein-Uhlenbeck": OrnsteinUhlenbeckKernel(self.length_scale),
            "linear": LinearKernel(),
            "Brownian": BrownianKernel(),
        }
        grids = {name: self.grid(name).to(run.device) for name in kernels}
        samples = {
            name: GaussianProcess(kernel).sample(grids[name], self.num_paths) for name, kernel in kernels.items()
        }
        run.figure(
            "paths",
            plot_path(kernels, grids, {name: paths.values[-self.num_shown :] for name, paths in samples.items()}),
            f"{self.num_shown} sample paths of each process and the band of ± two standard deviations, which contains "
            "95 % of the values. The book shows two kernels without naming them.",
        )
        run.figure(
            "kernels",
            plot_kernel(kernels, grids),
            "K(x, x′) on the same interval. Stationary kernels are constant along diagonals; the kink of the "
            "Ornstein-Uhlenbeck kernel on its diagonal makes its paths rough.",
        )
        strides = [1, 2, 4, 8, 16, 32]
        steps = torch.tensor(strides, dtype=torch.float64) * 4 / (self.grid_size - 1)
        increments = {name: paths.rms_increments(strides).cpu() for name, paths in samples.items()}
        figure = curves(
            {name: (steps, values) for name, values in increments.items()},
            x_label="step h",
            y_label="root mean square of y(x + h) − y(x)",
            log_x=True,
            log_y=True,
        )
        run.figure(
            "roughness",
            figure,
            "Increments of differentiable paths are ∝ h; those of rough paths are ∝ √h at every scale.",
        )
        run.table(
            "jitter",
            [{"kernel": name, "jitter": f"{paths.jitter:.1g}"} for name, paths in samples.items()],
            "Added to the diagonal: on a fine grid the matrix of a smooth kernel is singular up to rounding.",
        )
        exponents = {name: exponent(steps, values) for name, values in increments.items()}
        run.note(
            "results",
            f"Increments over a small step h scale as hᵖ with p = {exponents['RBF']:.2f} for RBF, "
            f"{exponents['Ornstein-Uhlenbeck']:.2f} for Ornstein-Uhlenbeck and {exponents['Brownian']:.2f} for "
            "Brownian motion. The latter two agree locally, but the Ornstein-Uhlenbeck process is stationary and "
            "reverts to 0. A linear path is determined by one value.",
        )
        return {f"exponent/{name.lower().replace('-', '_')}": exponent for name, exponent in exponents.items()}

    def grid(self, name: str) -> Tensor:
        """A grid of length 4: from −2 to 2, or from 0 for Brownian motion."""
        low = 0.0 if name == "Brownian" else -2.0
        return torch.linspace(low, low + 4, self.grid_size, dtype=torch.float64)[:, None]


@torch.no_grad()
def plot_path(kernels: Mapping[str, Kernel], grids: Mapping[str, Tensor], paths: Mapping[str, Tensor]) -> "Figure":
    figure, axes = subplots(2, 2, size=(9.6, 5.6))
    for ax, (name, kernel) in zip(axes.flat, kernels.items(), strict=True):
        x, deviation = grids[name][:, 0].cpu(), kernel.diagonal(grids[name]).sqrt().cpu()
        ax.fill_between(x, -2 * deviation, 2 * deviation, color=FAINT, alpha=0.25, linewidth=0)
        for path, colour in zip(paths[name].cpu(), PALETTE, strict=False):
            ax.plot(x, path, color=colour, linewidth=1.2)
        ax.set(title=name, xlim=(float(x[0]), float(x[-1])), xlabel="x")
    return figure


@torch.no_grad()
def plot_kernel(kernels: Mapping[str, Kernel], grids: Mapping[str, Tensor]) -> "Figure":
    figure, axes = subplots(1, 4, size=(11.0, 3.0))
    for ax, (name, kernel) in zip(axes.flat, kernels.items(), strict=True):
        low, high = float(grids[name][0]), float(grids[name][-1])
        points = torch.linspace(low, high, 129, dtype=torch.float64)[:, None].to(grids[name].device)
        image = ax.imshow(kernel(points).cpu().numpy(), origin="lower", extent=(low, high, low, high), cmap="viridis")
        ax.grid(visible=False)
        ax.set(title=name, xticks=[low, (low + high) / 2, high], yticks=[low, (low + high) / 2, high])
        figure.colorbar(image, ax=ax, shrink=0.7).outline.set_visible(False)
    return figure
