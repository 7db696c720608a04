"""A Nadaraya-Watson kernel classifier recognises digits without training (Zhao sec. 11)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from parnassus.attention.regression.kernel_regression import NadarayaWatson
from parnassus.attention.regression.kernels import (
    RadialKernel,
    boxcar_kernel,
    epanechnikov_kernel,
    gaussian_kernel,
    triangular_kernel,
)
from parnassus.data import DataError, Dataset, TableSettings, check_target
from parnassus.report import confusion_matrix, curves, image_grid
from parnassus.setting_types import AnyData
from parnassus.train import Positive, Run, at_least, between, no_band

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("Z11.5", "Z11.2", "B10.1.3-4")
expected = {
    "accuracy_gaussian": at_least(0.95, "test accuracy, Gaussian kernel, bandwidth by leave-one-out"),
    "accuracy_epanechnikov": at_least(0.95, "test accuracy, Epanechnikov kernel, bandwidth by leave-one-out"),
    "accuracy_triangular": at_least(0.95, "test accuracy, triangular kernel, bandwidth by leave-one-out"),
    "accuracy_boxcar": at_least(0.95, "test accuracy, boxcar kernel, bandwidth by leave-one-out"),
    "accuracy_nearest": at_least(0.94, "test accuracy, nearest neighbour only, the limit of bandwidth 0"),
    "accuracy_wide": between(0.05, 0.95, "test accuracy, Gaussian kernel with 20 times the best bandwidth"),
    "bandwidth": no_band("bandwidth of the Gaussian kernel"),
    "effective_neighbours": no_band("effective number of examples per prediction, 1 / Σ α², median"),
}
profiles = {"smoke": {"num_examples": 150, "num_bandwidths": 4}, "gpu": {"data": "mnist", "num_examples": 20_000}}

KERNELS: dict[str, RadialKernel] = {
    "gaussian": gaussian_kernel,
    "epanechnikov": epanechnikov_kernel,
    "triangular": triangular_kernel,
    "boxcar": boxcar_kernel,
}


@dataclass(frozen=True)
class Experiment(TableSettings):
    data: AnyData = "digits"  # labelled images or rows: name of a data set, or path of a file or folder
    image_size: Positive[int] | None = None  # resize the images of a folder to squares with sides of this many pixels
    num_examples: Positive[int] = 1_000  # maximum number of training examples and of test examples
    num_bandwidths: Positive[int] = 14  # candidate bandwidths, logarithmically spaced

    def __call__(self, run: Run) -> dict[str, float]:
        data = self.load_labelled_data().to(run.device)
        assert data.train.y is not None
        assert data.test.y is not None
        x, labels = data.train.x.flatten(1)[: self.num_examples], data.train.y[: self.num_examples]
        test, test_labels = data.test.x.flatten(1)[: self.num_examples], data.test.y[: self.num_examples]
        distances = torch.cdist(x[:300], x[:300])
        typical = float(distances[distances > 0].quantile(0.05))
        bandwidths = (typical * torch.logspace(-1.2, 0.9, self.num_bandwidths)).tolist()
        scores, left_out_errors, fits = {}, {}, {}
        for name, kernel in KERNELS.items():
            classifier = NadarayaWatson.fit_classes(x, labels, len(data.classes), kernel=kernel)
            left_out = [classifier.with_bandwidth(bandwidth).leave_one_out() for bandwidth in bandwidths]
            left_out_errors[name] = [error_rate(each, labels) for each in left_out]
            losses = [float((each - classifier.value).square().sum()) for each in left_out]
            fits[name] = classifier.with_bandwidth(bandwidths[min(range(len(bandwidths)), key=losses.__getitem__)])
            scores[name] = fits[name].predict(test)
        best = fits["gaussian"]
        assert isinstance(best.bandwidth, float)
        run.figure(
            "bandwidth selection",
            curves(
                {name: (bandwidths, rates) for name, rates in left_out_errors.items()},
                x_label="bandwidth",
                y_label="leave-one-out error rate",
                log_x=True,
            ),
            "Each example predicted from all others. A narrow kernel reduces to the nearest neighbour. A wide kernel "
            "predicts the most frequent class; leaving an example out makes its own class less frequent, so the error "
            "rate can reach 1.",
        )
        if len(data.shape) == 3:
            run.figure(
                "neighbours",
                plot_neighbours(data.test.x[:6], data.train.x[: self.num_examples], best.weights(test[:6])),
                "Left, a test image; right, the five examples with the largest weights.",
            )
        run.figure(
            "confusion matrix",
            confusion_matrix(test_labels.cpu(), scores["gaussian"].argmax(1).cpu(), data.classes),
            "Confusion matrix of the Gaussian kernel on the test images.",
        )
        accuracies = {name: 1 - error_rate(each, test_labels) for name, each in scores.items()}
        others = {
            "nearest": best.with_bandwidth(1e-6 * best.bandwidth),
            "wide": best.with_bandwidth(20 * best.bandwidth),
        }
        accuracies |= {name: 1 - error_rate(fit.predict(test), test_labels) for name, fit in others.items()}
        return {
            **{f"accuracy_{name}": accuracy for name, accuracy in accuracies.items()},
            "bandwidth": best.bandwidth,
            "effective_neighbours": float((1 / best.weights(test).square().sum(1)).median()),
        }

    def load_labelled_data(self) -> Dataset:
        data = self.load_data(self.image_size)
        if not data.classes:
            raise DataError(f"{self.data} has no classes: its targets must be names or integers")
        check_target(data)
        return data


def error_rate(scores: Tensor, labels: Tensor) -> float:
    return float((scores.argmax(1) != labels).double().mean())


def plot_neighbours(images: Tensor, examples: Tensor, weights: Tensor) -> "Figure":
    """A row for each image: the query, then the five examples with the largest weights."""
    top = weights.topk(5)
    rows = torch.cat([images[:, None], examples[top.indices]], 1)
    titles = [["query", *(f"{weight:.2f}" for weight in row)] for row in top.values.tolist()]
    return image_grid(rows.flatten(0, 1), columns=6, titles=[title for row in titles for title in row])
