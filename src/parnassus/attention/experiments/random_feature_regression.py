"""Random features in place of a kernel: the Gram matrix, ridge regression, and the time it takes (Diehl sec. 4.1)."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

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
from parnassus.attention.kernels import similarity
from parnassus.data import DataError, open_data
from parnassus.layers import require_labels
from parnassus.report import FAINT, PALETTE, curves, subplots
from parnassus.train import Run, at_least, at_most, between, reported

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("D4.1.7",)
expected = {
    "kernel_accuracy": at_least(0.97, "share of unseen examples that kernel ridge names right"),
    "fourier_accuracy": at_least(0.95, "the same with the most Fourier features"),
    "positive_accuracy": reported("the same with as many positive features"),
    "gram_error_exponent": between(-0.65, -0.35, "slope of the Gram matrix's error against k, in logarithms"),
    "orthogonal_gram_ratio": at_most(0.97, "error with orthogonal directions over independent ones, mean over counts"),
    "gap_to_kernel_ridge": at_most(0.25, "distance between the two fits' answers, over that of kernel ridge's"),
    "kernel_seconds": reported("time of the exact fit: O(n³)"),
    "fourier_seconds": reported("time of the fit with the most features: O(n k²)"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"rows": 200, "counts": (16, 64), "fits": 2, "draws": 2},
    "gpu": {"data": "mnist", "rows": 10_000, "counts": (128, 512, 2_048, 8_192), "gamma": 0.02},
}


@dataclass(frozen=True)
class Task:
    """What there is to fit, the exact kernel's matrix, and what kernel ridge answers for the new examples."""

    x: Tensor
    gram: Tensor
    target: Tensor
    new: Tensor
    answers: Tensor
    truth: Tensor


@dataclass(frozen=True)
class Experiment:
    data: str = "digits"  # examples with classes: digits, mnist_mini, mnist, or a file or folder of yours
    rows: int = 1_200  # training examples at most
    gamma: float = 0.05  # γ of the kernel exp(−γ‖x − y‖²)
    penalty: float = 1e-5  # λ of the ridge
    counts: tuple[int, ...] = (32, 64, 128, 256, 512, 1_024)  # random features
    fits: int = 4  # draws of the directions with which a ridge is fitted, for each number of features
    draws: int = 64  # draws over which the error of the Gram matrix is averaged
    pairs: int = 300  # examples at most, all pairs of which make that Gram matrix

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_data(self.data).to(run.device)
        if len(data.train) < 2:
            raise DataError(f"{self.data} has too few examples")
        train = data.train.take(self.rows)
        classes = len(data.classes)
        named, truth = require_labels(train.y, classes), require_labels(data.test.y, classes)
        x, new = train.x.flatten(1).double(), data.test.x[:2_000].flatten(1).double()
        target, truth = one_hot(named.long(), classes).double(), truth[:2_000]

        began = time.perf_counter()
        reach = (2 * self.gamma) ** -0.5
        gram = similarity(x, x, width=reach)
        exact = KernelRidge.fit(gram, target, penalty=self.penalty)
        kernel_seconds = time.perf_counter() - began
        answers = exact.predict(similarity(new, x, width=reach))
        task = Task(x, gram, target, new, answers, truth)
        kinds = self.kinds(x.shape[1])
        errors = {name: [self.error(lift, count, task) for count in self.counts] for name, lift in kinds.items()}
        found = {name: [self.measure(lift, count, task) for count in self.counts] for name, lift in kinds.items()}
        accuracy = float((answers.argmax(1) == truth).double().mean())
        self.show_errors(run, errors)
        self.show_fits(run, found, accuracy, kernel_seconds, len(x))
        independent, orthogonal = (torch.tensor(errors[name]) for name in ("Fourier", "Fourier, orthogonal"))
        across, up = torch.tensor(self.counts).log(), independent.log()
        across, up = across - across.mean(), up - up.mean()
        return {
            "kernel_accuracy": accuracy,
            "fourier_accuracy": found["Fourier"][-1]["accuracy"],
            "positive_accuracy": found["positive"][-1]["accuracy"],
            "gram_error_exponent": float(across @ up / (across @ across)),
            "orthogonal_gram_ratio": float((orthogonal / independent).mean()),
            "gap_to_kernel_ridge": found["Fourier"][-1]["gap"],
            "kernel_seconds": kernel_seconds,
            "fourier_seconds": found["Fourier"][-1]["seconds"],
        }

    def kinds(self, width: int) -> dict[str, Callable[[int], Callable[[Tensor], Tensor]]]:
        """For a number of features, a fresh random map from examples to that many."""

        def fourier(draw: Callable[[int, int], Tensor], count: int) -> Callable[[Tensor], Tensor]:
            directions, phases = draw(count, width).double(), draw_phases(count).double()
            return lambda x: fourier_features(x, directions.to(x), phases.to(x), gamma=self.gamma)

        def positive(count: int) -> Callable[[Tensor], Tensor]:
            directions = orthogonal_directions(count, width).double()
            return lambda x: positive_rbf_features(x, directions.to(x), gamma=self.gamma)

        return {
            "Fourier": lambda count: fourier(gaussian_directions, count),
            "Fourier, orthogonal": lambda count: fourier(orthogonal_directions, count),
            "positive": positive,
        }

    def error(self, lift: Callable[[int], Callable[[Tensor], Tensor]], count: int, task: Task) -> float:
        """Of an entry of the Gram matrix, root mean square over pairs of examples and over draws.

        One draw errs alike at many pairs, so that draws differ by a fifth; only over many does a law show.
        """
        x, gram = task.x[: self.pairs], task.gram[: self.pairs, : self.pairs]
        lifted = (lift(count)(x) for _ in range(self.draws))
        return float(torch.stack([(psi @ psi.mT - gram).square().mean() for psi in lifted]).mean().sqrt())

    def measure(self, lift: Callable[[int], Callable[[Tensor], Tensor]], count: int, task: Task) -> dict[str, float]:
        """Means over draws: distance from kernel ridge, accuracy, seconds."""
        rows = []
        for _ in range(self.fits):
            psi = lift(count)
            began = time.perf_counter()
            lifted = psi(task.x)
            fit = FeatureRidge.fit(lifted, task.target, penalty=self.penalty)
            seconds = time.perf_counter() - began
            said = fit.predict(psi(task.new))
            right = (said.argmax(1) == task.truth).double().mean()
            rows.append([float((said - task.answers).norm() / task.answers.norm()), float(right), seconds])
        mean = torch.tensor(rows).mean(0).tolist()
        return dict(zip(("gap", "accuracy", "seconds"), mean, strict=True))

    def show_errors(self, run: Run, errors: dict[str, list[float]]) -> None:
        lines = {name: (self.counts, values) for name, values in errors.items()}
        run.figure(
            "the Gram matrix",
            curves(lines, x_label="features k", y_label="error of an entry", log_x=True, log_y=True),
            f"How far ψ(x)ᵀψ(y) is from exp(−γ‖x−y‖²), root mean square over pairs and over {self.draws} draws. With "
            "Fourier features it falls as 1/√k, and directions at right angles take something off; the variance of "
            "positive ones grows with the norms of x and y, and a few pairs and draws decide.",
        )

    def show_fits(
        self, run: Run, found: dict[str, list[dict[str, float]]], accuracy: float, seconds: float, rows: int
    ) -> None:
        def of(what: str) -> dict[str, tuple[object, object]]:
            return {name: (self.counts, [row[what] for row in measured]) for name, measured in found.items()}

        run.figure(
            "the fit",
            draw_fit(of("gap"), of("accuracy"), accuracy),
            "Ridge regression on random features tends to kernel ridge regression: in its answers (left) and in the "
            "share of unseen examples named right (right).",
        )
        table: list[dict[str, str | float]] = [
            {"fit": f"k = {count}", "seconds": row["seconds"], "accuracy": row["accuracy"]}
            for count, row in zip(self.counts, found["Fourier"], strict=True)
        ]
        table.append({"fit": f"kernel ridge, n = {rows}", "seconds": seconds, "accuracy": accuracy})
        run.table("time", table, "Fourier features: seconds of the fit, O(n k²), beside kernel ridge, O(n³).")


def draw_fit(
    gaps: dict[str, tuple[object, object]], accuracies: dict[str, tuple[object, object]], exact: float
) -> "Figure":
    figure, axes = subplots(1, 2, size=(10.0, 3.8))
    left, right = axes[0]
    for (name, (counts, gap)), colour in zip(gaps.items(), PALETTE, strict=False):
        left.loglog(counts, gap, "o-", color=colour, label=name, markersize=4)
        right.semilogx(*accuracies[name], "o-", color=colour, markersize=4)
    right.axhline(exact, color=FAINT, linestyle="--", linewidth=1.2, label="kernel ridge")
    left.set(xlabel="features k", ylabel="distance from kernel ridge")
    right.set(xlabel="features k", ylabel="named right")
    left.legend()
    right.legend(loc="lower right")
    return figure
