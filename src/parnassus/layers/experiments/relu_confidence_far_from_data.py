"""Confidence of classifiers far from the data: unbounded with ReLU, bounded with tanh (Diehl sec. 1)."""

from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.optim import Adam

from parnassus.data import Split
from parnassus.data.built_in.toy import moons
from parnassus.layers import Activation, Classifier, check_labels, mlp, relu, sigmoid, tanh
from parnassus.losses import log_softmax
from parnassus.report import INK, PALETTE, curves, subplots
from parnassus.report.style import SEQUENTIAL
from parnassus.train import Positive, Run, at_least, at_most, between

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("D1.0.10",)
expected = {
    "relu_neg_log10_error": at_least(5_000.0, "−log₁₀(1 − confidence) with ReLU at α = 1,000"),
    "relu_growth_ratio": between(9.5, 10.5, "ratio of −log₁₀(1 − confidence) at α = 1,000 to that at α = 100, ReLU"),
    "tanh_neg_log10_error": at_most(12.0, "−log₁₀(1 − confidence) with tanh at α = 1,000"),
    "tanh_growth_ratio": between(0.95, 1.05, "ratio of −log₁₀(1 − confidence) at α = 1,000 to that at α = 100, tanh"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"steps": 30, "num_networks": 2}, "gpu": {}}
ACTIVATIONS: dict[str, Activation] = {"ReLU": relu, "tanh": tanh, "sigmoid": sigmoid}
MAP_EXTENT = 15.0  # the confidence maps cover [−15, 15]²; the data lie within distance 2


@dataclass(frozen=True)
class Experiment:
    steps: Positive[int] = 300  # full-batch steps of Adam
    num_networks: Positive[int] = 5  # classifiers per activation
    num_directions: Positive[int] = 200  # random rays from the origin

    def __call__(self, run: Run) -> dict[str, float]:
        distances = torch.logspace(0, 3, 31, dtype=torch.float64)
        generator = torch.Generator().manual_seed(run.seed)
        rays = torch.randn(self.num_directions, 2, generator=generator, dtype=torch.float64)
        rays = rays / rays.norm(dim=1, keepdim=True)
        log_errors, maps = {}, {}
        for name, sigma in ACTIVATIONS.items():
            models = [self.fit_classifier(sigma, seed) for seed in range(run.seed, run.seed + self.num_networks)]
            log_confidences = torch.stack([log_confidence(each, distances[:, None, None] * rays) for each in models], 1)
            log_errors[name] = log_confidences.mean((1, 2))
            maps[name] = 1 - 10 ** -log_confidence(models[0], square_grid(121))
        lines = {name: (distances, values) for name, values in log_errors.items()}
        run.figure(
            "confidence along rays",
            curves(
                lines, x_label="distance from the origin, α", y_label="−log₁₀(1 − confidence)", log_x=True, log_y=True
            ),
            "−log₁₀(1 − max_k softmax(f(αx))_k), mean over "
            f"{self.num_networks} classifiers of the two-moons data and {self.num_directions} directions. With ReLU "
            "the logits, and therefore this quantity, grow linearly in α; with bounded activations both converge.",
        )
        run.figure(
            "confidence maps",
            plot_confidence(maps, moons(200, noise=0.15, seed=run.seed)),
            "Confidence of one classifier per activation on a square much larger than the data (dots). It is low only "
            "along the decision boundary; in none of the three does it decrease far from the training data.",
        )
        growth = {name: float(values[-1] / values[20]) for name, values in log_errors.items()}
        run.note(
            "results",
            f"At α = 1,000, −log₁₀(1 − confidence) is {float(log_errors['ReLU'][-1]):.0f} with ReLU "
            f"and {float(log_errors['tanh'][-1]):.0f} with tanh. tanh does not solve the problem: its "
            "confidence does not decrease away from the data, it only stops growing.",
        )
        return {
            "relu_neg_log10_error": float(log_errors["ReLU"][-1]),
            "relu_growth_ratio": growth["ReLU"],
            "tanh_neg_log10_error": float(log_errors["tanh"][-1]),
            "tanh_growth_ratio": growth["tanh"],
        }

    def fit_classifier(self, sigma: Activation, seed: int) -> nn.Sequential:
        """A classifier of the two-moons data with two hidden layers."""
        torch.manual_seed(seed)
        data, network = moons(400, noise=0.15, seed=seed), mlp((2, 32, 32, 2), activation=sigma)
        model = Classifier(network)
        optimizer = Adam(model.parameters(), lr=0.01)
        for _ in range(self.steps):
            optimizer.zero_grad()
            model.loss(data.x, check_labels(data.y, 2)).backward()
            optimizer.step()
        return network.double()


@torch.no_grad()
def log_confidence(network: nn.Sequential, x: Tensor) -> Tensor:
    """−log₁₀(1 − max softmax probability), computed from log-probabilities to avoid underflow."""
    others = log_softmax(network(x)).sort(-1).values[..., :-1]
    return -others.logsumexp(-1) / log(10)


def square_grid(points: int) -> Tensor:
    line = torch.linspace(-MAP_EXTENT, MAP_EXTENT, points, dtype=torch.float64)
    up, across = torch.meshgrid(line, line, indexing="ij")
    return torch.stack([across, up], -1)


def plot_confidence(maps: dict[str, Tensor], data: Split) -> "Figure":
    figure, axes = subplots(1, len(maps), size=(11.0, 3.6))
    labels, box = check_labels(data.y, 2), (-MAP_EXTENT, MAP_EXTENT, -MAP_EXTENT, MAP_EXTENT)
    for ax, (name, confidence) in zip(axes[0], maps.items(), strict=True):
        image = ax.imshow(confidence.numpy(), extent=box, origin="lower", cmap=SEQUENTIAL, vmin=0.5, vmax=1)
        for kind, colour in enumerate((PALETTE[1], INK)):
            chosen = data.x[labels == kind]
            ax.scatter(chosen[:, 0], chosen[:, 1], s=4, color=colour, linewidths=0)
        ax.set(title=name)
        ax.grid(visible=False)
    figure.colorbar(image, ax=list(axes[0]), label="confidence").outline.set_visible(False)
    return figure
