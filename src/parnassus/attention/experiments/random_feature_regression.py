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
    "orthogonal_gram_ratio": at_most(1.05, "error with orthogonal directions over independent ones, most features"),
    "gap_to_kernel_ridge": at_most(0.25, "distance between the two fits' answers, over that of kernel ridge's"),
    "kernel_seconds": reported("time of the exact fit: O(n³)"),
    "fourier_seconds": reported("time of the fit with the most features: O(n k²)"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"rows": 200, "counts": (16, 64), "draws": 2},
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
    draws: int = 4  # draws of the directions over which errors are averaged

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
        found = {name: [self.measure(lift, count, task) for count in self.counts] for name, lift in kinds.items()}
        accuracy = float((answers.argmax(1) == truth).double().mean())
        self.tell(run, found, accuracy, kernel_seconds, len(x))
        logs = torch.tensor([[count, row["gram"]] for count, row in zip(self.counts, found["Fourier"], strict=True)])
        centred = logs.log() - logs.log().mean(0)
        return {
            "kernel_accuracy": accuracy,
            "fourier_accuracy": found["Fourier"][-1]["accuracy"],
            "positive_accuracy": found["positive"][-1]["accuracy"],
            "gram_error_exponent": float((centred[:, 0] * centred[:, 1]).sum() / centred[:, 0].square().sum()),
            "orthogonal_gram_ratio": found["Fourier, orthogonal"][-1]["gram"] / found["Fourier"][-1]["gram"],
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

    def measure(self, lift: Callable[[int], Callable[[Tensor], Tensor]], count: int, task: Task) -> dict[str, float]:
        """Means over draws: error of the Gram matrix an entry, distance from kernel ridge, accuracy, seconds."""
        rows = []
        for _ in range(self.draws):
            psi = lift(count)
            began = time.perf_counter()
            lifted = psi(task.x)
            fit = FeatureRidge.fit(lifted, task.target, penalty=self.penalty)
            seconds = time.perf_counter() - began
            said = fit.predict(psi(task.new))
            error = (lifted @ lifted.mT - task.gram).square().mean().sqrt()
            right = (said.argmax(1) == task.truth).double().mean()
            rows.append(
                [float(error), float((said - task.answers).norm() / task.answers.norm()), float(right), seconds]
            )
        mean = torch.tensor(rows).mean(0).tolist()
        return dict(zip(("gram", "gap", "accuracy", "seconds"), mean, strict=True))

    def tell(
        self, run: Run, found: dict[str, list[dict[str, float]]], accuracy: float, seconds: float, rows: int
    ) -> None:
        def of(what: str) -> dict[str, tuple[object, object]]:
            return {name: (self.counts, [row[what] for row in measured]) for name, measured in found.items()}

        run.figure(
            "the Gram matrix",
            curves(of("gram"), x_label="features k", y_label="error of an entry", log_x=True, log_y=True),
            "How far ψ(x)ᵀψ(y) is from exp(−γ‖x−y‖²), root mean square over all pairs. With Fourier features it falls "
            "as 1/√k; the variance of positive ones grows with the norms of x and y, and a few pairs decide.",
        )
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
