"""Infinitely wide convolutional networks name images: what places and pooling are worth (book sec. 15.3)."""

from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from parnassus.data import DataError, Dataset, open_data
from parnassus.kernels.convolution import Convolution
from parnassus.kernels.joined import Joined
from parnassus.kernels.layer import Activation, Dense, Layer
from parnassus.kernels.network import Kernels, Network
from parnassus.kernels.nonlinearity import ReLU, normaliser
from parnassus.kernels.pooling import Flatten, GlobalAveragePooling
from parnassus.kernels.selection import by_evidence
from parnassus.kernels.solve import CholeskySolver
from parnassus.report import PALETTE, subplots
from parnassus.train import Run, at_least, at_most, reported

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B15.3-5", "B15.4-3")
expected = {
    "accuracy_dense_nngp": at_least(0.9, "share of unseen images named rightly, vectors of pixels"),
    "accuracy_dense_ntk": at_least(0.9, "the same with the tangent kernel"),
    "accuracy_convolution_nngp": at_least(0.9, "convolutions, flattened"),
    "accuracy_convolution_ntk": at_least(0.9, "the same with the tangent kernel"),
    "accuracy_pooled_nngp": at_least(0.94, "convolutions, pooled over the image"),
    "accuracy_pooled_ntk": at_least(0.93, "the same with the tangent kernel"),
    "moved_dense_nngp": at_most(0.75, "unseen images moved by a pixel, vectors of pixels"),
    "moved_convolution_nngp": at_most(0.75, "convolutions, flattened"),
    "moved_pooled_nngp": at_least(0.85, "convolutions, pooled"),
    "microseconds_dense": reported("an entry of both kernels"),
    "microseconds_convolution": reported("the same with convolutions, flattened"),
    "microseconds_pooled": reported("the same pooled: every place with every other"),
    "rounding": at_most(1e-5, "of single precision, the most over entries of all kernels, relative"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"train": 40, "test": 20, "pooled": 30, "depth": 2},
    "gpu": {"data": "cifar10", "train": 10_000, "test": 500, "pooled": 2_000, "depth": 5, "joined": True},
}
SHARES = torch.logspace(-6, 0, 19, dtype=torch.float64).tolist()
"""Of noise in the mean variance of a kernel, to choose from by marginal likelihood."""
TUNED = 1_000
"""Training images on which it is chosen, at most."""
SHOWN = 40
"""Images that are moved further and further."""
NAMES = {"dense": "dense", "convolution": "convolution, flattened", "pooled": "convolution, pooled"}


class Found(NamedTuple):
    """What one kernel reached with growing n training images, and with all of them on images moved by a pixel."""

    sizes: list[int]
    accuracy: list[float]
    moved: float
    noise: float


@dataclass(frozen=True)
class Experiment:
    data: str = "digits"  # a built-in name, or your own folder or file of images
    train: int = 240  # training images, at most
    test: int = 120  # unseen images, at most
    pooled: int = 240  # training images for the pooled kernel, whose entries cost most
    depth: int = 3  # layers with a rectifier
    size: int = 3  # side of the convolutions
    bias: float = 0.1  # variance of the biases
    joined: bool = False  # let torch.compile join the passes of a layer over memory

    def __call__(self, run: Run) -> dict[str, float]:
        task = self._task(run)
        networks = {name: self._network(name) for name in NAMES}
        found: dict[str, dict[str, Found]] = {}
        microseconds, rounding = {}, 0.0
        for name, network in networks.items():
            x, few = task.train[: self.pooled] if name == "pooled" else task.train, task.train[:8]
            own, across, moved, taken = _timed(network, *(seen(name, part) for part in (x, task.test, task.moved)))
            microseconds[name] = 1e6 * taken / (len(x) * (len(x) + 1) / 2 + 2 * len(x) * len(task.test))
            exact = network.kernels(seen(name, few).double())
            for kernel, whole in zip(own, exact, strict=True):
                rounding = max(rounding, float((kernel[:8, :8].double() / whole - 1).abs().max()))
            found[name] = {
                kind: _regressed(own[index], across[index], moved[index], task)
                for index, kind in enumerate(("nngp", "ntk"))
            }
        self._tell(run, found, microseconds, networks, task)
        return {
            **{f"accuracy_{name}_{kind}": each.accuracy[-1] for name in NAMES for kind, each in found[name].items()},
            **{f"moved_{name}_nngp": found[name]["nngp"].moved for name in NAMES},
            **{f"microseconds_{name}": taken for name, taken in microseconds.items()},
            "rounding": rounding,
        }

    def _network(self, name: str) -> Network:
        gain = normaliser(ReLU())
        first, later = (
            Network(
                (
                    Dense(weight, self.bias) if name == "dense" else Convolution(self.size, weight, self.bias),
                    Activation(ReLU()),
                )
            )
            for weight in (1.0, gain)
        )
        repeated = (Joined(later),) if self.joined and name != "dense" else later.layers
        layers = (*first.layers, *repeated * (self.depth - 1))
        end: dict[str, list[Layer]] = {"dense": [], "convolution": [Flatten()], "pooled": [GlobalAveragePooling()]}
        return Network((*layers, *end[name], Dense(gain, self.bias)))

    def _task(self, run: Run) -> "Task":
        data = open_data(self.data)
        if len(data.shape) != 3 or data.train.y is None or not data.classes:
            raise DataError(f"{self.data} must hold images with classes; its examples have the shape {data.shape}.")
        if min(self.train, self.test, self.pooled) < 10 or self.depth < 1:
            raise ValueError(
                "train, test and pooled must be at least 10, depth at least 1; "
                f"got train={self.train}, test={self.test}, pooled={self.pooled}, depth={self.depth}"
            )
        device = torch.device("cpu") if run.device.type == "mps" else run.device  # which has no float64
        return Task.of(data, self.train, self.test, seed=run.seed, device=device)

    def _tell(
        self,
        run: Run,
        found: dict[str, dict[str, Found]],
        microseconds: dict[str, float],
        networks: dict[str, Network],
        task: "Task",
    ) -> None:
        flat, pooled = found["convolution"]["nngp"], found["pooled"]["nngp"]
        run.note(
            "what to see",
            "An infinitely wide convolutional network that ends in all its places side by side compares each place "
            f"with itself only: of the unseen images it names {flat.accuracy[-1]:.0%} rightly, and {flat.moved:.0%} "
            "when they are moved by a pixel. With a mean over all places at the end every place meets every other: "
            f"{pooled.accuracy[-1]:.0%} and {pooled.moved:.0%}, after {pooled.sizes[-1]:,} training images in place of "
            f"{flat.sizes[-1]:,}.",
        )
        rows: list[dict[str, str | float]] = [
            {
                "network": NAMES[name],
                "kernel": kind.upper(),
                "training images": each.sizes[-1],
                "unseen": f"{each.accuracy[-1]:.1%}",
                "unseen, moved": f"{each.moved:.1%}",
                "noise": f"{each.noise:.1e}",
                "µs an entry": f"{microseconds[name]:,.2f}",
            }
            for name, kinds in found.items()
            for kind, each in kinds.items()
        ]
        run.table(
            "what each network reaches",
            rows,
            "Accuracy on unseen images, as they are and moved by one pixel. Noise is a share of the kernel's mean "
            "variance, chosen by marginal likelihood from 10⁻⁶ up. Time is for an entry of both kernels in single "
            "precision.",
        )
        run.figure(
            "accuracy over n",
            draw_accuracy(found),
            "Regression on one-hot classes with n training images; whole lines NNGP, dashed ones tangent kernel.",
        )
        run.figure(
            "what a step aside changes",
            draw_steps_aside(networks, task.test[:SHOWN]),
            f"{min(SHOWN, len(task.test))} unseen images moved to the right: the share that is still nearer to itself, "
            "unmoved, than to any other of them. Near is a large correlation, of the NNGP kernel.",
        )


@dataclass(frozen=True)
class Task:
    """Images with mean 0 and variance 1 over all pixels, and their classes as −1/k or 1 − 1/k."""

    train: Tensor
    targets: Tensor
    test: Tensor
    moved: Tensor
    labels: Tensor

    @classmethod
    def of(cls, data: Dataset, train: int, test: int, *, seed: int, device: torch.device) -> "Task":
        """A random choice of the images; the test images also moved by one pixel, each in a random direction."""
        assert data.train.y is not None
        assert data.test.y is not None
        source = torch.Generator().manual_seed(seed)
        rows = torch.randperm(len(data.train.x), generator=source)[:train]
        unseen = torch.randperm(len(data.test.x), generator=source)[:test]
        x, other = data.train.x[rows], data.test.x[unseen]
        ways = torch.tensor([(0, 1), (0, -1), (1, 0), (-1, 0)])[torch.randint(4, (len(other),), generator=source)]
        moved = torch.stack([step_aside(image, *way) for image, way in zip(other, ways.tolist(), strict=True)])
        mean, deviation = x.mean(), x.std()
        targets = functional.one_hot(data.train.y[rows], len(data.classes)).double() - 1 / len(data.classes)
        images = [((part - mean) / deviation).to(device) for part in (x, other, moved)]
        return cls(images[0], targets.to(device), images[1], images[2], data.test.y[unseen].to(device))


def step_aside(image: Tensor, down: int, right: int) -> Tensor:
    """An image moved by whole pixels; what comes in is a copy of its edge."""
    reach = max(abs(down), abs(right))
    high, wide = image.shape[-2:]
    wider = functional.pad(image[None], (reach,) * 4, "replicate")[0]
    return wider[..., reach - down : reach - down + high, reach - right : reach - right + wide]


def seen(name: str, x: Tensor) -> Tensor:
    """A dense network sees vectors."""
    return x.flatten(1) if name == "dense" else x


def _timed(network: Network, x: Tensor, test: Tensor, moved: Tensor) -> tuple[Kernels, Kernels, Kernels, float]:
    _wait(x)
    began = perf_counter()
    kernels = network.kernels(x), network.kernels(x, test), network.kernels(x, moved)
    _wait(x)
    return (*kernels, perf_counter() - began)


def _wait(x: Tensor) -> None:
    if x.is_cuda:
        torch.cuda.synchronize()


def _regressed(own: Tensor, across: Tensor, moved: Tensor, task: Task) -> Found:
    """Ridge regression on the first n images for growing n, in double precision."""
    own, across, moved = own.double(), across.double(), moved.double()
    most = len(own)
    choice = by_evidence(own[:TUNED, :TUNED], task.targets[: min(TUNED, most)], SHARES)
    sizes = [most // part for part in (16, 8, 4, 2, 1) if most // part >= 5]
    accuracy = []
    for size in sizes:
        weights = CholeskySolver.of(own[:size, :size].clone(), noise=choice.ratio).solve(task.targets[:size]).weights
        accuracy.append(_share_right(across[:size].mT @ weights, task.labels))
    aside = _share_right(moved.mT @ weights, task.labels)
    return Found(sizes, accuracy, aside, choice.ratio / float(own.diagonal().mean()))


def _share_right(scores: Tensor, labels: Tensor) -> float:
    return float((scores.argmax(1) == labels).double().mean())


def draw_accuracy(found: dict[str, dict[str, Found]]) -> "Figure":
    figure, axes = subplots(size=(7.0, 4.2))
    ax = axes[0, 0]
    for colour, (name, kinds) in zip(PALETTE, found.items(), strict=False):
        for line, (kind, each) in zip(("-", "--"), kinds.items(), strict=True):
            label = NAMES[name] if kind == "nngp" else None
            ax.plot(each.sizes, each.accuracy, line, color=colour, marker="o", markersize=4, label=label)
    ax.set(xlabel="training images n", ylabel="unseen images named rightly", xscale="log")
    ax.legend(loc="lower right")
    return figure


def draw_steps_aside(networks: dict[str, Network], images: Tensor) -> "Figure":
    stride = max(1, images.shape[-1] // 8)
    steps = range(0, min(5 * stride, images.shape[-1]), stride)
    figure, axes = subplots(size=(7.0, 4.2))
    ax = axes[0, 0]
    for colour, (name, network) in zip(PALETTE, networks.items(), strict=False):
        own = network.nngp(seen(name, images))
        found = []
        for step in steps:
            aside = torch.stack([step_aside(image, 0, step) for image in images])
            near = network.nngp(seen(name, images), seen(name, aside)) / own.diagonal().sqrt()[:, None]
            found.append(float((near.argmax(0).cpu() == torch.arange(len(images))).double().mean()))
        ax.plot(steps, found, color=colour, marker="o", markersize=4, label=NAMES[name])
    ax.set(xlabel="pixels moved to the right", ylabel="nearest to themselves", xticks=list(steps), ylim=(0.0, 1.05))
    ax.legend()
    return figure
