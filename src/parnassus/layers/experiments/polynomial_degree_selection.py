"""Polynomial degree selection: under- and overfitting by sample size, and k-fold cross-validation (Zhao sec. 3)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from parnassus.data.built_in.toy import polynomial
from parnassus.layers import LinearRegression, leave_one_out_residuals, polynomial_features
from parnassus.losses import mean_squared_error
from parnassus.optim import cross_validate
from parnassus.report import INK, PALETTE, curves, heatmap, subplots
from parnassus.train import Positive, Run, at_least, at_most, between

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("Z3.9", "Z3.10", "Z3.11", "Z3.12", "Z3.13", "Z3.14")
expected = {
    "best_degree": between(3, 3, "degree with the smallest median test error; the true polynomial is a cubic"),
    "selected_degree": between(3, 4, "degree most often selected by cross-validation"),
    "selection_error_ratio": between(
        0.95, 1.6, "median ratio of the test error of the selected degree to that of the true degree"
    ),
    "underfitting_ratio": at_least(5.0, "ratio of the test error of degree 1 to the minimum"),
    "overfitting_ratio": at_least(5.0, "ratio of the test error of the largest degree to the minimum"),
    "cubic_generalisation_gap": at_most(0.1, "relative generalisation gap of a cubic, largest sample"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"num_repeats": 2, "train_sizes": (20, 50), "num_folds": 3, "max_degree": 12},
    "gpu": {},
}

Data = tuple[Tensor, Tensor]
FLOOR = 1e-5  # smallest error shown on the logarithmic axis


@dataclass(frozen=True)
class Experiment:
    num_points: Positive[int] = 30  # training points for the comparison of degrees
    noise_std: Positive[float] = 0.1  # standard deviation of the noise
    max_degree: Positive[int] = 15  # largest polynomial degree
    train_sizes: tuple[Positive[int], ...] = (20, 30, 50, 80, 120, 200, 400, 1_000)  # training set sizes to compare
    num_folds: Positive[int] = 10  # cross-validation folds
    num_repeats: Positive[int] = 30  # random training sets

    def __call__(self, run: Run) -> dict[str, float]:
        test_data = self.sample_data(5_000, 10**6 + run.seed)
        degrees = range(1, self.max_degree + 1)
        errors = {
            size: self.compute_errors(run, size, test_data) for size in sorted({*self.train_sizes, self.num_points})
        }
        train_error, test_error = errors[self.num_points].median(0).values.unbind(-1)
        selected, cv_errors, loo_errors, error_ratio = self.select_degrees(run, test_data)

        run.figure(
            "underfitting and overfitting",
            plot_fits(self.sample_data(self.num_points, run.seed), (1, 3, self.max_degree)),
            "Fits to noisy values of a cubic: degree 1 underfits, degree 3 fits, the largest degree fits the noise.",
        )
        lines = {
            "training error": train_error.clamp(min=FLOOR),
            "test error": test_error,
            f"{self.num_folds}-fold cross-validation": cv_errors,
            "leave-one-out, closed form": loo_errors,
        }
        error_figure = curves(
            {name: (degrees, line) for name, line in lines.items()},
            x_label="degree",
            y_label="mean squared error",
            log_y=True,
            marks={"true degree": 3.0},
        )
        error_figure.axes[0].legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
        run.figure(
            "error by degree",
            error_figure,
            f"Medians over {self.num_repeats} data sets of {self.num_points} points. The training error decreases "
            "monotonically, the test error is U-shaped. Cross-validation recovers the U from the training points "
            "alone.",
        )
        table = torch.stack([errors[size].median(0).values[:, 1] for size in self.train_sizes], 1)
        run.figure(
            "degree and sample size",
            heatmap(
                (table / self.noise_std**2).log10(),
                row_labels=[str(degree) for degree in degrees],
                column_labels=[str(size) for size in self.train_sizes],
                x_label="points",
                y_label="degree",
            ),
            "log₁₀(test error / noise variance): 0 is optimal. Degrees below 3 are biased for every "
            "sample size; higher degrees need more points.",
        )
        run.figure(
            "error by sample size",
            plot_errors_by_size(
                {
                    degree: torch.stack([errors[n].median(0).values[degree - 1] for n in self.train_sizes])
                    for degree in (1, 3, 12)
                },
                self.train_sizes,
            ),
            "Training error (dashed) and test error (solid). They converge as the sample grows: early for a simple "
            "model, late for a complex one, and to a large value for a model that underfits.",
        )
        counts = torch.bincount(torch.tensor(selected), minlength=self.max_degree + 1)
        best = int(test_error.argmin())
        large_sample = errors[max(self.train_sizes)].median(0).values[2]
        run.note(
            "results",
            f"Degree {best + 1} has the smallest test error. {self.num_folds}-fold cross-validation on "
            f"{self.num_points} points selected degree 3 in {int(counts[3])} of {self.num_repeats} data sets and "
            f"never a degree below {min(selected)}; the median ratio of the test error of its choice to that of a "
            f"cubic is {error_ratio:.2f}.",
        )
        return {
            "best_degree": float(best + 1),
            "selected_degree": float(counts.argmax()),
            "selection_error_ratio": error_ratio,
            "underfitting_ratio": float(test_error[0] / test_error[best]),
            "overfitting_ratio": float(test_error[-1] / test_error[best]),
            "cubic_generalisation_gap": float(1 - large_sample[0] / large_sample[1]),
        }

    def sample_data(self, num_points: int, seed: int) -> Data:
        data = polynomial(num_points, noise=self.noise_std, seed=seed)
        assert data.y is not None
        return data.x[:, 0].double(), data.y[:, 0].double()

    def compute_errors(self, run: Run, size: int, test_data: Data) -> Tensor:
        """Training and test errors: repeats × degrees × 2."""
        sets = [self.sample_data(size, 1_000 * run.seed + repeat) for repeat in range(self.num_repeats)]
        return torch.stack(
            [
                torch.tensor([fit_and_evaluate(rows, test_data, degree) for degree in range(1, self.max_degree + 1)])
                for rows in sets
            ]
        )

    def select_degrees(self, run: Run, test_data: Data) -> tuple[list[int], Tensor, Tensor, float]:
        """Selected degrees, median k-fold and leave-one-out errors, and median test error relative to a cubic."""
        selected, cv_errors, loo_errors, error_ratios = [], [], [], []
        for repeat in range(self.num_repeats):
            rows = self.sample_data(self.num_points, 1_000 * run.seed + repeat)
            estimates = [self.cross_validation_error(rows, degree, repeat) for degree in range(1, self.max_degree + 1)]
            selected.append(min(range(self.max_degree), key=estimates.__getitem__) + 1)
            cv_errors.append(estimates)
            loo_errors.append(
                [
                    float(leave_one_out_residuals(polynomial_features(rows[0], degree), rows[1]).square().mean())
                    for degree in range(1, self.max_degree + 1)
                ]
            )
            error_ratios.append(
                fit_and_evaluate(rows, test_data, selected[-1])[1] / fit_and_evaluate(rows, test_data, 3)[1]
            )
        cv_medians, loo_medians = (torch.tensor(values).median(0).values for values in (cv_errors, loo_errors))
        return selected, cv_medians, loo_medians, float(torch.tensor(error_ratios).median())

    def cross_validation_error(self, rows: Data, degree: int, seed: int) -> float:
        x, y = rows

        def errors(train: Tensor, validation: Tensor) -> tuple[float, float]:
            return fit_and_evaluate((x[train], y[train]), (x[validation], y[validation]), degree)

        generator = torch.Generator().manual_seed(seed)
        return cross_validate(len(x), self.num_folds, errors, generator=generator).validation_error


def fit_and_evaluate(train: Data, test: Data, degree: int) -> tuple[float, float]:
    """Fit a polynomial of this degree and return its training and test error."""
    model = LinearRegression.fit(polynomial_features(train[0], degree), train[1])
    train_error, test_error = (
        float(mean_squared_error(model.predict(polynomial_features(x, degree)), y)) for x, y in (train, test)
    )
    return train_error, test_error


def plot_fits(rows: Data, degrees: tuple[int, int, int]) -> "Figure":
    grid = torch.linspace(-1, 1, 400, dtype=torch.float64)
    figure, axes = subplots(1, 3, size=(10.0, 3.2))
    for ax, degree, colour in zip(axes[0], degrees, PALETTE, strict=False):
        model = LinearRegression.fit(polynomial_features(rows[0], degree), rows[1])
        ax.plot(grid, model.predict(polynomial_features(grid, degree)), color=colour)
        ax.scatter(*rows, color=INK, s=12, zorder=3)
        ax.set(xlabel="x", title=f"degree {degree}", ylim=(float(rows[1].min()) - 0.5, float(rows[1].max()) + 0.5))
    return figure


def plot_errors_by_size(lines: dict[int, Tensor], sizes: tuple[int, ...]) -> "Figure":
    figure, axes = subplots()
    ax = axes[0, 0]
    for (degree, errors), colour in zip(lines.items(), PALETTE, strict=False):
        ax.plot(sizes, errors[:, 0], color=colour, linestyle="--", linewidth=1.2)
        ax.plot(sizes, errors[:, 1], color=colour, label=f"degree {degree}", marker="o", markersize=4)
    ax.set(xlabel="points", ylabel="mean squared error", xscale="log", yscale="log")
    ax.legend()
    return figure
