"""Convolutional NNGP and NTK on images: effects of convolution and pooling (book sec. 15.3)."""

from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from parnassus.data import DataError, Dataset, open_data
from parnassus.kernels.gaussian_processes.model_selection import select_by_evidence
from parnassus.kernels.infinite_width.compiled import CompiledLayer
from parnassus.kernels.infinite_width.convolution import Convolution
from parnassus.kernels.infinite_width.layer import Activation, Dense, Layer
from parnassus.kernels.infinite_width.network import Kernels, Network
from parnassus.kernels.infinite_width.nonlinearity import ReLU, normaliser
from parnassus.kernels.infinite_width.pooling import Flatten, GlobalAveragePooling
from parnassus.kernels.solvers.linear_solvers import CholeskySolver
from parnassus.report import PALETTE, subplots
from parnassus.setting_types import ImageData
from parnassus.train import NonNegative, Positive, Run, at_least, at_most, no_band
from parnassus.train.timing import synchronise

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B15.3-5", "B15.4-3")
expected = {
    "accuracy_dense_nngp": at_least(0.9, "test accuracy of the fully connected network, NNGP"),
    "accuracy_dense_ntk": at_least(0.9, "test accuracy of the fully connected network, NTK"),
    "accuracy_convolution_nngp": at_least(0.9, "test accuracy of the flattened CNN, NNGP"),
    "accuracy_convolution_ntk": at_least(0.9, "test accuracy of the flattened CNN, NTK"),
    "accuracy_pooled_nngp": at_least(0.94, "test accuracy of the pooled CNN, NNGP"),
    "accuracy_pooled_ntk": at_least(0.93, "test accuracy of the pooled CNN, NTK"),
    "shifted_dense_nngp": at_most(0.75, "accuracy on test images shifted by a pixel, fully connected network, NNGP"),
    "shifted_convolution_nngp": at_most(0.75, "accuracy on test images shifted by a pixel, flattened CNN, NNGP"),
    "shifted_pooled_nngp": at_least(0.85, "accuracy on test images shifted by a pixel, pooled CNN, NNGP"),
    "microseconds_dense": no_band("time per entry of both kernels in µs, fully connected network"),
    "microseconds_convolution": no_band("time per entry of both kernels in µs, flattened CNN"),
    "microseconds_pooled": no_band("time per entry of both kernels in µs, pooled CNN: all pairs of positions"),
    "rounding": at_most(1e-5, "maximum relative error of kernel entries in single precision"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"num_examples": 40, "num_test": 20, "num_examples_pooling": 30, "num_layers": 2},
    "gpu": {
        "data": "cifar10",
        "num_examples": 10_000,
        "num_test": 500,
        "num_examples_pooling": 2_000,
        "num_layers": 5,
        "compile_kernels": True,
    },
}
NOISE_LEVELS = torch.logspace(-6, 0, 19, dtype=torch.float64).tolist()
"""Candidate noise variances relative to the mean variance of a kernel, selected by marginal likelihood."""
NUM_TUNING = 1_000
"""Maximum number of training images for the selection of the noise."""
NUM_SHIFTED = 40
"""Images in the figure of shifts."""
NAMES = {"dense": "fully connected", "convolution": "convolution, flattened", "pooled": "convolution, pooled"}


class Scores(NamedTuple):
    """Test accuracy for growing n, accuracy on shifted images, and the selected noise, of one kernel."""

    sizes: list[int]
    accuracy: list[float]
    shifted: float
    noise: float


@dataclass(frozen=True)
class Experiment:
    data: ImageData = "digits"  # images by class: name of a data set, or path of a folder
    image_size: Positive[int] | None = None  # resize the images of a folder to squares with sides of this many pixels
    num_examples: Positive[int] = 240  # maximum number of training images
    num_test: Positive[int] = 120  # maximum number of test images
    num_examples_pooling: Positive[int] = 240  # training images for the pooled kernel, whose entries are slowest
    num_layers: Positive[int] = 3  # ReLU layers
    kernel_size: Positive[int] = 3  # side of the convolution kernels
    bias_variance: NonNegative[float] = 0.1  # variance of the biases
    compile_kernels: bool = False  # fuse the operations of a layer with torch.compile

    def __call__(self, run: Run) -> dict[str, float]:
        task = self._task(run)
        networks = {name: self._network(name) for name in NAMES}
        scores: dict[str, dict[str, Scores]] = {}
        microseconds, rounding = {}, 0.0
        for name, network in networks.items():
            x, few = task.train[: self.num_examples_pooling] if name == "pooled" else task.train, task.train[:8]
            own, cross, shifted, seconds = _evaluate_kernels(
                network, *(reshape_inputs(name, part) for part in (x, task.test, task.shifted))
            )
            microseconds[name] = 1e6 * seconds / (len(x) * (len(x) + 1) / 2 + 2 * len(x) * len(task.test))
            exact = network.kernels(reshape_inputs(name, few).double())
            for kernel, reference in zip(own, exact, strict=True):
                rounding = max(rounding, float((kernel[:8, :8].double() / reference - 1).abs().max()))
            scores[name] = {
                kind: _fit_and_score(own[index], cross[index], shifted[index], task)
                for index, kind in enumerate(("nngp", "ntk"))
            }
        self._report(run, scores, microseconds, networks, task)
        return {
            **{f"accuracy_{name}_{kind}": each.accuracy[-1] for name in NAMES for kind, each in scores[name].items()},
            **{f"shifted_{name}_nngp": scores[name]["nngp"].shifted for name in NAMES},
            **{f"microseconds_{name}": time for name, time in microseconds.items()},
            "rounding": rounding,
        }

    def _network(self, name: str) -> Network:
        gain = normaliser(ReLU())
        first, later = (
            Network(
                (
                    Dense(weight, self.bias_variance)
                    if name == "dense"
                    else Convolution(self.kernel_size, weight, self.bias_variance),
                    Activation(ReLU()),
                )
            )
            for weight in (1.0, gain)
        )
        repeated = (CompiledLayer(later),) if self.compile_kernels and name != "dense" else later.layers
        layers = (*first.layers, *repeated * (self.num_layers - 1))
        end: dict[str, list[Layer]] = {"dense": [], "convolution": [Flatten()], "pooled": [GlobalAveragePooling()]}
        return Network((*layers, *end[name], Dense(gain, self.bias_variance)))

    def _task(self, run: Run) -> "ImageClassificationTask":
        data = open_data(self.data, size=self.image_size)
        if len(data.shape) != 3 or data.train.y is None or not data.classes:
            raise DataError(f"{self.data} must hold images with classes; its examples have the shape {data.shape}.")
        if min(self.num_examples, self.num_test, self.num_examples_pooling) < 10:
            raise ValueError(
                "num_examples, num_test and num_examples_pooling must be at least 10; "
                f"got num_examples={self.num_examples}, num_test={self.num_test}, "
                f"num_examples_pooling={self.num_examples_pooling}"
            )
        device = torch.device("cpu") if run.device.type == "mps" else run.device  # MPS has no float64
        return ImageClassificationTask.from_data(data, self.num_examples, self.num_test, seed=run.seed, device=device)

    def _report(
        self,
        run: Run,
        scores: dict[str, dict[str, Scores]],
        microseconds: dict[str, float],
        networks: dict[str, Network],
        task: "ImageClassificationTask",
    ) -> None:
        flat, pooled = scores["convolution"]["nngp"], scores["pooled"]["nngp"]
        run.note(
            "results",
            "The kernel of an infinitely wide CNN with flattening compares equal positions only: its test accuracy is "
            f"{flat.accuracy[-1]:.0%}, and {flat.shifted:.0%} on images shifted by a pixel. With global pooling "
            f"all pairs of positions are compared: {pooled.accuracy[-1]:.0%} and {pooled.shifted:.0%}, with "
            f"{pooled.sizes[-1]:,} training images instead of {flat.sizes[-1]:,}.",
        )
        rows: list[dict[str, str | float]] = [
            {
                "network": NAMES[name],
                "kernel": kind.upper(),
                "number of training images": each.sizes[-1],
                "test accuracy": f"{each.accuracy[-1]:.1%}",
                "accuracy, shifted": f"{each.shifted:.1%}",
                "noise": f"{each.noise:.1e}",
                "time per entry (µs)": f"{microseconds[name]:,.2f}",
            }
            for name, kinds in scores.items()
            for kind, each in kinds.items()
        ]
        run.table(
            "accuracy by network",
            rows,
            "Accuracy on test images, original and shifted by one pixel. Noise is relative to the mean variance of the "
            "kernel, selected by marginal likelihood from 10⁻⁶ to 1. Time is per entry of both kernels in single "
            "precision.",
        )
        run.figure(
            "accuracy against n",
            plot_accuracy(scores),
            "Regression on one-hot classes with n training images; solid lines NNGP, dashed lines NTK.",
        )
        run.figure(
            "robustness to shifts",
            plot_shifts(networks, task.test[:NUM_SHIFTED]),
            f"{min(NUM_SHIFTED, len(task.test))} test images shifted to the right: fraction whose NNGP correlation is "
            "still largest with its own unshifted image.",
        )


@dataclass(frozen=True)
class ImageClassificationTask:
    """Images with mean 0 and variance 1 over all pixels, and their classes as −1/k or 1 − 1/k."""

    train: Tensor
    targets: Tensor
    test: Tensor
    shifted: Tensor
    labels: Tensor

    @classmethod
    def from_data(
        cls, data: Dataset, num_examples: int, num_test: int, *, seed: int, device: torch.device
    ) -> "ImageClassificationTask":
        """A random subset of the images; test images also shifted by one pixel in random directions."""
        assert data.train.y is not None
        assert data.test.y is not None
        generator = torch.Generator().manual_seed(seed)
        rows = torch.randperm(len(data.train.x), generator=generator)[:num_examples]
        test_rows = torch.randperm(len(data.test.x), generator=generator)[:num_test]
        x, test = data.train.x[rows], data.test.x[test_rows]
        offsets = torch.tensor([(0, 1), (0, -1), (1, 0), (-1, 0)])[torch.randint(4, (len(test),), generator=generator)]
        shifted = torch.stack([shift(image, *offset) for image, offset in zip(test, offsets.tolist(), strict=True)])
        mean, deviation = x.mean(), x.std()
        targets = functional.one_hot(data.train.y[rows], len(data.classes)).double() - 1 / len(data.classes)
        images = [((part - mean) / deviation).to(device) for part in (x, test, shifted)]
        return cls(images[0], targets.to(device), images[1], images[2], data.test.y[test_rows].to(device))


def shift(image: Tensor, down: int, right: int) -> Tensor:
    """Shift an image by integer offsets in pixels, replicating its edge."""
    reach = max(abs(down), abs(right))
    height, width = image.shape[-2:]
    padded = functional.pad(image[None], (reach,) * 4, "replicate")[0]
    return padded[..., reach - down : reach - down + height, reach - right : reach - right + width]


def reshape_inputs(name: str, x: Tensor) -> Tensor:
    """Flatten images for the fully connected network."""
    return x.flatten(1) if name == "dense" else x


def _evaluate_kernels(
    network: Network, x: Tensor, test: Tensor, shifted: Tensor
) -> tuple[Kernels, Kernels, Kernels, float]:
    """Kernels of x with itself, test and shifted images, and the seconds taken."""
    synchronise(x.device)
    began = perf_counter()
    kernels = network.kernels(x), network.kernels(x, test), network.kernels(x, shifted)
    synchronise(x.device)
    return (*kernels, perf_counter() - began)


def _fit_and_score(own: Tensor, cross: Tensor, shifted: Tensor, task: ImageClassificationTask) -> Scores:
    """Kernel ridge regression on the first n images for growing n, in double precision."""
    own, cross, shifted = own.double(), cross.double(), shifted.double()
    n = len(own)
    selected = select_by_evidence(own[:NUM_TUNING, :NUM_TUNING], task.targets[: min(NUM_TUNING, n)], NOISE_LEVELS)
    sizes = [n // part for part in (16, 8, 4, 2, 1) if n // part >= 5]
    accuracy = []
    for size in sizes:
        solver = CholeskySolver.from_matrix(own[:size, :size].clone(), noise=selected.ratio)
        weights = solver.solve(task.targets[:size]).weights
        accuracy.append(_accuracy(cross[:size].mT @ weights, task.labels))
    shifted_accuracy = _accuracy(shifted.mT @ weights, task.labels)
    return Scores(sizes, accuracy, shifted_accuracy, selected.ratio / float(own.diagonal().mean()))


def _accuracy(scores: Tensor, labels: Tensor) -> float:
    return float((scores.argmax(1) == labels).double().mean())


def plot_accuracy(scores: dict[str, dict[str, Scores]]) -> "Figure":
    figure, axes = subplots(size=(7.0, 4.2))
    ax = axes[0, 0]
    for colour, (name, kinds) in zip(PALETTE, scores.items(), strict=False):
        for line, (kind, each) in zip(("-", "--"), kinds.items(), strict=True):
            label = NAMES[name] if kind == "nngp" else None
            ax.plot(each.sizes, each.accuracy, line, color=colour, marker="o", markersize=4, label=label)
    ax.set(xlabel="number of training images n", ylabel="test accuracy", xscale="log")
    ax.legend(loc="lower right")
    return figure


def plot_shifts(networks: dict[str, Network], images: Tensor) -> "Figure":
    stride = max(1, images.shape[-1] // 8)
    steps = range(0, min(5 * stride, images.shape[-1]), stride)
    figure, axes = subplots(size=(7.0, 4.2))
    ax = axes[0, 0]
    for colour, (name, network) in zip(PALETTE, networks.items(), strict=False):
        own = network.nngp(reshape_inputs(name, images))
        fractions = []
        for step in steps:
            shifted = torch.stack([shift(image, 0, step) for image in images])
            cross = network.nngp(reshape_inputs(name, images), reshape_inputs(name, shifted))
            correlation = cross / own.diagonal().sqrt()[:, None]
            fractions.append(float((correlation.argmax(0).cpu() == torch.arange(len(images))).double().mean()))
        ax.plot(steps, fractions, color=colour, marker="o", markersize=4, label=NAMES[name])
    ax.set(
        xlabel="shift to the right (pixels)",
        ylabel="fraction matched to the original",
        xticks=list(steps),
        ylim=(0.0, 1.05),
    )
    ax.legend()
    return figure
