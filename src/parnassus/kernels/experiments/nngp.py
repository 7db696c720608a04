"""NNGP and NTK regression on your data: accuracy, calibration and spectra (book sec. 15.3)."""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

from parnassus.data import RegressionTask, TableSettings
from parnassus.kernels.figures import (
    plot_calibration,
    plot_eigenvector_images,
    plot_most_and_least_confident,
    plot_predictions,
    plot_spectra,
)
from parnassus.kernels.gaussian_processes.blocked_regression import BlockedRegression
from parnassus.kernels.gaussian_processes.calibration import CalibrationCurve, class_probabilities
from parnassus.kernels.gaussian_processes.covariance import Kernel
from parnassus.kernels.gaussian_processes.gp_regression import GPPrediction
from parnassus.kernels.gaussian_processes.model_selection import (
    SelectedRatio,
    SelectionCriterion,
    select_by_evidence,
    select_by_validation,
)
from parnassus.kernels.infinite_width.network import Network, fully_connected
from parnassus.kernels.infinite_width.nngp_and_ntk import NNGP, NTK
from parnassus.kernels.infinite_width.nonlinearity import Erf, Nonlinearity, ReLU
from parnassus.kernels.training_dynamics.kernel_spectrum import KernelSpectrum
from parnassus.report import curves
from parnassus.setting_types import AnyData
from parnassus.train import NonNegative, Positive, Run, at_least, at_most, no_band

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B15.3-5", "B15.4-3", "B15.4-6", "B15.1-7")
expected = {
    "accuracy_nngp": at_least(0.98, "test accuracy with the NNGP kernel; for regression, R²"),
    "accuracy_ntk": at_least(0.98, "test accuracy with the NTK; for regression, R²"),
    "calibration_error_nngp": at_most(
        0.03, "expected calibration error with the NNGP kernel; for regression, of interval coverage"
    ),
    "calibration_error_ntk": at_most(
        0.03, "expected calibration error with the NTK; for regression, of interval coverage"
    ),
    "nll_nngp": at_most(0.1, "mean negative log-likelihood of the test targets with the NNGP kernel"),
    "nll_ntk": at_most(0.1, "mean negative log-likelihood of the test targets with the NTK"),
    "first_fifty": at_least(0.8, "fraction of the targets along the 50 leading eigenvectors of the NTK"),
    "residual": at_most(1e-10, "relative residual of the linear systems in float64, maximum over kernels"),
    "jitter": at_most(0.0, "jitter added to the noise for the Cholesky factorisation"),
    "steps": no_band("steps of conjugate gradients; 0 if solved by Cholesky"),
    "rows": no_band("number of training examples"),
    "seconds": no_band("time of both fits and all predictions, without model selection"),
}
profiles = {
    "smoke": {"num_examples": 150, "num_test": 100, "num_selection_examples": 80, "depths": (1, 2)},
    "gpu": {"data": "mnist", "num_examples": 60_000, "num_test": 10_000, "num_selection_examples": 2_000},
}
NONLINEARITIES: dict[str, Nonlinearity] = {"ReLU": ReLU(), "erf": Erf()}
CRITERIA: dict[str, SelectionCriterion] = {"evidence": select_by_evidence, "validation": select_by_validation}
KERNELS: dict[str, Callable[[Network], Kernel]] = {"NNGP": NNGP, "NTK": NTK}
NOISE_LEVELS = torch.logspace(-5, 1, 19, dtype=torch.float64).tolist()
"""Candidate noise variances, relative to the mean variance of a kernel."""


@dataclass(frozen=True)
class Experiment(TableSettings):
    data: AnyData = "digits"  # examples with classes or targets: name of a data set, or path
    image_size: Positive[int] | None = None  # resize the images of a folder to squares with sides of this many pixels
    num_examples: Positive[int] = 2_000  # maximum number of training examples
    num_test: Positive[int] = 2_000  # maximum number of test examples
    num_selection_examples: Positive[int] = 500  # training examples used for model selection
    selection_criterion: Literal["evidence", "validation"] = "evidence"  # by marginal likelihood or on held-out data
    depths: tuple[Positive[int], ...] = (1, 2, 4, 8)  # candidate numbers of hidden layers
    bias_variances: tuple[NonNegative[float], ...] = (0.0, 0.1)  # candidate variances of the biases
    single_precision: bool = False  # compute in float32 instead of float64

    def __call__(self, run: Run) -> dict[str, float]:
        if min(self.num_examples, self.num_test) < 10 or self.num_selection_examples < 4:
            raise ValueError(
                "num_examples and num_test must be at least 10, num_selection_examples at least 4; "
                f"got num_examples={self.num_examples}, num_test={self.num_test}, "
                f"num_selection_examples={self.num_selection_examples}"
            )
        if not self.depths or not self.bias_variances:
            raise ValueError(
                "depths and bias_variances must not be empty; "
                f"got depths={self.depths}, bias_variances={self.bias_variances}"
            )
        data = self.load_data(self.image_size)
        run.use_all_cores()
        device = torch.device("cpu") if run.device.type == "mps" else run.device  # MPS has no float64
        dtype = torch.float32 if self.single_precision else torch.float64
        task = RegressionTask.from_dataset(data, self.num_examples, self.num_test, dtype=dtype, device=device)
        many = device.type == "cuda" and run.world_size == 1
        devices = [torch.device("cuda", index) for index in range(torch.cuda.device_count())] if many else []

        selected = {name: self._select(KERNELS[name], task) for name in KERNELS}
        began = perf_counter()
        fits, predictions = {}, {}
        accuracies: dict[str, tuple[list[int], list[float]]] = {}
        for name, best in selected.items():
            sizes = [size for part in (16, 8, 4, 2) if (size := len(task.x) // part) >= 10] + [len(task.x)]
            accuracies[name] = (sizes, [])
            for size in sizes:
                fit = BlockedRegression.fit(
                    best.kernel, task.x[:size], task.t[:size], ratio=best.ratio.ratio, devices=devices
                )
                prediction = fit.predict(task.x_test)
                accuracies[name][1].append(task.score(prediction.mean))
            fits[name], predictions[name] = fit.solution, prediction
            del fit  # frees the Cholesky factor, as large as the kernel
        seconds = perf_counter() - began

        calibration = {name: calibration_curve(task, prediction) for name, prediction in predictions.items()}
        spectra = {
            name: KernelSpectrum.from_matrix(best.kernel(task.x[: self.num_selection_examples]))
            for name, best in selected.items()
        }
        self._report_selection(run, task, selected)
        run.figure("calibration", calibration_figure(calibration, task), CALIBRATION_CAPTION)
        run.figure(
            "accuracy against n",
            curves(accuracies, x_label="number of training examples", y_label=task.score_name, log_x=True),
            "Accuracy against the number of training examples, with network and noise selected once.",
        )
        run.figure("spectrum", spectra_figure(spectra, task.t[: self.num_selection_examples]), SPECTRUM_CAPTION)
        if len(data.shape) == 3:
            images = data.train.x[: self.num_selection_examples], data.test.x[: self.num_test]
            run.figure(
                "leading eigenvectors",
                plot_eigenvector_images(spectra["NTK"].eigenvectors, images[0]),
                EIGENVECTOR_CAPTION,
            )
        if len(data.shape) == 3 and task.classes:
            figure = plot_most_and_least_confident(
                images[1], predict_class_probabilities(task, predictions["NNGP"]), task.y_test, task.classes
            )
            run.figure("most and least confident", figure, CONFIDENT_CAPTION)
        if not task.classes:
            mean, _, variance = predictions["NNGP"]
            figure = plot_predictions(task.y_test[:, 0], mean[:, 0], 2 * variance.sqrt())
            run.figure("predictions", figure, "Test targets and predictions, ± 2 standard deviations.")
        return {
            **{f"accuracy_{name.lower()}": task.score(prediction.mean) for name, prediction in predictions.items()},
            **{f"calibration_error_{name.lower()}": curve.error for name, curve in calibration.items()},
            **{f"nll_{name.lower()}": curve.negative_log_likelihood for name, curve in calibration.items()},
            "first_fifty": float(spectra["NTK"].alignment(task.t[: self.num_selection_examples])[:50].sum()),
            "residual": max(solution.residual for solution in fits.values()),
            "jitter": max(solution.jitter for solution in fits.values()),
            "steps": max(solution.steps for solution in fits.values()),
            "rows": len(task.x),
            "seconds": seconds,
        }

    def _select(self, kernel: Callable[[Network], Kernel], task: RegressionTask) -> "SelectedKernel":
        """The best network with its best noise ratio on the first `num_selection_examples` rows."""
        x, t = task.x[: self.num_selection_examples], task.t[: self.num_selection_examples]
        candidates = []
        for name, nonlinearity in NONLINEARITIES.items():
            for depth in self.depths:
                for bias in self.bias_variances:
                    candidate = kernel(fully_connected(depth, nonlinearity, bias_variance=bias))
                    ratio = CRITERIA[self.selection_criterion](candidate(x), t, NOISE_LEVELS)
                    candidates.append(SelectedKernel(candidate, ratio, {"σ": name, "depth": depth, "bias": bias}))
        return max(candidates, key=lambda candidate: candidate.ratio.score)

    def _report_selection(self, run: Run, task: RegressionTask, selected: dict[str, "SelectedKernel"]) -> None:
        rows = [
            {"kernel": name, **best.settings, "noise ρ": best.ratio.ratio, self.selection_criterion: best.ratio.score}
            for name, best in selected.items()
        ]
        count = min(self.num_selection_examples, len(task.x))
        caption = f"Selected by {self.selection_criterion} on {count} training examples; ρ = σ²/v."
        run.table("networks", rows, caption)
        run.note(
            "method",
            "Gaussian-process regression on centred one-hot (or standardised numerical) targets with the kernel of an "
            "infinitely wide network: NNGP for Bayesian inference, NTK for training by gradient descent. Images are "
            "scaled to mean 0 and norm 1; table columns are standardised and divided by the square root of their "
            "number. A class probability is the probability that its output is the largest. The variance with the NTK "
            "is that of a process with this covariance, not of an ensemble of trained networks.",
        )


@dataclass(frozen=True)
class SelectedKernel:
    """A kernel with its selected noise ratio and the settings of its network."""

    kernel: Kernel
    ratio: SelectedRatio
    settings: dict[str, str | float]


CALIBRATION_CAPTION = (
    "Predicted against observed frequency: on the diagonal predictions are calibrated, above it underconfident, below "
    "it overconfident. For classification, confidence and accuracy in bins; for regression, nominal and empirical "
    "coverage of central intervals. Bars are 95 % confidence intervals."
)
SPECTRUM_CAPTION = (
    "Left: eigenvalues of both kernels. Right: gradient flow from zero, unlearned fraction of true and shuffled "
    "targets. Along an eigenvector of eigenvalue λ it decays as exp(−2λt): true targets align with large eigenvalues "
    "and are learned first."
)
EIGENVECTOR_CAPTION = (
    "For the leading eigenvectors of the NTK, the training images with the lowest entries (left half) and the highest "
    "(right half). Targets that separate these are learned first."
)
CONFIDENT_CAPTION = (
    "Test images with the most and least confident NNGP predictions: predicted class, its probability and, for errors, "
    "the true class in brackets."
)


def calibration_curve(task: RegressionTask, prediction: GPPrediction) -> CalibrationCurve:
    if task.classes:
        return CalibrationCurve.from_classification(predict_class_probabilities(task, prediction), task.y_test)
    return CalibrationCurve.from_regression(prediction.mean, prediction.target_variance, task.y_test)


def predict_class_probabilities(task: RegressionTask, prediction: GPPrediction) -> Tensor:
    return class_probabilities(prediction.mean + task.offset, prediction.variance.clamp(min=1e-12))


def calibration_figure(calibration: dict[str, CalibrationCurve], task: RegressionTask) -> "Figure":
    if task.classes:
        return plot_calibration(calibration, x_label="confidence", y_label="accuracy")
    return plot_calibration(calibration, x_label="nominal coverage", y_label="empirical coverage")


def spectra_figure(spectra: dict[str, KernelSpectrum], t: Tensor) -> "Figure":
    times = torch.logspace(-4, 3, 200, dtype=torch.float64)
    shuffled = t[torch.randperm(len(t), generator=torch.Generator().manual_seed(0)).to(t.device)]
    remaining = {
        name: (spectrum.remaining_fraction(t, scaled), spectrum.remaining_fraction(shuffled, scaled))
        for name, spectrum in spectra.items()
        for scaled in [times / float(spectrum.eigenvalues.mean())]
    }
    return plot_spectra({name: spectrum.eigenvalues for name, spectrum in spectra.items()}, times, remaining)
