"""Robust regression: absolute and Huber losses bound the effect of an outlier, squares do not (Zhao sec. 3)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import log10
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from parnassus.data.built_in.toy import linear
from parnassus.layers import (
    LinearRegression,
    absolute_error_weights,
    huber_weights,
    iteratively_reweighted_least_squares,
    leverages,
)
from parnassus.losses import absolute_error, half_squared_error, huber_loss
from parnassus.report import INK, PALETTE, curves, network_diagram, subplots
from parnassus.train import NonNegative, Positive, Run, at_most, between

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("Z3.1", "Z3.2", "Z3.7")
expected = {
    "squared_slope_change_ratio": between(
        0.999, 1.001, "ratio of the least-squares slope change for the largest outlier to its prediction"
    ),
    "absolute_slope_change": at_most(0.2, "slope change of the absolute-error fit for the largest outlier"),
    "huber_slope_change": at_most(0.2, "slope change of the Huber fit for the largest outlier"),
    "squared_slope_error_clean": at_most(0.2, "slope error of the least-squares fit without an outlier"),
    "absolute_slope_error_clean": at_most(0.2, "slope error of the absolute-error fit without an outlier"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"num_shifts": 4}, "gpu": {}}

Fit = Callable[[Tensor, Tensor], LinearRegression]


@dataclass(frozen=True)
class Experiment:
    num_points: Positive[int] = 30  # training points
    noise_std: NonNegative[float] = 0.3  # standard deviation of the noise
    slope: float = 1.0  # slope of the true line
    huber_delta: Positive[float] = 0.5  # threshold between quadratic and linear Huber loss
    max_shift: Positive[float] = 100.0  # largest shift of the outlier
    num_shifts: Positive[int] = 30  # number of shifts to evaluate

    def __call__(self, run: Run) -> dict[str, float]:
        data = linear(self.num_points, (self.slope,), 0.0, noise=self.noise_std, seed=run.seed)
        assert data.y is not None
        x, y = data.x.double(), data.y.double()
        fits: dict[str, Fit] = {
            "squared": LinearRegression.fit,
            "absolute": lambda x, y: iteratively_reweighted_least_squares(x, y, absolute_error_weights),
            "Huber": lambda x, y: iteratively_reweighted_least_squares(
                x, y, partial(huber_weights, delta=self.huber_delta)
            ),
        }
        outlier = int(x[:, 0].argmax())  # an end point, which has a high leverage
        shifts = torch.cat([torch.zeros(1), torch.logspace(-1, log10(self.max_shift), self.num_shifts)]).double()
        slopes = {
            name: torch.stack([fit(x, shift_target(y, outlier, shift)).w[0] for shift in shifts])
            for name, fit in fits.items()
        }

        run.figure(
            "linear network",
            network_diagram((5, 1), units=[["x₁", "x₂", "x₃", "x₄", "x₅"], ["o₁"]]),
            "Linear regression as a network of one layer: every feature is connected to one output (Zhao fig. 1). This "
            "experiment uses a single feature.",
        )
        run.figure(
            "one outlier",
            plot_fits(x[:, 0], shift_target(y, outlier, torch.tensor(8.0)), fits, self.slope),
            f"One of {self.num_points} points is shifted by 8. Least squares changes most.",
        )
        run.figure(
            "slope change by shift",
            curves(
                {name: (shifts[1:], (line[1:] - line[0]).abs().clamp(min=1e-4)) for name, line in slopes.items()},
                x_label="shift of the outlier",
                y_label="slope change",
                log_x=True,
                log_y=True,
            ),
            "The least-squares slope changes in proportion to the shift. The other two fits do not depend on the "
            "shift once it is large.",
        )
        run.figure(
            "loss functions",
            plot_losses(self.huber_delta),
            "Losses and their derivatives: proportional to the residual (squared), of constant magnitude "
            "(absolute), and of constant magnitude beyond δ (Huber).",
        )
        deviation = x[:, 0] - x.mean()
        predicted_change = self.max_shift * float(deviation[outlier] / deviation.square().sum())
        slope_changes = {name: float((line[-1] - line[0]).abs()) for name, line in slopes.items()}
        run.note(
            "results",
            f"Shifting the point by {self.max_shift:g} changes the least-squares slope by "
            f"{slope_changes['squared']:.2f}; the prediction, shift · (x − x̄)/S_xx, is {predicted_change:.2f}, and "
            f"the leverage of the point is {float(leverages(x)[outlier]):.2f}. The slope of the absolute-error fit "
            f"changes by {slope_changes['absolute']:.3f}, that of Huber by {slope_changes['Huber']:.3f}. Without the "
            "outlier all three are close to the true slope.",
        )
        return {
            "squared_slope_change_ratio": slope_changes["squared"] / predicted_change,
            "absolute_slope_change": slope_changes["absolute"],
            "huber_slope_change": slope_changes["Huber"],
            "squared_slope_error_clean": abs(float(slopes["squared"][0]) - self.slope),
            "absolute_slope_error_clean": abs(float(slopes["absolute"][0]) - self.slope),
        }


def shift_target(y: Tensor, row: int, shift: Tensor) -> Tensor:
    shifted = y.clone()
    shifted[row] += shift
    return shifted


def plot_fits(x: Tensor, y: Tensor, fits: dict[str, Fit], slope: float) -> "Figure":
    figure, axes = subplots(size=(6.4, 4.2))
    ax = axes[0, 0]
    ends = torch.stack([x.min() - 0.2, x.max() + 0.2])
    ax.plot(ends, slope * ends, color=INK, linestyle="--", linewidth=1, label="true line")
    for (name, fit), colour in zip(fits.items(), PALETTE, strict=False):
        ax.plot(ends, fit(x[:, None], y).predict(ends[:, None]), color=colour, label=name)
    ax.scatter(x, y, color=INK, s=16, zorder=3)
    ax.set(xlabel="x", ylabel="y")
    ax.legend()
    return figure


def plot_losses(delta: float) -> "Figure":
    residual = torch.linspace(-3, 3, 301, dtype=torch.float64, requires_grad=True)
    zero = torch.zeros(301, dtype=torch.float64)
    kinds = {
        "squared": half_squared_error(residual, zero),
        "absolute": absolute_error(residual, zero),
        "Huber": huber_loss(residual, zero, delta=delta),
    }
    figure, axes = subplots(1, 2, size=(9.0, 3.4))
    x = residual.detach()
    for (name, error), colour in zip(kinds.items(), PALETTE, strict=False):
        (derivative,) = torch.autograd.grad(error.sum(), residual)
        axes[0, 0].plot(x, error.detach(), color=colour, label=name)
        axes[0, 1].plot(x, derivative, color=colour)
    axes[0, 0].set(xlabel="residual", title="loss")
    axes[0, 1].set(xlabel="residual", title="derivative")
    axes[0, 0].legend()
    return figure
