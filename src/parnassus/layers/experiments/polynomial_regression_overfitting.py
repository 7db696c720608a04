"""Polynomial regression: underfitting and overfitting by degree (book sec. 1.2)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from parnassus.layers import LinearRegression, polynomial_features
from parnassus.losses import mean_squared_error
from parnassus.report import INK, PALETTE, curves, subplots
from parnassus.train import NonNegative, Positive, Run, at_least, between, no_band

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B1.2-3", "B1.3-1")
expected = {
    "best_degree": between(3, 4, "degree with the smallest test error"),
    "training_error_largest_degree": between(0.0, 1e-9, "training error of the largest degree"),
    "underfitting_ratio": no_band("ratio of the test error of degree 1 to the smallest test error"),
    "overfitting_ratio": at_least(500.0, "ratio of the test error of the largest degree to the smallest test error"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"num_draws": 20}, "gpu": {}}


@dataclass(frozen=True)
class Experiment:
    num_points: Positive[int] = 16  # noisy training points
    noise_std: NonNegative[float] = 0.3  # standard deviation of the noise
    max_degree: Positive[int] = 15  # largest degree; with num_points − 1 the fit interpolates
    num_draws: Positive[int] = 200  # independent draws of the noise

    def __call__(self, run: Run) -> dict[str, float]:
        x = torch.linspace(-1, 1, self.num_points, dtype=torch.float64)
        test_x = torch.linspace(-1, 1, 500, dtype=torch.float64)
        noise = self.noise_std * torch.randn(self.num_draws, self.num_points, dtype=torch.float64)
        degrees = list(range(1, self.max_degree + 1))

        training_error = torch.zeros(self.num_draws, len(degrees), dtype=torch.float64)
        test_error = torch.zeros_like(training_error)
        for draw in range(self.num_draws):
            y = true_function(x) + noise[draw]
            for index, degree in enumerate(degrees):
                model = LinearRegression.fit(polynomial_features(x, degree), y)
                training_error[draw, index] = mean_squared_error(model.predict(polynomial_features(x, degree)), y)
                fitted = model.predict(polynomial_features(test_x, degree))
                test_error[draw, index] = mean_squared_error(fitted, true_function(test_x))

        run.figure(
            "polynomial fits",
            plot_fits(x, true_function(x) + noise[0], (1, 3, self.max_degree)),
            "One draw of the noise; dashed: the true function. Degree 1 underfits; the largest degree interpolates all "
            "points and overfits.",
        )
        lines = {"training error": training_error, "test error": test_error}
        medians = {name: (degrees, error.median(0).values.clamp_min(1e-12)) for name, error in lines.items()}
        by_degree = curves(medians, x_label="degree of the polynomial", y_label="mean squared error", log_y=True)
        by_degree.axes[0].set_ylim(bottom=1e-3)  # the interpolating fit has an error of rounding size
        run.figure(
            "error by degree",
            by_degree,
            f"Median over {self.num_draws} draws of the noise. The training error decreases; the test error has a "
            "minimum.",
        )
        typical = test_error.median(0).values
        best = int(typical.argmin())
        run.note(
            "results",
            f"Degree {degrees[best]} has the smallest test error. That of degree 1 is "
            f"{float(typical[0] / typical[best]):.1f} times larger (underfitting); that of degree {self.max_degree} is "
            f"{float(typical[-1] / typical[best]):.0f} times larger although its training error is 0: it fits the "
            "noise.",
        )
        return {
            "best_degree": float(degrees[best]),
            "training_error_largest_degree": float(training_error[:, -1].max()),
            "underfitting_ratio": float(typical[0] / typical[best]),
            "overfitting_ratio": float(typical[-1] / typical[best]),
        }


def true_function(x: Tensor) -> Tensor:
    return torch.sin(3 * x)


def plot_fits(x: Tensor, y: Tensor, degrees: tuple[int, int, int]) -> "Figure":
    fine = torch.linspace(-1, 1, 800, dtype=torch.float64)
    figure, axes = subplots(1, 3, size=(10.0, 3.4))
    for ax, degree, colour in zip(axes[0], degrees, PALETTE, strict=False):
        model = LinearRegression.fit(polynomial_features(x, degree), y)
        ax.plot(fine, true_function(fine), color=INK, linestyle="--", linewidth=1)
        ax.plot(fine, model.predict(polynomial_features(fine, degree)), color=colour)
        ax.scatter(x, y, color=INK, s=18, zorder=3)
        ax.set(ylim=(-2.2, 2.2), xlabel="x", title=f"degree {degree}")
    return figure
