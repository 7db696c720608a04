"""Bell curves, a line with normal noise, and why its likelihood is the squared error (Zhao sec. 3)."""

from dataclasses import dataclass
from math import inf, log, log10

import torch
from torch import Tensor

from parnassus.data.toy import linear
from parnassus.losses.likelihood import likeliest_sigma, normal_nll
from parnassus.losses.squared import half_mean_squared_error
from parnassus.probability import expectation_by_quadrature, normal_density
from parnassus.report import FAINT, INK, PALETTE, subplots
from parnassus.train import Run, at_most, between, reported

covers = ("Z3.6", "Z3.7", "Z3.8")
expected = {
    "mass_error": at_most(1e-10, "distance of the area under a bell curve from 1"),
    "variance_error": at_most(1e-9, "distance of its second moment about μ from σ²"),
    "slope_apart": at_most(0.011, "between the likeliest slope and that of least squares, on a grid of 0.01"),
    "sigma_ratio": between(0.85, 1.15, "likeliest σ over the true one"),
    "points_to_underflow": between(260, 330, "points of σ = 3 whose likelihood is 0 in doubles"),
    "points_to_overflow": between(200, 260, "points of σ = 0.01 whose likelihood is ∞ in doubles"),
    "log_likelihood": reported("of 1,000 points of σ = 3, by the sum of logarithms"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"points": 60}, "gpu": {}}

BELLS = ((0.0, 1.0), (0.0, 0.5), (2.0, 1.0), (-1.0, 2.0))
SLOPE, INTERCEPT = 2.0, 1.0


@dataclass(frozen=True)
class Experiment:
    points: int = 200  # points of the noisy line
    sigma: float = 0.8  # spread of its noise

    def __call__(self, run: Run) -> dict[str, float]:
        result = draw_bells(run) | self.line(run) | draw_product(run)
        run.note(
            "what to see",
            f"Whatever σ is assumed, the likeliest slope is that of least squares. The likelihood itself is "
            f"0 from {result['points_to_underflow']:.0f} points on, or ∞ from {result['points_to_overflow']:.0f}; its "
            "logarithm is an ordinary number, which is why one adds logarithms.",
        )
        return result

    def line(self, run: Run) -> dict[str, float]:
        drawn = linear(self.points, (SLOPE,), INTERCEPT, noise=self.sigma, seed=run.seed)
        assert drawn.y is not None
        x, y = drawn.x[:, 0].double(), drawn.y.double()
        figure, axes = subplots(1, 2, size=(10.4, 4.0))
        ax = axes[0, 0]
        ax.plot(x, y, "o", color=FAINT, markersize=3)
        ends = torch.tensor([-3.0, 3.0], dtype=torch.float64)
        ax.plot(ends, SLOPE * ends + INTERCEPT, color=INK, linewidth=1.2)
        for place in (-2.0, 0.0, 2.0):
            mean = SLOPE * place + INTERCEPT
            up = torch.linspace(mean - 3.5 * self.sigma, mean + 3.5 * self.sigma, 120, dtype=torch.float64)
            bell = normal_density(up, mean=mean, variance=self.sigma**2)
            ax.fill_betweenx(up, place, place + 1.1 * bell / bell.max(), color=PALETTE[0], alpha=0.4, linewidth=0)
        ax.set(xlabel="x", ylabel="y", xlim=(-3.2, 3.4), title="y = 2x + 1 + ε")
        slopes = torch.arange(1.4, 2.6, 0.01, dtype=torch.float64)
        squared = torch.stack([half_mean_squared_error(w * x + INTERCEPT, y) for w in slopes])
        best = {}
        for sigma, colour in zip((0.4, self.sigma, 1.6), PALETTE, strict=False):
            loss = torch.stack([normal_nll(w * x + INTERCEPT, y, sigma=sigma).mean() for w in slopes])
            best[sigma] = float(slopes[loss.argmin()])
            axes[0, 1].plot(slopes, loss, color=colour, label=f"−log P / n, σ = {sigma:g}")
            axes[0, 1].plot(best[sigma], loss.min(), "o", color=colour)
        axes[0, 1].plot(slopes, squared, color=INK, linestyle="--", linewidth=1.4, label="½ mean squared error")
        least = float((x * (y - INTERCEPT)).sum() / x.square().sum())
        axes[0, 1].axvline(least, color=FAINT, linestyle=":", linewidth=1.4)
        axes[0, 1].set(xlabel="slope w", ylim=(0, 5.2), title="one minimiser for all")
        axes[0, 1].legend(loc="upper right")
        run.figure(
            "normal noise and squared error",
            figure,
            "Left: every y is drawn from a bell curve that stands on the line. Right: minus the log-likelihood of a "
            "slope, for three assumed σ; each is a stretched and lifted copy of the squared error, and all are least "
            "at the slope of least squares (dotted).",
        )
        return {
            "slope_apart": max(abs(each - least) for each in best.values()),
            "sigma_ratio": float(likeliest_sigma(least * x + INTERCEPT, y)) / self.sigma,
        }


def draw_bells(run: Run) -> dict[str, float]:
    figure, axes = subplots(size=(7.4, 3.6))
    x = torch.linspace(-7, 6, 600, dtype=torch.float64)
    masses, variances = [], []
    for (mean, sigma), colour in zip(BELLS, PALETTE, strict=False):
        axes[0, 0].plot(
            x,
            normal_density(x, mean=mean, variance=sigma**2),
            color=colour,
            label=f"μ = {mean:g}, σ = {sigma:g}".replace("-", "−"),
        )
        middle = x[(x - mean).abs() <= sigma]
        axes[0, 0].fill_between(
            middle, normal_density(middle, mean=mean, variance=sigma**2), color=colour, alpha=0.15, linewidth=0
        )
        masses.append(_moment(0, mean, sigma) - 1)
        variances.append(_moment(2, mean, sigma) - sigma**2)
    axes[0, 0].set(xlabel="x", ylabel="p(x)")
    axes[0, 0].legend()
    run.figure(
        "bell curves",
        figure,
        "Normal densities. μ moves the bell and σ stretches it; the area stays 1, of which 68 % lie within one σ of "
        "the middle (shaded), so that half the width is twice the height.",
    )
    return {
        "mass_error": max(abs(float(each)) for each in masses),
        "variance_error": max(abs(float(each)) for each in variances),
    }


def _moment(power: int, mean: float, sigma: float) -> Tensor:
    return expectation_by_quadrature(
        lambda x: (x - mean) ** power,
        lambda x: normal_density(x, mean=mean, variance=sigma**2),
        low=mean - 12 * sigma,
        high=mean + 12 * sigma,
    )


def draw_product(run: Run) -> dict[str, float]:
    """The product of densities against the number of factors, until it leaves the floats."""
    unit = torch.randn(1_000, generator=torch.Generator().manual_seed(run.seed), dtype=torch.float64)
    figure, axes = subplots(size=(7.4, 3.6))
    ends, sums = {}, {}
    for sigma, colour in ((3.0, PALETTE[0]), (0.01, PALETTE[1])):
        loss = normal_nll(torch.zeros_like(unit), sigma * unit, sigma=sigma)
        product = (-loss).exp().cumprod(0)
        lost = (product == 0) | (product == inf)
        ends[sigma] = float(lost.double().argmax()) + 1
        sums[sigma] = float(-loss.sum())
        exponent = -loss.cumsum(0) / log(10)
        axes[0, 0].plot(exponent, color=colour, linestyle="--", linewidth=1.2)
        axes[0, 0].plot(exponent[~lost], color=colour, linewidth=2.4, label=f"σ = {sigma:g}")
    for border in (torch.finfo(torch.float64).max, 5e-324):
        axes[0, 0].axhline(log10(border), color=FAINT, linestyle=":", linewidth=1.4)
    axes[0, 0].set(xlabel="points", ylabel="log₁₀ of the likelihood", ylim=(-800, 800))
    axes[0, 0].legend()
    run.figure(
        "a product leaves the floats",
        figure,
        "The likelihood of ever more points, as a product (thick) and as a sum of logarithms (dashed). Between the "
        "dotted lines lie all positive doubles: beyond, the product is 0 or ∞.",
    )
    return {
        "points_to_underflow": ends[3.0],
        "points_to_overflow": ends[0.01],
        "log_likelihood": sums[3.0],
    }
