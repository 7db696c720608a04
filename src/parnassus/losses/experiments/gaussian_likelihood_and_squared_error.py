"""Gaussian likelihood and squared error have the same minimiser; products of densities underflow (Zhao sec. 3)."""

from dataclasses import dataclass
from math import inf, log, log10

import torch
from torch import Tensor

from parnassus.data.built_in.toy import linear
from parnassus.losses.likelihood import normal_nll, normal_std_mle
from parnassus.losses.regression import half_mean_squared_error
from parnassus.probability import expectation_by_quadrature, normal_density, standard_normal
from parnassus.report import FAINT, INK, PALETTE, subplots
from parnassus.train import Positive, Run, at_most, between, no_band

covers = ("Z3.6", "Z3.7", "Z3.8")
expected = {
    "integral_error": at_most(1e-10, "maximum difference between the integral of a normal density and 1"),
    "variance_error": at_most(1e-9, "maximum difference between the second central moment of a normal density and σ²"),
    "slope_difference": at_most(
        0.011, "difference between maximum-likelihood and least-squares slope, on a grid of 0.01"
    ),
    "sigma_ratio": between(0.85, 1.15, "ratio of the maximum-likelihood σ to the true σ"),
    "points_to_underflow": between(
        260, 330, "number of points with σ = 3 at which the likelihood underflows in float64"
    ),
    "points_to_overflow": between(
        200, 260, "number of points with σ = 0.01 at which the likelihood overflows in float64"
    ),
    "log_likelihood": no_band("log-likelihood of 1,000 points with σ = 3, as a sum of logarithms"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"num_points": 60}, "gpu": {}}

NORMALS = ((0.0, 1.0), (0.0, 0.5), (2.0, 1.0), (-1.0, 2.0))
SLOPE, INTERCEPT = 2.0, 1.0


@dataclass(frozen=True)
class Experiment:
    num_points: Positive[int] = 200  # points on the noisy line
    noise_std: Positive[float] = 0.8  # standard deviation of the noise

    def __call__(self, run: Run) -> dict[str, float]:
        result = plot_normal_densities(run) | self.fit_line(run) | plot_likelihood_products(run)
        run.note(
            "results",
            "For every assumed σ the maximum-likelihood slope is the least-squares slope. The likelihood itself "
            f"underflows to 0 at {result['points_to_underflow']:.0f} points and overflows at "
            f"{result['points_to_overflow']:.0f}; the sum of log-likelihoods stays finite.",
        )
        return result

    def fit_line(self, run: Run) -> dict[str, float]:
        data = linear(self.num_points, (SLOPE,), INTERCEPT, noise=self.noise_std, seed=run.seed)
        assert data.y is not None
        x, y = data.x[:, 0].double(), data.y.double()
        figure, axes = subplots(1, 2, size=(10.4, 4.0))
        ax = axes[0, 0]
        ax.plot(x, y, "o", color=FAINT, markersize=3)
        ends = torch.tensor([-3.0, 3.0], dtype=torch.float64)
        ax.plot(ends, SLOPE * ends + INTERCEPT, color=INK, linewidth=1.2)
        for position in (-2.0, 0.0, 2.0):
            mean = SLOPE * position + INTERCEPT
            values = torch.linspace(mean - 3.5 * self.noise_std, mean + 3.5 * self.noise_std, 120, dtype=torch.float64)
            density = normal_density(values, mean=mean, variance=self.noise_std**2)
            ax.fill_betweenx(
                values, position, position + 1.1 * density / density.max(), color=PALETTE[0], alpha=0.4, linewidth=0
            )
        ax.set(xlabel="x", ylabel="y", xlim=(-3.2, 3.4), title="y = 2x + 1 + ε")
        slopes = torch.arange(1.4, 2.6, 0.01, dtype=torch.float64)
        squared = torch.stack([half_mean_squared_error(w * x + INTERCEPT, y) for w in slopes])
        best = {}
        for sigma, colour in zip((0.4, self.noise_std, 1.6), PALETTE, strict=False):
            loss = torch.stack([normal_nll(w * x + INTERCEPT, y, sigma=sigma).mean() for w in slopes])
            best[sigma] = float(slopes[loss.argmin()])
            axes[0, 1].plot(slopes, loss, color=colour, label=f"−log P / n, σ = {sigma:g}")
            axes[0, 1].plot(best[sigma], loss.min(), "o", color=colour)
        axes[0, 1].plot(slopes, squared, color=INK, linestyle="--", linewidth=1.4, label="½ mean squared error")
        least_squares = float((x * (y - INTERCEPT)).sum() / x.square().sum())
        axes[0, 1].axvline(least_squares, color=FAINT, linestyle=":", linewidth=1.4)
        axes[0, 1].set(xlabel="slope w", ylim=(0, 5.2), title="negative log-likelihood")
        axes[0, 1].legend(loc="upper right")
        run.figure(
            "Gaussian noise and squared error",
            figure,
            "Left: y is normally distributed around the line. Right: negative log-likelihood of the slope for three "
            "assumed σ; each is an affine function of the squared error, and all are minimal at the least-squares "
            "slope (dotted).",
        )
        return {
            "slope_difference": max(abs(each - least_squares) for each in best.values()),
            "sigma_ratio": float(normal_std_mle(least_squares * x + INTERCEPT, y)) / self.noise_std,
        }


def plot_normal_densities(run: Run) -> dict[str, float]:
    figure, axes = subplots(size=(7.4, 3.6))
    x = torch.linspace(-7, 6, 600, dtype=torch.float64)
    masses, variances = [], []
    for (mean, sigma), colour in zip(NORMALS, PALETTE, strict=False):
        axes[0, 0].plot(
            x,
            normal_density(x, mean=mean, variance=sigma**2),
            color=colour,
            label=f"μ = {mean:g}, σ = {sigma:g}".replace("-", "−"),
        )
        within = x[(x - mean).abs() <= sigma]
        axes[0, 0].fill_between(
            within, normal_density(within, mean=mean, variance=sigma**2), color=colour, alpha=0.15, linewidth=0
        )
        masses.append(_central_moment(0, mean, sigma) - 1)
        variances.append(_central_moment(2, mean, sigma) - sigma**2)
    axes[0, 0].set(xlabel="x", ylabel="p(x)")
    axes[0, 0].legend()
    run.figure(
        "normal densities",
        figure,
        "Normal densities. μ shifts the density and σ scales it; the integral is 1, and 68 % of the mass lies within "
        "one σ of the mean (shaded).",
    )
    return {
        "integral_error": max(abs(float(each)) for each in masses),
        "variance_error": max(abs(float(each)) for each in variances),
    }


def _central_moment(power: int, mean: float, sigma: float) -> Tensor:
    return expectation_by_quadrature(
        lambda x: (x - mean) ** power,
        lambda x: normal_density(x, mean=mean, variance=sigma**2),
        low=mean - 12 * sigma,
        high=mean + 12 * sigma,
    )


def plot_likelihood_products(run: Run) -> dict[str, float]:
    """The product of densities against the number of factors, until it underflows or overflows."""
    unit = standard_normal(1_000, seed=run.seed)
    figure, axes = subplots(size=(7.4, 3.6))
    limits, sums = {}, {}
    for sigma, colour in ((3.0, PALETTE[0]), (0.01, PALETTE[1])):
        loss = normal_nll(torch.zeros_like(unit), sigma * unit, sigma=sigma)
        product = (-loss).exp().cumprod(0)
        out_of_range = (product == 0) | (product == inf)
        limits[sigma] = float(out_of_range.double().argmax()) + 1
        sums[sigma] = float(-loss.sum())
        exponent = -loss.cumsum(0) / log(10)
        axes[0, 0].plot(exponent, color=colour, linestyle="--", linewidth=1.2)
        axes[0, 0].plot(exponent[~out_of_range], color=colour, linewidth=2.4, label=f"σ = {sigma:g}")
    for limit in (torch.finfo(torch.float64).max, 5e-324):
        axes[0, 0].axhline(log10(limit), color=FAINT, linestyle=":", linewidth=1.4)
    axes[0, 0].set(xlabel="points", ylabel="log₁₀ of the likelihood", ylim=(-800, 800))
    axes[0, 0].legend()
    run.figure(
        "underflow and overflow of the likelihood",
        figure,
        "Likelihood against the number of points, as a product (thick) and as a sum of logarithms (dashed). Dotted: "
        "the range of positive float64 values, outside which the product is 0 or ∞.",
    )
    return {
        "points_to_underflow": limits[3.0],
        "points_to_overflow": limits[0.01],
        "log_likelihood": sums[3.0],
    }
