"""Seeing one coordinate of a normal pair moves and narrows the other (Diehl ex. 5.6)."""

from dataclasses import dataclass
from math import pi
from typing import TYPE_CHECKING

import torch
from scipy.stats import kstest
from torch import Tensor

from parnassus.probability import Gaussian, condition, normal_density
from parnassus.report import FAINT, INK, PALETTE, curves, subplots
from parnassus.train import Run, at_least, at_most, between

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("D5.0.6", "D5.0.7", "D5.0.8", "D5.0.11")
expected = {
    "variance_left": between(0.3599, 0.3601, "Var[X | Y] with correlation 0.8 and unit variances, 1 − ρ²"),
    "slice_p_value": at_least(1e-4, "Kolmogorov test of draws with Y near y against the conditional law"),
    "tower_gap": at_most(0.02, "mean over draws of E[X | Y], which should be E[X] = 0"),
    "variance_gap": at_most(0.03, "Var E[X | Y] + Var[X | Y] less Var X"),
    "off_the_line": at_most(1e-7, "distance of singular draws to the line they live on"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"draws": 20_000}, "gpu": {}}

SEEN = (-1.5, 0.0, 1.0)
"""Values of Y at which the pair is cut."""


@dataclass(frozen=True)
class Experiment:
    correlation: float = 0.8  # of X and Y, between −1 and 1
    draws: int = 200_000  # pairs drawn
    width: float = 0.05  # pairs count as having Y = y up to half of this

    def __call__(self, run: Run) -> dict[str, float]:
        if not -1 < self.correlation < 1:
            raise ValueError(f"the correlation must lie between −1 and 1; got correlation={self.correlation}")
        joint = pair(self.correlation)
        z = joint.sample(self.draws)
        slices = {y: z[(z[:, 1] - y).abs() < self.width / 2, 0] for y in SEEN}
        given = {y: condition(joint, torch.tensor([y], dtype=torch.float64), observed=[1]) for y in SEEN}
        run.figure(
            "slices of an ellipse",
            slices_figure(joint, z[:1_500], given),
            "Left: draws of (X, Y), ellipses that hold 50 % and 95 % of them, and three values of Y. Each bar is "
            "E[X | Y = y] plus and minus one standard deviation. The bars are equally long; the means lie on a line, "
            "which is not the long axis: X stays nearer to its own mean than Y. Right: the density of X before "
            "anything is seen, and after.",
        )
        run.figure(
            "draws with Y near y",
            histogram_figure(slices, given),
            f"Of {self.draws:,} draws those with Y within {self.width / 2:g} of y, beside the conditional density.",
        )

        means = condition(joint, z[:, 1:], observed=[1])
        run.figure(
            "what a correlation tells",
            curves(
                what_is_left(),
                x_label="correlation ρ",
                y_label="share of X that is left",
            ),
            "Variance and standard deviation of X once Y is known. A correlation of 0.8 leaves 60 % of the deviation.",
        )
        flat = pair(1.0)  # both coordinates are one number
        singular = flat.sample(1_000)
        certain = condition(flat, singular[:, 1:], observed=[1])
        worst = next(iter(SEEN))
        test = kstest(((slices[worst] - given[worst].mean) / given[worst].covariance[0].sqrt()).numpy(), "norm")
        left = float(given[worst].covariance)
        run.table(
            "three slices",
            [
                {
                    "y": y,
                    "E[X | y]": float(given[y].mean),
                    "mean of the draws": float(slices[y].mean()),
                    "Var[X | y]": float(given[y].covariance),
                    "variance of the draws": float(slices[y].var()),
                    "draws": len(slices[y]),
                }
                for y in SEEN
            ],
        )
        run.note(
            "what to see",
            f"Before, X has variance 1; whatever Y turns out to be, {left:.2f} of it is left. The mean follows Y with "
            f"slope {self.correlation:g}. With correlation 1 the pair has no density in the plane: its draws stay on "
            f"the diagonal, and Y tells X exactly (variance left: {float(certain.covariance):g}).",
        )
        return {
            "variance_left": left,
            "slice_p_value": float(test.pvalue),
            "tower_gap": abs(float(means.mean.mean())),
            "variance_gap": abs(float(means.mean.var() + left - 1)),
            "off_the_line": float((certain.mean - singular[:, :1]).abs().max()),
        }


def pair(correlation: float) -> Gaussian:
    """Two standard normals with this correlation."""
    covariance = torch.tensor([[1.0, correlation], [correlation, 1.0]], dtype=torch.float64)
    return Gaussian(torch.zeros(2, dtype=torch.float64), covariance)


def ellipse(law: Gaussian, share: float) -> Tensor:
    """The level line of a normal density in the plane that holds this share of its mass."""
    angle = torch.linspace(0, 2 * pi, 200, dtype=torch.float64)
    radius = (-2 * torch.tensor(1 - share, dtype=torch.float64).log()).sqrt()  # χ² with two degrees of freedom
    circle = radius * torch.stack([angle.cos(), angle.sin()], 1)
    line: Tensor = law.mean + circle @ torch.linalg.cholesky(law.covariance).mT
    return line


def what_is_left() -> dict[str, tuple[Tensor, Tensor]]:
    rho = torch.linspace(-0.999, 0.999, 201, dtype=torch.float64)
    zero = torch.zeros(1, dtype=torch.float64)
    left = torch.stack([condition(pair(float(r)), zero, observed=[1]).covariance[0, 0] for r in rho])
    return {"variance, 1 − ρ²": (rho, left), "standard deviation, √(1 − ρ²)": (rho, left.sqrt())}


def slices_figure(joint: Gaussian, z: Tensor, given: dict[float, Gaussian]) -> "Figure":
    figure, axes = subplots(1, 2, size=(10.0, 4.4))
    plane, line = axes[0]
    plane.scatter(z[:, 0], z[:, 1], s=3, color=FAINT, linewidths=0, alpha=0.5, rasterized=True)
    for share, style in ((0.5, "-"), (0.95, "--")):
        x, y = ellipse(joint, share).mT
        plane.plot(x, y, color=INK, linestyle=style, linewidth=1.2)
    ends = torch.tensor([[-3.4], [3.4]], dtype=torch.float64)
    plane.plot(condition(joint, ends, observed=[1]).mean, ends, color=INK, linewidth=1, linestyle=":")
    x = torch.linspace(-4, 4, 300, dtype=torch.float64)
    line.plot(x, normal_density(x, mean=0.0, variance=1.0), color=INK, linestyle="--", label="nothing seen")
    for (y, law), colour in zip(given.items(), PALETTE, strict=False):
        mean, deviation = float(law.mean), float(law.covariance) ** 0.5
        plane.axhline(y, color=colour, linewidth=0.8, alpha=0.6)
        plane.plot([mean - deviation, mean + deviation], [y, y], color=colour, linewidth=4, solid_capstyle="butt")
        plane.plot(mean, y, "o", color=colour, markersize=7)
        density = normal_density(x, mean=mean, variance=deviation**2)
        line.plot(x, density, color=colour, label=f"Y = {y:g}".replace("-", "−"))
    plane.set(xlabel="X", ylabel="Y", xlim=(-3.4, 3.4), ylim=(-3.4, 3.4), aspect="equal")
    line.set(xlabel="X", ylabel="density", ylim=(0, None))
    line.legend()
    return figure


def histogram_figure(slices: dict[float, Tensor], given: dict[float, Gaussian]) -> "Figure":
    figure, axes = subplots(1, len(slices), size=(10.0, 3.0))
    x = torch.linspace(-4, 4, 300, dtype=torch.float64)
    for (y, kept), ax, colour in zip(slices.items(), axes[0], PALETTE, strict=False):
        law = given[y]
        ax.hist(kept.numpy(), bins=40, range=(-4, 4), density=True, color=colour, alpha=0.35)
        ax.plot(x, normal_density(x, mean=float(law.mean), variance=float(law.covariance)), color=colour)
        ax.set(xlabel="X", title=f"Y near {y:g}, {len(kept):,} draws".replace("-", "−"), ylim=(0, 0.95))
    axes[0, 0].set_ylabel("density")
    return figure
