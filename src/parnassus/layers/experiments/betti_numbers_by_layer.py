"""Betti numbers of two classes by layer: ReLU networks simplify the topology earlier than tanh (Diehl sec. 1)."""

from dataclasses import dataclass
from math import pi
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.optim import Adam

from parnassus.data import Split
from parnassus.layers import (
    Activation,
    BettiNumbers,
    Classifier,
    betti_numbers,
    check_labels,
    farthest_point_sampling,
    layer_outputs,
    mlp,
    relu,
    tanh,
)
from parnassus.report import PALETTE, curves, subplots
from parnassus.train import Positive, Run, at_least, between

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("D1.0.10",)
expected = {
    "accuracy": at_least(0.999, "lowest training accuracy of all networks"),
    "relu_layers": between(1.5, 4.0, "mean number of layers until both classes are connected and without holes, ReLU"),
    "tanh_layers": between(3.8, 5.5, "mean number of layers until both classes are connected and without holes, tanh"),
    "layer_difference": at_least(0.6, "mean number of layers with tanh minus that with ReLU"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"steps": 30, "num_networks": 1, "num_landmarks": 40}, "gpu": {}}
ACTIVATIONS: dict[str, Activation] = {"ReLU": relu, "tanh": tanh}
SIMPLE = BettiNumbers(1, 0)


@dataclass(frozen=True)
class Experiment:
    width: Positive[int] = 10  # units of each hidden layer
    num_hidden_layers: Positive[int] = 6  # hidden layers
    steps: Positive[int] = 500  # full-batch steps of Adam
    num_networks: Positive[int] = 5  # networks per activation function
    num_landmarks: Positive[int] = 70  # landmark points per class for the Betti numbers
    scale: Positive[float] = 0.35  # filtration scale, relative to the root mean square distance of two points

    def __call__(self, run: Run) -> dict[str, float]:
        excess: dict[str, list[list[int]]] = {name: [] for name in ACTIVATIONS}
        lowest_accuracy = 1.0
        for name, activation in ACTIVATIONS.items():
            for seed in range(run.seed, run.seed + self.num_networks):
                data = disc_and_ring(600, seed)
                network, accuracy = self.train_classifier(data, activation, seed)
                lowest_accuracy = min(lowest_accuracy, accuracy)
                clouds = [data.x, *(h.detach() for h in layer_outputs(network, data.x))]
                excess[name].append([self.excess_betti_number(cloud, data) for cloud in clouds])
                if seed == run.seed:
                    run.figure(
                        f"layer outputs, {name}",
                        plot_layers(clouds, data),
                        f"The two classes after each layer of a {name} network, on their first two principal "
                        "components.",
                    )
        layers = range(self.num_hidden_layers + 2)
        mean = {name: torch.tensor(rows, dtype=torch.float64).mean(0) for name, rows in excess.items()}
        run.figure(
            "excess Betti number by layer",
            curves(
                {name: (layers, values) for name, values in mean.items()},
                x_label="layer (0: data, last: logits)",
                y_label="β₀ + β₁, summed over classes, minus 2",
            ),
            f"Connected components and holes of both classes, minus one component each; mean over {self.num_networks} "
            "networks. The data have an excess of one, the hole of the ring. ReLU layers are not injective and remove "
            "it early; tanh layers keep it until their units saturate.",
        )
        layers_needed = {name: sum(map(first_simple_layer, rows)) / len(rows) for name, rows in excess.items()}
        run.table(
            "layers needed",
            [
                {"activation": name, "network": i, "layers": first_simple_layer(row)}
                for name in ACTIVATIONS
                for i, row in enumerate(excess[name], 1)
            ],
            "Number of layers after which both classes stay connected and without holes.",
        )
        return {
            "accuracy": lowest_accuracy,
            "relu_layers": layers_needed["ReLU"],
            "tanh_layers": layers_needed["tanh"],
            "layer_difference": layers_needed["tanh"] - layers_needed["ReLU"],
        }

    def train_classifier(self, data: Split, activation: Activation, seed: int) -> tuple[nn.Sequential, float]:
        torch.manual_seed(seed)
        labels = check_labels(data.y, 2)
        network = mlp((2, *[self.width] * self.num_hidden_layers, 2), activation=activation)
        model = Classifier(network)
        optimizer = Adam(model.parameters(), lr=0.01)
        for _ in range(self.steps):
            optimizer.zero_grad()
            model.loss(data.x, labels).backward()
            optimizer.step()
        return network, float((model.predict(data.x) == labels).double().mean())

    def excess_betti_number(self, cloud: Tensor, data: Split) -> int:
        """β₀ + β₁ summed over both classes, minus one component each; the scale is relative to the cloud."""
        labels = check_labels(data.y, 2)
        scale = max(self.scale * float(torch.pdist(cloud[::3]).square().mean().sqrt()), 1e-9)
        landmarks = [
            points[farthest_point_sampling(points, self.num_landmarks)]
            for points in (cloud[labels == 0], cloud[labels == 1])
        ]
        return sum(sum(betti_numbers(points, scale)) - sum(SIMPLE) for points in landmarks)


def disc_and_ring(count: int, seed: int) -> Split:
    """A disc of radius ½ inside a ring with radii 0.9 and 1.2."""
    generator = torch.Generator().manual_seed(seed)
    label = torch.arange(count) % 2
    angle, uniform = 2 * pi * torch.rand(count, generator=generator), torch.rand(count, generator=generator)
    radius = torch.where(label == 0, 0.5 * uniform.sqrt(), 0.9 + 0.3 * uniform)
    return Split(radius[:, None] * torch.stack([angle.cos(), angle.sin()], 1), label)


def first_simple_layer(excess: list[int]) -> int:
    """The first layer from which on the excess Betti number is zero."""
    positive = [layer for layer, number in enumerate(excess) if number]
    return positive[-1] + 1 if positive else 0


def plot_layers(clouds: list[Tensor], data: Split) -> "Figure":
    columns = 4
    figure, axes = subplots(-(-len(clouds) // columns), columns, size=(10.4, 2.6 * -(-len(clouds) // columns)))
    labels = check_labels(data.y, 2)
    for ax in axes.flat[len(clouds) :]:
        ax.set_axis_off()
    for layer, (ax, cloud) in enumerate(zip(axes.flat, clouds, strict=False)):
        centred = cloud - cloud.mean(0)
        projected = centred @ torch.linalg.svd(centred, full_matrices=False).Vh[:2].T
        for label in (0, 1):
            points = projected[labels == label]
            ax.scatter(points[:, 0], points[:, 1], s=5, color=PALETTE[label], linewidths=0)
        ax.set(title="data" if layer == 0 else "logits" if layer == len(clouds) - 1 else f"layer {layer}")
        ax.set_xticks([])
        ax.set_yticks([])
        ax.set_aspect("equal", adjustable="datalim")
    return figure
