"""A disc inside a ring, layer by layer: ReLU networks undo the shape in fewer layers than tanh (Diehl sec. 1)."""

from dataclasses import dataclass
from math import pi
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.optim import Adam

from parnassus.data import Split
from parnassus.layers import (
    Activation,
    Betti,
    Classifier,
    betti,
    landmarks,
    layer_outputs,
    mlp,
    relu,
    require_labels,
    tanh,
)
from parnassus.report import PALETTE, curves, subplots
from parnassus.train import Run, at_least, between

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("D1.0.10",)
expected = {
    "accuracy": at_least(0.999, "worst training accuracy of all networks"),
    "relu_layers": between(1.5, 4.0, "mean number of layers until both classes are one piece without holes, ReLU"),
    "tanh_layers": between(3.8, 5.5, "the same with tanh"),
    "layers_saved": at_least(0.6, "what ReLU saves, in layers"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"steps": 30, "networks": 1, "landmarks": 40}, "gpu": {}}
UNITS: dict[str, Activation] = {"ReLU": relu, "tanh": tanh}
SIMPLE = Betti(1, 0)


@dataclass(frozen=True)
class Experiment:
    width: int = 10  # units of each hidden layer
    hidden: int = 6  # hidden layers
    steps: int = 500  # full-batch steps of Adam
    networks: int = 5  # networks of each kind
    landmarks: int = 70  # points of a class whose shape is measured
    scale: float = 0.35  # of the shape, in typical distances between two points

    def __call__(self, run: Run) -> dict[str, float]:
        excess: dict[str, list[list[int]]] = {name: [] for name in UNITS}
        worst = 1.0
        for name, sigma in UNITS.items():
            for seed in range(run.seed, run.seed + self.networks):
                data = disc_and_ring(600, seed)
                network, right = self.classify(data, sigma, seed)
                worst = min(worst, right)
                clouds = [data.x, *(h.detach() for h in layer_outputs(network, data.x))]
                excess[name].append([self.complexity(cloud, data) for cloud in clouds])
                if seed == run.seed:
                    run.figure(
                        f"through a {name} network",
                        draw_layers(clouds, data),
                        f"The two classes after each layer of a {name} network, along the two directions in which "
                        "they spread most.",
                    )
        depth = range(self.hidden + 2)
        mean = {name: torch.tensor(rows, dtype=torch.float64).mean(0) for name, rows in excess.items()}
        run.figure(
            "pieces and holes left",
            curves(
                {name: (depth, values) for name, values in mean.items()},
                x_label="layers behind (0: the data, last: the logits)",
                y_label="pieces and holes too many",
            ),
            f"Pieces and holes of both classes beyond one piece each, the mean over {self.networks} networks. The data "
            "have one too many, the hole of the ring. Layers of ReLU fold and stretch on the way and are done sooner; "
            "layers of tanh carry the hole along until their units saturate.",
        )
        layers = {name: sum(map(first_simple, rows)) / len(rows) for name, rows in excess.items()}
        run.table(
            "layers needed",
            [
                {"units": name, "network": i, "layers": first_simple(row)}
                for name in UNITS
                for i, row in enumerate(excess[name], 1)
            ],
            "After so many layers both classes are, and stay, one piece without a hole.",
        )
        return {
            "accuracy": worst,
            "relu_layers": layers["ReLU"],
            "tanh_layers": layers["tanh"],
            "layers_saved": layers["tanh"] - layers["ReLU"],
        }

    def classify(self, data: Split, sigma: Activation, seed: int) -> tuple[nn.Sequential, float]:
        torch.manual_seed(seed)
        labels = require_labels(data.y, 2)
        network = mlp((2, *[self.width] * self.hidden, 2), activation=sigma)
        model = Classifier(network)
        optimizer = Adam(model.parameters(), lr=0.01)
        for _ in range(self.steps):
            optimizer.zero_grad()
            model.loss(data.x, labels).backward()
            optimizer.step()
        return network, float((model.predict(data.x) == labels).double().mean())

    def complexity(self, cloud: Tensor, data: Split) -> int:
        """Pieces and holes of both classes beyond one piece each, at a scale that goes with the size of the cloud."""
        labels = require_labels(data.y, 2)
        scale = max(self.scale * float(torch.pdist(cloud[::3]).square().mean().sqrt()), 1e-9)
        shapes = [
            of_class[landmarks(of_class, self.landmarks)] for of_class in (cloud[labels == 0], cloud[labels == 1])
        ]
        return sum(sum(betti(shape, scale)) - sum(SIMPLE) for shape in shapes)


def disc_and_ring(count: int, seed: int) -> Split:
    """A disc of radius ½, and around it a ring from 0.9 to 1.2."""
    source = torch.Generator().manual_seed(seed)
    label = torch.arange(count) % 2
    angle, share = 2 * pi * torch.rand(count, generator=source), torch.rand(count, generator=source)
    radius = torch.where(label == 0, 0.5 * share.sqrt(), 0.9 + 0.3 * share)
    return Split(radius[:, None] * torch.stack([angle.cos(), angle.sin()], 1), label)


def first_simple(excess: list[int]) -> int:
    """The number of layers after which nothing is too many any more."""
    left = [layer for layer, number in enumerate(excess) if number]
    return left[-1] + 1 if left else 0


def draw_layers(clouds: list[Tensor], data: Split) -> "Figure":
    columns = 4
    figure, axes = subplots(-(-len(clouds) // columns), columns, size=(10.4, 2.6 * -(-len(clouds) // columns)))
    labels = require_labels(data.y, 2)
    for ax in axes.flat[len(clouds) :]:
        ax.set_axis_off()
    for layer, (ax, cloud) in enumerate(zip(axes.flat, clouds, strict=False)):
        centred = cloud - cloud.mean(0)
        places = centred @ torch.linalg.svd(centred, full_matrices=False).Vh[:2].T
        for kind in (0, 1):
            chosen = places[labels == kind]
            ax.scatter(chosen[:, 0], chosen[:, 1], s=5, color=PALETTE[kind], linewidths=0)
        ax.set(title="the data" if layer == 0 else "the logits" if layer == len(clouds) - 1 else f"layer {layer}")
        ax.set_xticks([])
        ax.set_yticks([])
        ax.set_aspect("equal", adjustable="datalim")
    return figure
