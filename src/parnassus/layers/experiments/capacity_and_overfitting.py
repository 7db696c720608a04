"""Polynomials of growing degree: too simple, about right, too flexible (book sec. 1.2)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from parnassus.layers import LinearRegression, polynomial_features
from parnassus.losses import mean_squared_error
from parnassus.report import INK, PALETTE, curves, subplots
from parnassus.train import Run, at_least, between, reported

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B1.2-3", "B1.3-1")
expected = {
    "best_degree": between(3, 4, "degree with the least error on unseen points"),
    "seen_error_of_largest": between(0.0, 1e-9, "error of the largest degree on the points it was fitted to"),
    "price_of_underfitting": reported("unseen error of the smallest degree over the least"),
    "price_of_overfitting": at_least(500.0, "unseen error of the largest degree over the least"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"draws": 20}, "gpu": {}}


@dataclass(frozen=True)
class Experiment:
    points: int = 16  # noisy points to fit
    noise: float = 0.3  # standard deviation of the noise
    degree: int = 15  # largest degree; with points − 1 the fit is perfect
    draws: int = 200  # draws of the noise to average over

    def __call__(self, run: Run) -> dict[str, float]:
        x = torch.linspace(-1, 1, self.points, dtype=torch.float64)
        unseen = torch.linspace(-1, 1, 500, dtype=torch.float64)
        noise = self.noise * torch.randn(self.draws, self.points, dtype=torch.float64)
        degrees = list(range(1, self.degree + 1))

        seen_error = torch.zeros(self.draws, len(degrees), dtype=torch.float64)
        unseen_error = torch.zeros_like(seen_error)
        for draw in range(self.draws):
            y = truth(x) + noise[draw]
            for index, degree in enumerate(degrees):
                model = LinearRegression.fit(polynomial_features(x, degree), y)
                seen_error[draw, index] = mean_squared_error(model.predict(polynomial_features(x, degree)), y)
                fitted = model.predict(polynomial_features(unseen, degree))
                unseen_error[draw, index] = mean_squared_error(fitted, truth(unseen))

        run.figure(
            "three fits",
            three_fits(x, truth(x) + noise[0], (1, 3, self.degree)),
            "One draw of the noise; dashed, the curve behind it. A line misses the trend, the largest degree "
            "hits every point and nothing else.",
        )
        lines = {"on the points fitted": seen_error, "on the curve behind them": unseen_error}
        shown = {name: (degrees, error.median(0).values.clamp_min(1e-12)) for name, error in lines.items()}
        by_degree = curves(shown, x_label="degree of the polynomial", y_label="mean squared error", log_y=True)
        by_degree.axes[0].set_ylim(bottom=1e-3)  # the perfect fit lies far below, at rounding error
        run.figure(
            "error by degree",
            by_degree,
            f"Median over {self.draws} draws of the noise. Training error only falls; the other falls, then rises.",
        )
        typical = unseen_error.median(0).values
        best = int(typical.argmin())
        run.note(
            "what to see",
            f"Degree {degrees[best]} is best. A line is {float(typical[0] / typical[best]):.1f} times worse because it "
            f"cannot bend; degree {self.degree} is {float(typical[-1] / typical[best]):.0f} times worse although it "
            "makes no error at all on its own points: it has learned the noise.",
        )
        return {
            "best_degree": float(degrees[best]),
            "seen_error_of_largest": float(seen_error[:, -1].max()),
            "price_of_underfitting": float(typical[0] / typical[best]),
            "price_of_overfitting": float(typical[-1] / typical[best]),
        }


def truth(x: Tensor) -> Tensor:
    return torch.sin(3 * x)


def three_fits(x: Tensor, y: Tensor, degrees: tuple[int, int, int]) -> "Figure":
    fine = torch.linspace(-1, 1, 800, dtype=torch.float64)
    figure, axes = subplots(1, 3, size=(10.0, 3.4))
    for ax, degree, colour in zip(axes[0], degrees, PALETTE, strict=False):
        model = LinearRegression.fit(polynomial_features(x, degree), y)
        ax.plot(fine, truth(fine), color=INK, linestyle="--", linewidth=1)
        ax.plot(fine, model.predict(polynomial_features(fine, degree)), color=colour)
        ax.scatter(x, y, color=INK, s=18, zorder=3)
        ax.set(ylim=(-2.2, 2.2), xlabel="x", title=f"degree {degree}")
    return figure
