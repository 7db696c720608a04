"""Random features approximate a kernel: Gram matrix, ridge regression and time (Diehl sec. 4.1)."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from parnassus.attention import (
    FeatureRidge,
    KernelRidge,
    draw_phases,
    fourier_features,
    gaussian_directions,
    orthogonal_directions,
    positive_rbf_features,
)
from parnassus.attention.regression.kernels import similarity
from parnassus.data import DataError, TableSettings
from parnassus.layers import check_labels
from parnassus.report import FAINT, PALETTE, curves, subplots
from parnassus.setting_types import AnyData
from parnassus.train import NonNegative, Positive, Run, at_least, at_most, between, no_band

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("D4.1.7",)
expected = {
    "kernel_accuracy": at_least(0.97, "test accuracy of kernel ridge regression"),
    "fourier_accuracy": at_least(0.95, "test accuracy of ridge regression on the most Fourier features"),
    "positive_accuracy": no_band("test accuracy of ridge regression on the most positive features"),
    "gram_error_exponent": between(-0.65, -0.35, "exponent of the Gram matrix error in the number k of features"),
    "orthogonal_gram_ratio": at_most(
        0.97, "ratio of the Gram error with orthogonal to that with independent directions, mean over k"
    ),
    "prediction_difference": at_most(0.25, "relative difference of predictions from kernel ridge regression"),
    "kernel_seconds": no_band("time of the exact fit, O(n³)"),
    "fourier_seconds": no_band("time of the fit with the most Fourier features, O(n k²)"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"num_examples": 200, "feature_counts": (16, 64), "num_fits": 2, "num_draws": 2},
    "gpu": {"data": "mnist", "num_examples": 10_000, "feature_counts": (128, 512, 2_048, 8_192), "gamma": 0.02},
}


FeatureMap: TypeAlias = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class KernelRidgeTask:
    """Training data with the exact Gram matrix, and test data with the predictions of kernel ridge regression."""

    x: Tensor
    gram: Tensor
    target: Tensor
    test: Tensor
    exact: Tensor
    labels: Tensor


@dataclass(frozen=True)
class Experiment(TableSettings):
    data: AnyData = "digits"  # examples by class: name of a data set, or path of a file or folder
    image_size: Positive[int] | None = None  # resize the images of a folder to squares with sides of this many pixels
    num_examples: Positive[int] = 1_200  # maximum number of training examples
    gamma: Positive[float] = 0.05  # γ of the kernel exp(−γ‖x − y‖²)
    alpha: NonNegative[float] = 1e-5  # ridge penalty λ
    feature_counts: tuple[Positive[int], ...] = (32, 64, 128, 256, 512, 1_024)  # numbers of random features k
    num_fits: Positive[int] = 4  # regressions for each k, with new directions
    num_draws: Positive[int] = 64  # draws over which the error of the Gram matrix is averaged
    gram_size: Positive[int] = 300  # maximum number of examples in the Gram matrix

    def __call__(self, run: Run) -> dict[str, float]:
        data = self.load_data(self.image_size).to(run.device)
        if len(data.train) < 2:
            raise DataError(f"{self.data} must have at least 2 training examples; got {len(data.train)}")
        train = data.train.take(self.num_examples)
        classes = len(data.classes)
        train_labels, labels = check_labels(train.y, classes), check_labels(data.test.y, classes)[:2_000]
        x, test = train.x.flatten(1).double(), data.test.x[:2_000].flatten(1).double()
        target = one_hot(train_labels.long(), classes).double()

        start = time.perf_counter()
        bandwidth = (2 * self.gamma) ** -0.5
        gram = similarity(x, x, bandwidth=bandwidth)
        ridge = KernelRidge.fit(gram, target, penalty=self.alpha)
        kernel_seconds = time.perf_counter() - start
        exact = ridge.predict(similarity(test, x, bandwidth=bandwidth))
        task = KernelRidgeTask(x, gram, target, test, exact, labels)
        maps = self.feature_maps(x.shape[1])
        errors = {name: [self.gram_error(draw, k, task) for k in self.feature_counts] for name, draw in maps.items()}
        fits = {name: [self.measure_fit(draw, k, task) for k in self.feature_counts] for name, draw in maps.items()}
        accuracy = float((exact.argmax(1) == labels).double().mean())
        self.plot_errors(run, errors)
        self.report_fits(run, fits, accuracy, kernel_seconds, len(x))
        independent, orthogonal = (torch.tensor(errors[name]) for name in ("Fourier", "Fourier, orthogonal"))
        log_k, log_error = torch.tensor(self.feature_counts).log(), independent.log()
        log_k, log_error = log_k - log_k.mean(), log_error - log_error.mean()
        return {
            "kernel_accuracy": accuracy,
            "fourier_accuracy": fits["Fourier"][-1]["accuracy"],
            "positive_accuracy": fits["positive"][-1]["accuracy"],
            "gram_error_exponent": float(log_k @ log_error / (log_k @ log_k)),
            "orthogonal_gram_ratio": float((orthogonal / independent).mean()),
            "prediction_difference": fits["Fourier"][-1]["difference"],
            "kernel_seconds": kernel_seconds,
            "fourier_seconds": fits["Fourier"][-1]["seconds"],
        }

    def feature_maps(self, width: int) -> dict[str, Callable[[int], FeatureMap]]:
        """By name, a function that draws a random feature map with a given number of features."""

        def fourier(draw: Callable[[int, int], Tensor], count: int) -> FeatureMap:
            directions, phases = draw(count, width).double(), draw_phases(count).double()
            return lambda x: fourier_features(x, directions.to(x), phases.to(x), gamma=self.gamma)

        def positive(count: int) -> FeatureMap:
            directions = orthogonal_directions(count, width).double()
            return lambda x: positive_rbf_features(x, directions.to(x), gamma=self.gamma)

        return {
            "Fourier": lambda count: fourier(gaussian_directions, count),
            "Fourier, orthogonal": lambda count: fourier(orthogonal_directions, count),
            "positive": positive,
        }

    def gram_error(self, draw: Callable[[int], FeatureMap], count: int, task: KernelRidgeTask) -> float:
        """The RMS error of an entry of the Gram matrix, over pairs of examples and draws.

        The errors of one draw are correlated over pairs: estimates from two draws differ by about a fifth, so many are
        averaged.
        """
        x, gram = task.x[: self.gram_size], task.gram[: self.gram_size, : self.gram_size]
        features = (draw(count)(x) for _ in range(self.num_draws))
        return float(torch.stack([(psi @ psi.mT - gram).square().mean() for psi in features]).mean().sqrt())

    def measure_fit(self, draw: Callable[[int], FeatureMap], count: int, task: KernelRidgeTask) -> dict[str, float]:
        """Means over draws: relative difference from kernel ridge regression, accuracy, seconds."""
        rows = []
        for _ in range(self.num_fits):
            psi = draw(count)
            start = time.perf_counter()
            features = psi(task.x)
            fit = FeatureRidge.fit(features, task.target, penalty=self.alpha)
            seconds = time.perf_counter() - start
            predicted = fit.predict(psi(task.test))
            accuracy = (predicted.argmax(1) == task.labels).double().mean()
            rows.append([float((predicted - task.exact).norm() / task.exact.norm()), float(accuracy), seconds])
        mean = torch.tensor(rows).mean(0).tolist()
        return dict(zip(("difference", "accuracy", "seconds"), mean, strict=True))

    def plot_errors(self, run: Run, errors: dict[str, list[float]]) -> None:
        lines = {name: (self.feature_counts, values) for name, values in errors.items()}
        run.figure(
            "Gram matrix",
            curves(lines, x_label="features k", y_label="RMS error of an entry", log_x=True, log_y=True),
            f"RMS error of ψ(x)ᵀψ(y) against exp(−γ‖x−y‖²) over pairs and {self.num_draws} draws. With Fourier "
            "features it decreases as 1/√k, and orthogonal directions reduce it; the variance of positive features "
            "grows with the norms of x and y, so that a few pairs and draws dominate.",
        )

    def report_fits(
        self, run: Run, fits: dict[str, list[dict[str, float]]], accuracy: float, seconds: float, rows: int
    ) -> None:
        def lines(key: str) -> dict[str, tuple[object, object]]:
            return {name: (self.feature_counts, [row[key] for row in measured]) for name, measured in fits.items()}

        run.figure(
            "regression",
            plot_fits(lines("difference"), lines("accuracy"), accuracy),
            "Ridge regression on random features converges to kernel ridge regression: relative difference of the "
            "predictions (left) and test accuracy (right).",
        )
        table: list[dict[str, str | float]] = [
            {"fit": f"k = {count}", "time (s)": row["seconds"], "accuracy": row["accuracy"]}
            for count, row in zip(self.feature_counts, fits["Fourier"], strict=True)
        ]
        table.append({"fit": f"kernel ridge, n = {rows}", "time (s)": seconds, "accuracy": accuracy})
        run.table(
            "fit time",
            table,
            "Time to fit ridge regression on Fourier features, O(n k²), and kernel ridge regression, O(n³).",
        )


def plot_fits(
    differences: dict[str, tuple[object, object]], accuracies: dict[str, tuple[object, object]], exact: float
) -> "Figure":
    """Difference from kernel ridge regression, and accuracy, against the number of features."""
    figure, axes = subplots(1, 2, size=(10.0, 3.8))
    left, right = axes[0]
    for (name, (counts, difference)), colour in zip(differences.items(), PALETTE, strict=False):
        left.loglog(counts, difference, "o-", color=colour, label=name, markersize=4)
        right.semilogx(*accuracies[name], "o-", color=colour, markersize=4)
    right.axhline(exact, color=FAINT, linestyle="--", linewidth=1.2, label="kernel ridge")
    left.set(xlabel="features k", ylabel="relative difference from kernel ridge")
    right.set(xlabel="features k", ylabel="test accuracy")
    left.legend()
    right.legend(loc="lower right")
    return figure
