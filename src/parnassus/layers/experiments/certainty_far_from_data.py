"""Far from all data a ReLU classifier is certain, a bounded one stays as unsure as it was (Diehl sec. 1)."""

from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.optim import Adam

from parnassus.data import Split
from parnassus.data.toy import moons
from parnassus.layers import Activation, Classifier, mlp, relu, require_labels, sigmoid, tanh
from parnassus.losses import log_softmax
from parnassus.report import INK, PALETTE, curves, subplots
from parnassus.report.ink import SEQUENTIAL
from parnassus.train import Run, at_least, at_most, between

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("D1.0.10",)
expected = {
    "relu_digits": at_least(5_000.0, "digits of certainty with ReLU, a thousand times as far out as the data"),
    "relu_growth": between(9.5, 10.5, "digits of certainty at α = 1,000 over those at α = 100, ReLU"),
    "tanh_digits": at_most(12.0, "digits of certainty with tanh, a thousand times as far out as the data"),
    "tanh_growth": between(0.95, 1.05, "digits of certainty at α = 1,000 over those at α = 100, tanh"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"steps": 30, "networks": 2}, "gpu": {}}
UNITS: dict[str, Activation] = {"ReLU": relu, "tanh": tanh, "sigmoid": sigmoid}
REACH = 15.0  # of the plane that is drawn; the data reach to 2


@dataclass(frozen=True)
class Experiment:
    steps: int = 300  # full-batch steps of Adam
    networks: int = 5  # classifiers of each kind
    directions: int = 200  # rays from the origin

    def __call__(self, run: Run) -> dict[str, float]:
        far = torch.logspace(0, 3, 31, dtype=torch.float64)
        source = torch.Generator().manual_seed(run.seed)
        rays = torch.randn(self.directions, 2, generator=source, dtype=torch.float64)
        rays = rays / rays.norm(dim=1, keepdim=True)
        digits, maps = {}, {}
        for name, sigma in UNITS.items():
            models = [self.classify(sigma, seed) for seed in range(run.seed, run.seed + self.networks)]
            certain = torch.stack([digits_of_certainty(each, far[:, None, None] * rays) for each in models], 1)
            digits[name] = certain.mean((1, 2))
            maps[name] = 1 - 10 ** -digits_of_certainty(models[0], plane(121))
        lines = {name: (far, values) for name, values in digits.items()}
        run.figure(
            "certainty along rays",
            curves(lines, x_label="distance from the origin, α", y_label="digits of certainty", log_x=True, log_y=True),
            "−log₁₀(1 − max_k softmax(f(αx))_k): how many nines the confidence has. The mean over "
            f"{self.networks} classifiers of two moons and {self.directions} directions. With ReLU the logits, and the "
            "nines with them, grow in proportion to α; with bounded units both come to a rest.",
        )
        run.figure(
            "confidence over the plane",
            draw_confidence(maps, moons(200, noise=0.15, seed=run.seed)),
            "How sure one classifier of each kind is, over a square much larger than its data (dots). The unsure "
            "places are along the boundary; none of the three is unsure because it has never seen anything there.",
        )
        growth = {name: float(values[-1] / values[20]) for name, values in digits.items()}
        run.note(
            "what to see",
            f"A thousand times as far out as the data, confidence has {float(digits['ReLU'][-1]):.0f} nines with ReLU "
            f"and {float(digits['tanh'][-1]):.0f} with tanh. That is no merit of tanh: it is not unsure where it "
            "should be, only no surer than a little way out.",
        )
        return {
            "relu_digits": float(digits["ReLU"][-1]),
            "relu_growth": growth["ReLU"],
            "tanh_digits": float(digits["tanh"][-1]),
            "tanh_growth": growth["tanh"],
        }

    def classify(self, sigma: Activation, seed: int) -> nn.Sequential:
        """A classifier of two moons with two hidden layers."""
        torch.manual_seed(seed)
        data, network = moons(400, noise=0.15, seed=seed), mlp((2, 32, 32, 2), activation=sigma)
        model = Classifier(network)
        optimizer = Adam(model.parameters(), lr=0.01)
        for _ in range(self.steps):
            optimizer.zero_grad()
            model.loss(data.x, require_labels(data.y, 2)).backward()
            optimizer.step()
        return network.double()


@torch.no_grad()
def digits_of_certainty(network: nn.Sequential, x: Tensor) -> Tensor:
    """−log₁₀ of what softmax leaves for all classes but the likeliest, from logarithms: the rest itself underflows."""
    rest = log_softmax(network(x)).sort(-1).values[..., :-1]
    return -rest.logsumexp(-1) / log(10)


def plane(points: int) -> Tensor:
    line = torch.linspace(-REACH, REACH, points, dtype=torch.float64)
    up, across = torch.meshgrid(line, line, indexing="ij")
    return torch.stack([across, up], -1)


def draw_confidence(maps: dict[str, Tensor], data: Split) -> "Figure":
    figure, axes = subplots(1, len(maps), size=(11.0, 3.6))
    labels, box = require_labels(data.y, 2), (-REACH, REACH, -REACH, REACH)
    for ax, (name, sure) in zip(axes[0], maps.items(), strict=True):
        shown = ax.imshow(sure.numpy(), extent=box, origin="lower", cmap=SEQUENTIAL, vmin=0.5, vmax=1)
        for kind, colour in enumerate((PALETTE[1], INK)):
            chosen = data.x[labels == kind]
            ax.scatter(chosen[:, 0], chosen[:, 1], s=4, color=colour, linewidths=0)
        ax.set(title=name)
        ax.grid(visible=False)
    figure.colorbar(shown, ax=list(axes[0]), label="confidence").outline.set_visible(False)
    return figure
