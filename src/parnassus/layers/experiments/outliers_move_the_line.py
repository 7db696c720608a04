"""One bad point drags the least-squares line as far as it likes; robust lines hold (Zhao sec. 3)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import log10
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from parnassus.data.toy import linear
from parnassus.layers import LinearRegression, absolute_weights, huber_weights, leverages, reweighted_least_squares
from parnassus.losses import absolute_error, half_squared_error, huber
from parnassus.report import INK, PALETTE, curves, network_diagram, subplots
from parnassus.train import Run, at_most, between

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("Z3.1", "Z3.2", "Z3.7")
expected = {
    "squared_moved": between(
        0.999, 1.001, "how far the largest outlier tilts the squared fit, over theory's prediction"
    ),
    "absolute_moved": at_most(0.2, "the same for the absolute fit, in units of slope"),
    "huber_moved": at_most(0.2, "the same for the Huber fit, in units of slope"),
    "squared_error_clean": at_most(0.2, "distance of the squared fit from the true slope without an outlier"),
    "absolute_error_clean": at_most(0.2, "the same for the absolute fit"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"sizes": 4}, "gpu": {}}

Fit = Callable[[Tensor, Tensor], LinearRegression]


@dataclass(frozen=True)
class Experiment:
    points: int = 30  # points about the line
    noise: float = 0.3  # standard deviation of their noise
    slope: float = 1.0  # of the true line
    border: float = 0.5  # where Huber's error turns from a parabola into a line
    largest: float = 100.0  # how far the outlier is raised at most
    sizes: int = 30  # heights of the outlier that are tried

    def __call__(self, run: Run) -> dict[str, float]:
        drawn = linear(self.points, (self.slope,), 0.0, noise=self.noise, seed=run.seed)
        assert drawn.y is not None
        x, y = drawn.x.double(), drawn.y.double()
        fits: dict[str, Fit] = {
            "squared": LinearRegression.fit,
            "absolute": lambda x, y: reweighted_least_squares(x, y, absolute_weights),
            "Huber": lambda x, y: reweighted_least_squares(x, y, partial(huber_weights, border=self.border)),
        }
        bad = int(x[:, 0].argmax())  # at the edge, where it has most leverage
        sizes = torch.cat([torch.zeros(1), torch.logspace(-1, log10(self.largest), self.sizes)]).double()
        slopes = {
            name: torch.stack([fit(x, raised(y, bad, size)).w[0] for size in sizes]) for name, fit in fits.items()
        }

        run.figure(
            "the model",
            network_diagram((5, 1), units=[["x₁", "x₂", "x₃", "x₄", "x₅"], ["o₁"]]),
            "Linear regression as a network of one layer: every feature joined to one output (Zhao fig. 1). Here there "
            "is a single feature, so that the fit is a line.",
        )
        run.figure(
            "one outlier",
            with_outlier(x[:, 0], raised(y, bad, torch.tensor(8.0)), fits, self.slope),
            "One point of thirty has been raised by 8. The squared fit turns towards it, the other two hardly.",
        )
        run.figure(
            "the slope follows",
            curves(
                {name: (sizes[1:], (line[1:] - line[0]).abs().clamp(min=1e-4)) for name, line in slopes.items()},
                x_label="how far one point is raised",
                y_label="change of the slope",
                log_x=True,
                log_y=True,
            ),
            "The squared fit follows in proportion, without end. Once the line has let go of the point, the other two "
            "no longer ask how far away it is.",
        )
        run.figure(
            "three errors",
            errors_and_pulls(self.border),
            "What a residual costs, and how hard it pulls (the derivative): in proportion, always alike, or alike "
            "beyond a border.",
        )
        deviation = x[:, 0] - x.mean()
        predicted = self.largest * float(deviation[bad] / deviation.square().sum())
        moved = {name: float((line[-1] - line[0]).abs()) for name, line in slopes.items()}
        run.note(
            "what to see",
            f"Raising the point by {self.largest:g} tilts the least-squares line by {moved['squared']:.2f}, exactly "
            f"the {predicted:.2f} that δ(x − x̄)/S_xx predicts; its leverage is "
            f"{float(leverages(x)[bad]):.2f}. The absolute fit moves by {moved['absolute']:.3f}, Huber's by "
            f"{moved['Huber']:.3f}. The price is small: without the outlier, all three lie near the true slope.",
        )
        return {
            "squared_moved": moved["squared"] / predicted,
            "absolute_moved": moved["absolute"],
            "huber_moved": moved["Huber"],
            "squared_error_clean": abs(float(slopes["squared"][0]) - self.slope),
            "absolute_error_clean": abs(float(slopes["absolute"][0]) - self.slope),
        }


def raised(y: Tensor, row: int, size: Tensor) -> Tensor:
    moved = y.clone()
    moved[row] += size
    return moved


def with_outlier(x: Tensor, y: Tensor, fits: dict[str, Fit], slope: float) -> "Figure":
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


def errors_and_pulls(border: float) -> "Figure":
    residual = torch.linspace(-3, 3, 301, dtype=torch.float64, requires_grad=True)
    zero = torch.zeros(301, dtype=torch.float64)
    kinds = {
        "squared": half_squared_error(residual, zero),
        "absolute": absolute_error(residual, zero),
        "Huber": huber(residual, zero, border=border),
    }
    figure, axes = subplots(1, 2, size=(9.0, 3.4))
    place = residual.detach()
    for (name, error), colour in zip(kinds.items(), PALETTE, strict=False):
        (pull,) = torch.autograd.grad(error.sum(), residual)
        axes[0, 0].plot(place, error.detach(), color=colour, label=name)
        axes[0, 1].plot(place, pull, color=colour)
    axes[0, 0].set(xlabel="residual", title="error")
    axes[0, 1].set(xlabel="residual", title="pull")
    axes[0, 0].legend()
    return figure
