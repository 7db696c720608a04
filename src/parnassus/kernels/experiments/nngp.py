"""Infinitely wide networks regress your data: NNGP and tangent kernel, and how sure they are (book sec. 15.3)."""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

from parnassus.data import DataError, Dataset, open_data, standardised
from parnassus.kernels.blocked_regression import BlockedRegression
from parnassus.kernels.calibration import (
    class_probabilities,
    coverage,
    negative_log_density,
    reliability,
    share_interval,
)
from parnassus.kernels.covariance import Kernel
from parnassus.kernels.gp_regression import Prediction
from parnassus.kernels.network import Network, fully_connected
from parnassus.kernels.nonlinearity import Erf, Nonlinearity, ReLU
from parnassus.kernels.selection import Choice, Criterion, by_evidence, by_validation
from parnassus.kernels.spectrum import KernelSpectrum
from parnassus.kernels.wide_kernel import NNGP, NTK
from parnassus.report import FAINT, PALETTE, curves, image_grid, subplots
from parnassus.train import Run, at_least, at_most, reported

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B15.3-5", "B15.4-3", "B15.4-6", "B15.1-7")
expected = {
    "accuracy_nngp": at_least(0.98, "share of unseen examples named rightly; of numbers, R²"),
    "accuracy_ntk": at_least(0.98, "the same with the tangent kernel"),
    "calibration_error_nngp": at_most(0.03, "how far confidence is from being right, on average; of numbers, coverage"),
    "calibration_error_ntk": at_most(0.03, "the same with the tangent kernel"),
    "surprise_nngp": at_most(0.1, "mean −log probability of the truth; of numbers, of its density"),
    "surprise_ntk": at_most(0.1, "the same with the tangent kernel"),
    "first_fifty": at_least(0.8, "share of the targets along the 50 largest eigenvectors of the tangent kernel"),
    "residual": at_most(1e-10, "of the linear systems, in float64, relative: the worse of the two"),
    "jitter": at_most(0.0, "what had to be added to the noise for a Cholesky root: nothing"),
    "steps": reported("of conjugate gradients; 0 where memory held a Cholesky root"),
    "rows": reported("training examples"),
    "seconds": reported("for both fits and all predictions, without choosing"),
}
profiles = {
    "smoke": {"train": 150, "test": 100, "tuned": 80, "depths": (1, 2)},
    "gpu": {"data": "mnist", "train": 60_000, "test": 10_000, "tuned": 2_000},
}
NONLINEARITIES: dict[str, Nonlinearity] = {"ReLU": ReLU(), "erf": Erf()}
CRITERIA: dict[str, Criterion] = {"evidence": by_evidence, "validation": by_validation}
KERNELS: dict[str, Callable[[Network], Kernel]] = {"NNGP": NNGP, "NTK": NTK}
SHARES = torch.logspace(-5, 1, 19, dtype=torch.float64).tolist()
"""Of noise in the mean variance of a kernel, to choose from."""
LEVELS = torch.linspace(0.05, 0.95, 19, dtype=torch.float64)


@dataclass(frozen=True)
class Experiment:
    data: str = "digits"  # a built-in name, or your own folder or file; classes or numbers
    train: int = 2_000  # training examples, at most
    test: int = 2_000  # unseen examples, at most
    tuned: int = 500  # training examples on which network and noise are chosen
    choose: Literal["evidence", "validation"] = "evidence"  # by marginal likelihood, or by a quarter of these held out
    depths: tuple[int, ...] = (1, 2, 4, 8)  # hidden layers to choose from
    biases: tuple[float, ...] = (0.0, 0.1)  # variances of the biases to choose from
    single: bool = False  # compute in float32; the residual says what it costs

    def __call__(self, run: Run) -> dict[str, float]:
        if min(self.train, self.test) < 10 or self.tuned < 4:
            raise ValueError(
                "train and test must be at least 10, tuned at least 4; "
                f"got train={self.train}, test={self.test}, tuned={self.tuned}"
            )
        if not self.depths or not self.biases:
            raise ValueError(f"give networks to choose from; got depths={self.depths}, biases={self.biases}")
        data = open_data(self.data)
        run.use_all_cores()
        device = torch.device("cpu") if run.device.type == "mps" else run.device  # which has no float64
        kind = torch.float32 if self.single else torch.float64
        task = Task.of(data, self.train, self.test, kind=kind, device=device)
        many = device.type == "cuda" and run.world == 1
        devices = [torch.device("cuda", index) for index in range(torch.cuda.device_count())] if many else []

        chosen = {name: self._chosen(KERNELS[name], task) for name in KERNELS}
        began = perf_counter()
        fits, predictions = {}, {}
        accuracies: dict[str, tuple[list[int], list[float]]] = {}
        for name, best in chosen.items():
            sizes = [size for part in (16, 8, 4, 2) if (size := len(task.x) // part) >= 10] + [len(task.x)]
            accuracies[name] = (sizes, [])
            for size in sizes:
                fit = BlockedRegression.fit(
                    best.kernel, task.x[:size], task.t[:size], ratio=best.choice.ratio, devices=devices
                )
                prediction = fit.predict(task.unseen)
                accuracies[name][1].append(task.score(prediction))
            fits[name], predictions[name] = fit.solution, prediction
            del fit  # the root is as large as the kernel
        seconds = perf_counter() - began

        judged = {name: task.judge(prediction) for name, prediction in predictions.items()}
        spectra = {name: KernelSpectrum.of(best.kernel(task.x[: self.tuned])) for name, best in chosen.items()}
        self._tell(run, task, chosen)
        run.figure("calibration", draw_calibration(judged, task), CALIBRATION_CAPTION)
        run.figure(
            "accuracy over n",
            curves(accuracies, x_label="training examples", y_label=task.scored_as, log_x=True),
            "What more examples bring; network and noise are those chosen once.",
        )
        run.figure("spectrum", draw_spectrum(spectra, task.t[: self.tuned]), SPECTRUM_CAPTION)
        if len(data.shape) == 3:
            pictures = data.train.x[: self.tuned], data.test.x[: self.test]
            run.figure("learned first", draw_eigenvectors(spectra["NTK"], pictures[0]), EIGENVECTOR_CAPTION)
        if len(data.shape) == 3 and task.classes:
            run.figure("most and least certain", draw_certain(predictions["NNGP"], task, pictures[1]), CERTAIN_CAPTION)
        if not task.classes:
            run.figure("predictions", draw_numbers(predictions["NNGP"], task), "Unseen numbers with ± 2 deviations.")
        return {
            **{f"accuracy_{name.lower()}": task.score(prediction) for name, prediction in predictions.items()},
            **{f"calibration_error_{name.lower()}": judgement.error for name, judgement in judged.items()},
            **{f"surprise_{name.lower()}": judgement.surprise for name, judgement in judged.items()},
            "first_fifty": float(spectra["NTK"].alignment(task.t[: self.tuned])[:50].sum()),
            "residual": max(solution.residual for solution in fits.values()),
            "jitter": max(solution.jitter for solution in fits.values()),
            "steps": max(solution.steps for solution in fits.values()),
            "rows": len(task.x),
            "seconds": seconds,
        }

    def _chosen(self, kernel: Callable[[Network], Kernel], task: "Task") -> "Chosen":
        """The best of all networks, each with its best noise, on the first `tuned` rows."""
        x, t = task.x[: self.tuned], task.t[: self.tuned]
        found = []
        for name, nonlinearity in NONLINEARITIES.items():
            for depth in self.depths:
                for bias in self.biases:
                    candidate = kernel(fully_connected(depth, nonlinearity, bias=bias))
                    choice = CRITERIA[self.choose](candidate(x), t, SHARES)
                    found.append(Chosen(candidate, choice, {"σ": name, "depth": depth, "bias": bias}))
        return max(found, key=lambda each: each.choice.score)

    def _tell(self, run: Run, task: "Task", chosen: dict[str, "Chosen"]) -> None:
        rows = [
            {"kernel": name, **best.facts, "noise ρ": best.choice.ratio, self.choose: best.choice.score}
            for name, best in chosen.items()
        ]
        caption = f"Chosen by {self.choose} on {min(self.tuned, len(task.x))} training examples; ρ = σ²/v."
        run.table("networks", rows, caption)
        run.note(
            "how",
            "Regression of one-hot targets minus their mean (of numbers: standardised) with a Gaussian process, whose "
            "kernel is that of an infinitely wide network: NNGP before training, NTK for training by gradient descent. "
            "Pictures have mean 0 and length 1 each; columns of tables are standardised and divided by the root of "
            "their number. A class's probability is that of its output being the largest. The variance with the "
            "tangent kernel is that of the process with this covariance, not of an ensemble of trained networks.",
        )


@dataclass(frozen=True)
class Chosen:
    """A kernel with the noise that suits it, and what it is made of."""

    kernel: Kernel
    choice: Choice
    facts: dict[str, str | float]


@dataclass(frozen=True)
class Judgement:
    """How sure against how right: the two axes of a calibration plot, their mean distance, and −log p(truth)."""

    stated: Tensor
    observed: Tensor
    counts: Tensor
    """Of the predictions that each point stands for."""
    error: float
    surprise: float


@dataclass(frozen=True)
class Task:
    """Inputs as the networks get them, and targets of mean 0."""

    x: Tensor
    t: Tensor
    unseen: Tensor
    truth: Tensor
    """Of the unseen: class numbers, or targets in the units of t."""
    offset: Tensor
    """What was taken from one-hot targets."""
    classes: tuple[str, ...]

    @classmethod
    def of(cls, data: Dataset, train: int, test: int, *, kind: torch.dtype, device: torch.device) -> "Task":
        if data.train.y is None or data.test.y is None or not len(data.test):
            raise DataError(
                f"{data.name} has nothing to predict: a target for each example is needed, and a test part."
            )
        if len(data.shape) == 3:
            parts = [_pictures(split.x.to(device, kind)) for split in (data.train.take(train), data.test.take(test))]
        else:
            scaled = standardised(data)
            parts = [
                split.x.to(device, kind).flatten(1) / scaled.train.x[0].numel() ** 0.5
                for split in (scaled.train.take(train), scaled.test.take(test))
            ]
        y, truth = data.train.y[:train].to(device), data.test.y[:test].to(device)
        if data.classes:
            t = torch.nn.functional.one_hot(y, len(data.classes)).to(kind)
            return cls(parts[0], t - t.mean(0), parts[1], truth, t.mean(0), data.classes)
        t, truth = (part.to(kind).reshape(len(part), -1) for part in (y, truth))
        mean, std = t.mean(0), t.std(0, correction=0).clamp(min=torch.finfo(kind).tiny)
        return cls(parts[0], (t - mean) / std, parts[1], (truth - mean) / std, torch.zeros_like(mean), ())

    @property
    def scored_as(self) -> str:
        return "share named rightly" if self.classes else "share of variance explained, R²"

    def score(self, prediction: Prediction) -> float:
        if self.classes:
            return float(((prediction.mean + self.offset).argmax(1) == self.truth).double().mean())
        return 1 - float(
            (prediction.mean - self.truth).square().sum() / (self.truth - self.truth.mean(0)).square().sum()
        )

    def probabilities(self, prediction: Prediction) -> Tensor:
        return class_probabilities(prediction.mean + self.offset, prediction.variance.clamp(min=1e-12))

    def judge(self, prediction: Prediction) -> Judgement:
        if not self.classes:
            mean, variance = prediction.mean, prediction.target_variance
            observed = coverage(mean, variance, self.truth, LEVELS.to(mean)).cpu()
            error = float((observed - LEVELS).abs().mean())
            surprise = float(negative_log_density(mean, variance, self.truth))
            return Judgement(LEVELS, observed, torch.full_like(LEVELS, self.truth.numel()), error, surprise)
        probabilities = self.probabilities(prediction)
        binned = reliability(probabilities, self.truth, bins=10)
        given = probabilities.gather(1, self.truth[:, None]).clamp(min=1e-12)
        stated, observed, share = (part.cpu() for part in binned)
        return Judgement(stated, observed, share * len(self.truth), binned.error, abs(float(given.log().mean())))


def _pictures(x: Tensor) -> Tensor:
    """Each picture with mean 0 and length 1."""
    rows = x.flatten(1)
    rows = rows - rows.mean(1, keepdim=True)
    length: Tensor = rows.norm(dim=1, keepdim=True)
    return rows / length.clamp(min=torch.finfo(x.dtype).tiny)


CALIBRATION_CAPTION = (
    "On the diagonal a prediction is as often right as it says; above it, it is too modest, below, too sure. Of "
    "classes the probability of the one named, of numbers the share inside intervals of each level. Bars are 95 % "
    "intervals: where few predictions fall, they are long."
)
SPECTRUM_CAPTION = (
    "Left, the eigenvalues of both kernels. Right, gradient flow with each kernel from zero: what is left of the "
    "targets, and of the same targets in random order. Along an eigenvector of eigenvalue λ it falls as exp(−2λt): "
    "real targets lie along large ones and are learned first."
)
EIGENVECTOR_CAPTION = (
    "What the tangent kernel learns first: for its leading eigenvectors, the training pictures with the lowest values "
    "(left half) and the highest (right half). It tells these apart before anything else."
)
CERTAIN_CAPTION = (
    "Unseen pictures of which the NNGP is most and least certain: the class named, its probability and, where it is "
    "wrong, the truth in brackets."
)


def draw_calibration(judged: dict[str, Judgement], task: Task) -> "Figure":
    figure, axes = subplots(size=(4.6, 4.2))
    ax = axes[0, 0]
    ax.plot([0, 1], [0, 1], color=FAINT, linestyle="--", linewidth=1)
    for colour, (name, judgement) in zip(PALETTE, judged.items(), strict=False):
        low, high = share_interval(judgement.observed, judgement.counts)
        ax.vlines(judgement.stated, low, high, color=colour, linewidth=1.2, alpha=0.6)
        ax.plot(judgement.stated, judgement.observed, "o", color=colour, markersize=4, label=name)
    labels = ("probability of the class named", "share of these right") if task.classes else ("level", "share inside")
    ax.set(xlabel=labels[0], ylabel=labels[1], xlim=(0, 1.02), ylim=(0, 1.02), aspect="equal")
    ax.legend(loc="upper left")
    return figure


def draw_spectrum(spectra: dict[str, KernelSpectrum], t: Tensor) -> "Figure":
    figure, axes = subplots(1, 2, size=(9.0, 3.8))
    shuffled = t[torch.randperm(len(t), generator=torch.Generator().manual_seed(0)).to(t.device)]
    for colour, (name, spectrum) in zip(PALETTE, spectra.items(), strict=False):
        positive = spectrum.eigenvalues[spectrum.eigenvalues > 1e-12 * spectrum.eigenvalues[0]].cpu()
        axes[0, 0].loglog(range(1, len(positive) + 1), positive, color=colour, label=name)
        times = torch.logspace(-4, 3, 200, dtype=torch.float64)
        for targets, style, what in ((t, "-", ""), (shuffled, ":", ", random order")):
            left = spectrum.left_at(targets, times / float(spectrum.eigenvalues.mean()))
            axes[0, 1].semilogx(times, left.cpu(), style, color=colour, label=name + what)
    axes[0, 0].set(xlabel="i", ylabel="eigenvalue λ_i")
    axes[0, 1].set(xlabel="time of gradient flow × mean eigenvalue", ylabel="‖y − u(t)‖² / ‖y‖²", ylim=(0, 1.02))
    axes[0, 0].legend()
    axes[0, 1].legend(loc="lower left", fontsize=8)
    return figure


def draw_eigenvectors(spectrum: KernelSpectrum, pictures: Tensor, *, count: int = 6, each: int = 5) -> "Figure":
    rows = []
    for vector in spectrum.eigenvectors.mT[:count].cpu():
        order = vector.argsort()
        rows.append(torch.cat([order[:each], order[-each:]]))
    images = pictures.cpu()[torch.cat(rows)]
    return image_grid(images, columns=2 * each, row_labels=[f"u_{index + 1}" for index in range(len(rows))])


def draw_certain(prediction: Prediction, task: Task, pictures: Tensor, *, each: int = 10) -> "Figure":
    probabilities = task.probabilities(prediction).cpu()
    sure, named = probabilities.max(1)
    order = sure.argsort(descending=True, stable=True)
    rows = torch.cat([order[:each], order[-each:]])
    truth = task.truth.cpu()
    titles = [
        f"{task.classes[named[row]]}: {sure[row]:.2f}"
        + ("" if named[row] == truth[row] else f" ({task.classes[truth[row]]})")
        for row in rows.tolist()
    ]
    return image_grid(pictures.cpu()[rows], columns=each, titles=titles, row_labels=["most", "least"], scale=1.4)


def draw_numbers(prediction: Prediction, task: Task) -> "Figure":
    figure, axes = subplots(size=(4.8, 4.2))
    ax = axes[0, 0]
    mean, truth, spread = (
        part.cpu() for part in (prediction.mean[:, 0], task.truth[:, 0], 2 * prediction.target_variance.sqrt())
    )
    ax.errorbar(truth, mean, spread, fmt="o", markersize=3, elinewidth=0.6, alpha=0.6)
    ends = [float(truth.min()), float(truth.max())]
    ax.plot(ends, ends, color=FAINT, linestyle="--", linewidth=1)
    ax.set(xlabel="target, standardised", ylabel="predicted")
    return figure
