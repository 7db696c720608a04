"""Nadaraya-Watson regression on a curve: kernels, bandwidths, weights, consistency (Zhao sec. 11, book eq. 10.6)."""

from dataclasses import dataclass
from math import nan
from typing import TYPE_CHECKING, Annotated

import torch
from torch import Tensor

from parnassus.atlas import exponent
from parnassus.attention.regression.kernel_regression import NadarayaWatson
from parnassus.attention.regression.kernels import (
    RadialKernel,
    boxcar_kernel,
    constant_kernel,
    epanechnikov_kernel,
    gaussian_kernel,
    triangular_kernel,
)
from parnassus.data import Split, open_curve
from parnassus.data.built_in.toy import curve
from parnassus.data.seeds import derive_seed
from parnassus.report import FAINT, INK, PALETTE, curves, subplots
from parnassus.report.style import SEQUENTIAL
from parnassus.train import BuiltIn, NonNegative, Positive, Run, at_most, between, no_band

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("Z11.4", "Z11.5", "B10.1.3-2", "B10.1.3-4")
expected = {
    "error_gaussian": at_most(
        0.15, "mean squared error against the true curve, Gaussian kernel, leave-one-out bandwidth"
    ),
    "error_epanechnikov": at_most(
        0.15, "mean squared error against the true curve, Epanechnikov kernel, leave-one-out bandwidth"
    ),
    "error_triangular": at_most(
        0.15, "mean squared error against the true curve, triangular kernel, leave-one-out bandwidth"
    ),
    "error_boxcar": at_most(0.15, "mean squared error against the true curve, boxcar kernel, leave-one-out bandwidth"),
    "error_mean": between(
        0.5, 1.5, "mean squared error against the true curve, constant kernel (mean of all examples)"
    ),
    "bandwidth": no_band("bandwidth of the Gaussian kernel chosen by leave-one-out"),
    "left_out_error": no_band("leave-one-out squared error, Gaussian kernel; the noise contributes noise²"),
    "slope": between(-0.9, -0.65, "exponent of the error in n with bandwidth n^{−1/5}; −4/5 in theory"),
    "error_40": between(0.05, 0.2, "mean squared error on [1, 4] with 40 examples and bandwidth n^{−1/5}"),
    "error_400": between(0.007, 0.025, "mean squared error on [1, 4] with 400 examples and bandwidth n^{−1/5}"),
    "error_4000": between(0.0012, 0.004, "mean squared error on [1, 4] with 4,000 examples and bandwidth n^{−1/5}"),
    "error_40000": between(0.0001, 0.0008, "mean squared error on [1, 4] with 40,000 examples and bandwidth n^{−1/5}"),
}
profiles = {"smoke": {"num_repeats": 1, "num_bandwidths": 6}, "gpu": {"num_repeats": 200}}

KERNELS: dict[str, RadialKernel] = {
    "gaussian": gaussian_kernel,
    "epanechnikov": epanechnikov_kernel,
    "triangular": triangular_kernel,
    "boxcar": boxcar_kernel,
}
COUNTS = (40, 400, 4_000, 40_000)


@dataclass(frozen=True)
class Experiment:
    data: Annotated[str, BuiltIn("curve")] = "curve"  # 2 sin x + x with noise, or path of a table: input, target
    num_examples: Positive[int] = 80  # examples of the curve
    noise_std: NonNegative[float] = 0.5  # standard deviation of the noise
    num_bandwidths: Positive[int] = 40  # candidate bandwidths, logarithmically spaced
    num_repeats: Positive[int] = 30  # repetitions of the consistency measurement

    def __call__(self, run: Run) -> dict[str, float]:
        examples = self.examples(run.seed)
        x, y = examples.x.double(), targets(examples)
        x_range = float(x.max() - x.min())
        grid = torch.linspace(float(x.min()), float(x.max()), 201, dtype=torch.float64)[:, None]
        run.figure(
            "kernels", plot_kernels(), "Kernel functions of the distance in units of the bandwidth (Zhao sec. 11)."
        )

        bandwidths = torch.logspace(-2.3, 0.3, self.num_bandwidths, dtype=torch.float64).mul(x_range).tolist()
        fitted = {name: NadarayaWatson.fit(x, y, kernel=kernel) for name, kernel in KERNELS.items()}
        left_out = {
            name: [fit.with_bandwidth(h).leave_one_out_error() for h in bandwidths] for name, fit in fitted.items()
        }
        best = {
            name: bandwidths[min(range(len(bandwidths)), key=errors.__getitem__)] for name, errors in left_out.items()
        }
        chosen = {name: fit.with_bandwidth(best[name]) for name, fit in fitted.items()}
        run.figure(
            "bandwidth selection",
            curves(
                {name: (bandwidths, errors) for name, errors in left_out.items()},
                x_label="bandwidth",
                y_label="leave-one-out squared error",
                log_x=True,
            ),
            "Leave-one-out error. The smallest bandwidths use the nearest neighbour only, the largest average all "
            "examples. Kernels of bounded support need larger bandwidths for the same smoothing.",
        )
        is_curve = self.data == "curve"
        run.figure(
            "fits by kernel",
            plot_fits(chosen, x, y, grid, has_truth=is_curve),
            "Fits at the best bandwidth of each kernel; dashed, the true curve. The fit of the boxcar kernel is "
            "discontinuous wherever an example enters or leaves its support.",
        )
        by_bandwidth = {
            f"bandwidth {bandwidth:.2g}": chosen["gaussian"].with_bandwidth(bandwidth)
            for bandwidth in (x_range / 100, best["gaussian"], x_range)
        }
        run.figure(
            "fits by bandwidth",
            plot_fits(by_bandwidth, x, y, grid, has_truth=is_curve),
            "The Gaussian kernel with three bandwidths: overfitting, best bandwidth, underfitting.",
        )
        run.figure(
            "weights",
            plot_weights(by_bandwidth, x, grid),
            "The weights of the examples (columns, sorted by x) for each query (row). Rows sum to 1: this is an "
            "attention map.",
        )
        result = {"bandwidth": best["gaussian"], "left_out_error": min(left_out["gaussian"])}
        if not is_curve:
            return result | {name: nan for name in expected if name not in result}
        all_fits = {**chosen, "mean": NadarayaWatson.fit(x, y, kernel=constant_kernel)}
        for name, fit in all_fits.items():
            result[f"error_{name}"] = float((fit.predict(grid) - true_function(grid)).square().mean())
        return result | self.consistency(run)

    def examples(self, seed: int) -> Split:
        if self.data == "curve":
            return curve(
                self.num_examples, true_function, noise=self.noise_std, seed=derive_seed(seed), low=0.0, high=5.0
            )
        data = open_curve(self.data)
        return Split(torch.cat([data.train.x, data.test.x]), torch.cat([targets(data.train), targets(data.test)]))

    def consistency(self, run: Run) -> dict[str, float]:
        """The error on [1, 4] with more examples and narrower kernels."""
        grid = torch.linspace(1, 4, 31, dtype=torch.float64)[:, None]
        errors = {}
        for count in COUNTS:
            measured = []
            for repeat in range(self.num_repeats):
                examples = curve(
                    count, true_function, noise=1.0, seed=derive_seed(run.seed, count, repeat), low=0.0, high=5.0
                )
                fit = NadarayaWatson.fit(examples.x.double(), targets(examples), bandwidth=count**-0.2)
                measured.append((fit.predict(grid) - true_function(grid)).square().mean())
            errors[count] = float(torch.stack(measured).mean())
        n, error = (torch.tensor(list(values), dtype=torch.float64) for values in (errors, errors.values()))
        reference = error[0] * (n / n[0]) ** -0.8
        run.figure(
            "consistency",
            curves(
                {"measured": (n, error), "n^{−4/5}": (n, reference)},
                x_label="number of examples n",
                y_label="mean squared error on [1, 4]",
                log_x=True,
                log_y=True,
            ),
            f"Noise of standard deviation 1, bandwidth n^{{−1/5}}, mean of {self.num_repeats} data sets: the estimator "
            "is consistent (Mack and Silverman 1982).",
        )
        return {"slope": exponent(n, error)} | {f"error_{count}": error for count, error in errors.items()}


def true_function(x: Tensor) -> Tensor:
    return 2 * x.sin() + x


def targets(split: Split) -> Tensor:
    assert split.y is not None
    return split.y.double().view(-1, 1)


def plot_kernels() -> "Figure":
    """Kernel value against the distance in units of the bandwidth."""
    u = torch.linspace(-2.5, 2.5, 1_001, dtype=torch.float64)
    figure = curves(
        {name: (u, kernel(u.abs())) for name, kernel in KERNELS.items()}, x_label="(q − k) / h", y_label="kernel value"
    )
    figure.axes[0].set_ylim(-0.03, 1.1)
    return figure


def plot_fits(fits: dict[str, NadarayaWatson], x: Tensor, y: Tensor, grid: Tensor, *, has_truth: bool) -> "Figure":
    """Examples and fits, a panel for each fit."""
    figure, axes = subplots(1, len(fits), size=(2.9 * len(fits), 3.2))
    for ax, (name, fit), colour in zip(axes[0], fits.items(), PALETTE, strict=False):
        ax.scatter(x, y, s=12, color=FAINT, linewidths=0)
        if has_truth:
            ax.plot(grid, true_function(grid), color=INK, linewidth=1, linestyle="--")
        ax.plot(grid, fit.predict(grid), color=colour)
        ax.set(title=name, xlabel="x")
    for ax in axes[0, 1:]:
        ax.sharey(axes[0, 0])
        ax.tick_params(labelleft=False)
    axes[0, 0].set_ylabel("y")
    return figure


def plot_weights(fits: dict[str, NadarayaWatson], x: Tensor, grid: Tensor) -> "Figure":
    """The weights of examples by query, a panel for each fit."""
    figure, axes = subplots(1, len(fits), size=(3.5 * len(fits), 3.3))
    order = x[:, 0].argsort()
    queries = grid[::4]
    for ax, (name, fit) in zip(axes[0], fits.items(), strict=True):
        extent = (0.5, len(x) + 0.5, float(queries[0]), float(queries[-1]))
        weights = fit.weights(queries)[:, order].numpy()
        image = ax.imshow(weights, cmap=SEQUENTIAL, aspect="auto", origin="lower", extent=extent)
        ax.grid(visible=False)
        ax.set(title=name, xlabel="example")
        figure.colorbar(image, ax=ax).outline.set_visible(False)
    axes[0, 0].set_ylabel("query")
    return figure
