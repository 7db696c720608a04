"""Infinitely wide networks regress your data: NNGP and tangent kernel, and how sure they are (book sec. 15.3)."""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

from parnassus.data import RegressionTask, open_data
from parnassus.kernels.blocked_regression import BlockedRegression
from parnassus.kernels.calibration import class_probabilities
from parnassus.kernels.covariance import Kernel
from parnassus.kernels.gp_regression import Prediction
from parnassus.kernels.judgement import Judgement
from parnassus.kernels.network import Network, fully_connected
from parnassus.kernels.nonlinearity import Erf, Nonlinearity, ReLU
from parnassus.kernels.selection import Choice, Criterion, by_evidence, by_validation
from parnassus.kernels.spectrum import KernelSpectrum
from parnassus.kernels.wide_kernel import NNGP, NTK
from parnassus.report import curves
from parnassus.report.certainty import Calibration, calibration_plot, most_and_least_certain, predicted_numbers
from parnassus.report.spectra import eigenvector_pictures, spectrum_plot
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
        task = RegressionTask.of(data, self.train, self.test, kind=kind, device=device)
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
                accuracies[name][1].append(task.score(prediction.mean))
            fits[name], predictions[name] = fit.solution, prediction
            del fit  # the root is as large as the kernel
        seconds = perf_counter() - began

        judged = {name: judge(task, prediction) for name, prediction in predictions.items()}
        spectra = {name: KernelSpectrum.of(best.kernel(task.x[: self.tuned])) for name, best in chosen.items()}
        self._tell(run, task, chosen)
        run.figure("calibration", calibration_of(judged, task), CALIBRATION_CAPTION)
        run.figure(
            "accuracy over n",
            curves(accuracies, x_label="training examples", y_label=task.scored_as, log_x=True),
            "What more examples bring; network and noise are those chosen once.",
        )
        run.figure("spectrum", spectra_of(spectra, task.t[: self.tuned]), SPECTRUM_CAPTION)
        if len(data.shape) == 3:
            pictures = data.train.x[: self.tuned], data.test.x[: self.test]
            run.figure(
                "learned first", eigenvector_pictures(spectra["NTK"].eigenvectors, pictures[0]), EIGENVECTOR_CAPTION
            )
        if len(data.shape) == 3 and task.classes:
            certain = most_and_least_certain(
                pictures[1], probabilities(task, predictions["NNGP"]), task.truth, task.classes
            )
            run.figure("most and least certain", certain, CERTAIN_CAPTION)
        if not task.classes:
            mean, _, variance = predictions["NNGP"]
            numbers = predicted_numbers(task.truth[:, 0], mean[:, 0], 2 * variance.sqrt())
            run.figure("predictions", numbers, "Unseen numbers with ± 2 deviations.")
        return {
            **{f"accuracy_{name.lower()}": task.score(prediction.mean) for name, prediction in predictions.items()},
            **{f"calibration_error_{name.lower()}": judgement.error for name, judgement in judged.items()},
            **{f"surprise_{name.lower()}": judgement.surprise for name, judgement in judged.items()},
            "first_fifty": float(spectra["NTK"].alignment(task.t[: self.tuned])[:50].sum()),
            "residual": max(solution.residual for solution in fits.values()),
            "jitter": max(solution.jitter for solution in fits.values()),
            "steps": max(solution.steps for solution in fits.values()),
            "rows": len(task.x),
            "seconds": seconds,
        }

    def _chosen(self, kernel: Callable[[Network], Kernel], task: RegressionTask) -> "Chosen":
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

    def _tell(self, run: Run, task: RegressionTask, chosen: dict[str, "Chosen"]) -> None:
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


def judge(task: RegressionTask, prediction: Prediction) -> Judgement:
    if task.classes:
        return Judgement.of_classes(probabilities(task, prediction), task.truth)
    return Judgement.of_numbers(prediction.mean, prediction.target_variance, task.truth)


def probabilities(task: RegressionTask, prediction: Prediction) -> Tensor:
    return class_probabilities(prediction.mean + task.offset, prediction.variance.clamp(min=1e-12))


def calibration_of(judged: dict[str, Judgement], task: RegressionTask) -> "Figure":
    points = {name: Calibration(found.stated, found.observed, *found.interval()) for name, found in judged.items()}
    if task.classes:
        return calibration_plot(points, x_label="probability of the class named", y_label="share of these right")
    return calibration_plot(points, x_label="level", y_label="share inside")


def spectra_of(spectra: dict[str, KernelSpectrum], t: Tensor) -> "Figure":
    times = torch.logspace(-4, 3, 200, dtype=torch.float64)
    shuffled = t[torch.randperm(len(t), generator=torch.Generator().manual_seed(0)).to(t.device)]
    left = {
        name: (spectrum.left_at(t, scaled), spectrum.left_at(shuffled, scaled))
        for name, spectrum in spectra.items()
        for scaled in [times / float(spectrum.eigenvalues.mean())]
    }
    return spectrum_plot({name: spectrum.eigenvalues for name, spectrum in spectra.items()}, times, left)
