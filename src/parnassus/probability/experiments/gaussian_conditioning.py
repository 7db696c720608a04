"""Conditional distribution of a bivariate Gaussian, checked by rejection sampling (Diehl ex. 5.6)."""

from dataclasses import dataclass
from math import pi
from typing import TYPE_CHECKING

import torch
from scipy.stats import kstest
from torch import Tensor

from parnassus.probability import Gaussian, condition, normal_density
from parnassus.report import FAINT, INK, PALETTE, curves, subplots
from parnassus.train import Correlation, Positive, Run, at_least, at_most, between

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("D5.0.6", "D5.0.7", "D5.0.8", "D5.0.11")
expected = {
    "conditional_variance": between(0.3599, 0.3601, "Var[X | Y] with correlation 0.8 and unit variances, 1 − ρ²"),
    "ks_p_value": at_least(
        1e-4, "p-value of the Kolmogorov-Smirnov test of samples with Y near y against the conditional distribution"
    ),
    "tower_mean_error": at_most(0.02, "mean over samples of E[X | Y], which equals E[X] = 0"),
    "total_variance_error": at_most(0.03, "Var E[X | Y] + Var[X | Y] − Var X"),
    "distance_to_support": at_most(1e-7, "distance of samples of a singular Gaussian to its support, a line"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"num_samples": 20_000}, "gpu": {}}

CONDITIONS = (-1.5, 0.0, 1.0)
"""Values y of Y to condition on."""


@dataclass(frozen=True)
class Experiment:
    correlation: Correlation = 0.8  # correlation of X and Y
    num_samples: Positive[int] = 200_000  # samples of (X, Y)
    slice_width: Positive[float] = 0.05  # width of the slice |Y − y| < width / 2 used for Y = y

    def __call__(self, run: Run) -> dict[str, float]:
        joint = pair(self.correlation)
        z = joint.sample(self.num_samples)
        slices = {y: z[(z[:, 1] - y).abs() < self.slice_width / 2, 0] for y in CONDITIONS}
        conditionals = {y: condition(joint, torch.tensor([y], dtype=torch.float64), observed=[1]) for y in CONDITIONS}
        run.figure(
            "conditional distributions",
            plot_slices(joint, z[:1_500], conditionals),
            "Left: samples of (X, Y), ellipses of 50 % and 95 % probability, and three values of Y. Bars show E[X | "
            "Y = y] ± one standard deviation; they have equal length, and their centres lie on the regression line, "
            "which is not the major axis. Right: the marginal density of X and its conditional densities.",
        )
        run.figure(
            "rejection sampling",
            plot_histogram(slices, conditionals),
            f"Histograms of the samples with Y within {self.slice_width / 2:g} of y (of {self.num_samples:,} in "
            "total) and the conditional densities.",
        )

        means = condition(joint, z[:, 1:], observed=[1])
        run.figure(
            "conditional variance",
            curves(
                conditional_spreads(),
                x_label="correlation ρ",
                y_label="fraction of the marginal value",
            ),
            "Conditional variance and standard deviation of X given Y. With a correlation of 0.8 the "
            "conditional standard deviation is 60 % of the marginal one.",
        )
        degenerate = pair(1.0)  # both coordinates are equal
        singular = degenerate.sample(1_000)
        determined = condition(degenerate, singular[:, 1:], observed=[1])
        first = next(iter(CONDITIONS))
        test = kstest(
            ((slices[first] - conditionals[first].mean) / conditionals[first].covariance[0].sqrt()).numpy(), "norm"
        )
        variance = float(conditionals[first].covariance)
        run.table(
            "samples and formulas",
            [
                {
                    "y": y,
                    "E[X | y]": float(conditionals[y].mean),
                    "sample mean": float(slices[y].mean()),
                    "Var[X | y]": float(conditionals[y].covariance),
                    "sample variance": float(slices[y].var()),
                    "samples": len(slices[y]),
                }
                for y in CONDITIONS
            ],
        )
        run.note(
            "results",
            f"X has variance 1, and conditional variance {variance:.2f} for every value of Y; the conditional mean is "
            f"linear in Y with slope {self.correlation:g}. With correlation 1 the pair has no density in the plane: "
            "its samples lie on the diagonal and Y determines X (conditional variance "
            f"{float(determined.covariance):g}).",
        )
        return {
            "conditional_variance": variance,
            "ks_p_value": float(test.pvalue),
            "tower_mean_error": abs(float(means.mean.mean())),
            "total_variance_error": abs(float(means.mean.var() + variance - 1)),
            "distance_to_support": float((determined.mean - singular[:, :1]).abs().max()),
        }


def pair(correlation: float) -> Gaussian:
    """Two standard normal variables with this correlation."""
    covariance = torch.tensor([[1.0, correlation], [correlation, 1.0]], dtype=torch.float64)
    return Gaussian(torch.zeros(2, dtype=torch.float64), covariance)


def probability_ellipse(gaussian: Gaussian, probability: float) -> Tensor:
    """The contour of a bivariate Gaussian density that encloses this probability."""
    angle = torch.linspace(0, 2 * pi, 200, dtype=torch.float64)
    radius = (-2 * torch.tensor(1 - probability, dtype=torch.float64).log()).sqrt()  # χ² with two degrees of freedom
    circle = radius * torch.stack([angle.cos(), angle.sin()], 1)
    line: Tensor = gaussian.mean + circle @ torch.linalg.cholesky(gaussian.covariance).mT
    return line


def conditional_spreads() -> dict[str, tuple[Tensor, Tensor]]:
    rho = torch.linspace(-0.999, 0.999, 201, dtype=torch.float64)
    zero = torch.zeros(1, dtype=torch.float64)
    variances = torch.stack([condition(pair(float(r)), zero, observed=[1]).covariance[0, 0] for r in rho])
    return {"variance, 1 − ρ²": (rho, variances), "standard deviation, √(1 − ρ²)": (rho, variances.sqrt())}


def plot_slices(joint: Gaussian, z: Tensor, conditionals: dict[float, Gaussian]) -> "Figure":
    figure, axes = subplots(1, 2, size=(10.0, 4.4))
    plane, line = axes[0]
    plane.scatter(z[:, 0], z[:, 1], s=3, color=FAINT, linewidths=0, alpha=0.5, rasterized=True)
    for probability, style in ((0.5, "-"), (0.95, "--")):
        x, y = probability_ellipse(joint, probability).mT
        plane.plot(x, y, color=INK, linestyle=style, linewidth=1.2)
    ends = torch.tensor([[-3.4], [3.4]], dtype=torch.float64)
    plane.plot(condition(joint, ends, observed=[1]).mean, ends, color=INK, linewidth=1, linestyle=":")
    x = torch.linspace(-4, 4, 300, dtype=torch.float64)
    line.plot(x, normal_density(x, mean=0.0, variance=1.0), color=INK, linestyle="--", label="marginal")
    for (y, gaussian), colour in zip(conditionals.items(), PALETTE, strict=False):
        mean, deviation = float(gaussian.mean), float(gaussian.covariance) ** 0.5
        plane.axhline(y, color=colour, linewidth=0.8, alpha=0.6)
        plane.plot([mean - deviation, mean + deviation], [y, y], color=colour, linewidth=4, solid_capstyle="butt")
        plane.plot(mean, y, "o", color=colour, markersize=7)
        density = normal_density(x, mean=mean, variance=deviation**2)
        line.plot(x, density, color=colour, label=f"Y = {y:g}".replace("-", "−"))
    plane.set(xlabel="X", ylabel="Y", xlim=(-3.4, 3.4), ylim=(-3.4, 3.4), aspect="equal")
    line.set(xlabel="X", ylabel="density", ylim=(0, None))
    line.legend()
    return figure


def plot_histogram(slices: dict[float, Tensor], conditionals: dict[float, Gaussian]) -> "Figure":
    figure, axes = subplots(1, len(slices), size=(10.0, 3.0))
    x = torch.linspace(-4, 4, 300, dtype=torch.float64)
    for (y, accepted), ax, colour in zip(slices.items(), axes[0], PALETTE, strict=False):
        gaussian = conditionals[y]
        ax.hist(accepted.numpy(), bins=40, range=(-4, 4), density=True, color=colour, alpha=0.35)
        ax.plot(x, normal_density(x, mean=float(gaussian.mean), variance=float(gaussian.covariance)), color=colour)
        ax.set(xlabel="X", title=f"Y near {y:g}, {len(accepted):,} samples".replace("-", "−"), ylim=(0, 0.95))
    axes[0, 0].set_ylabel("density")
    return figure
