"""Batch normalisation with batch sizes from 2 to 2,048: test accuracy and noise of the statistics (Zhao sec. 8)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import sqrt
from typing import TypeAlias

import torch
from torch import Tensor
from torch.func import grad, vmap

from parnassus.atlas import exponent
from parnassus.data import Split, load_digits
from parnassus.layers import Moments, check_labels, moments, normalise, relu
from parnassus.losses import cross_entropy
from parnassus.report import curves
from parnassus.train import Positive, Run, at_least, at_most, between, no_band

covers = ("Z8.1", "Z8.2", "D1.6.7", "B2.2-1")
expected = {
    "accuracy_at_2": at_most(0.75, "test accuracy with batch normalisation, batch size 2"),
    "accuracy_at_64": at_least(0.93, "test accuracy with batch normalisation, batch size 64"),
    "accuracy_at_largest": at_least(0.93, "test accuracy with batch normalisation, largest batch size"),
    "best_batch_size": no_band("batch size with the highest test accuracy, with normalisation"),
    "accuracy_gain_at_2": at_most(-0.1, "test accuracy with normalisation minus that without, batch size 2"),
    "accuracy_gain_at_64": at_least(0.0, "test accuracy with normalisation minus that without, batch size 64"),
    "batch_mean_std_exponent": between(
        -0.55, -0.45, "exponent of the batch size in the standard deviation of batch means; −½ in theory"
    ),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"steps": 10, "num_networks": 1},
    "gpu": {"num_networks": 32, "steps": 2_000},
}

SIZES = (2, 4, 8, 16, 32, 64, 128, 256, 512, 2_048)
RATES = (0.03, 0.1, 0.3, 1.0)

Weights: TypeAlias = dict[str, Tensor]
Norm: TypeAlias = Callable[[Tensor], Moments]
"""Computes the mean and variance by which a layer's outputs are normalised."""


@dataclass(frozen=True)
class Experiment:
    width: Positive[int] = 64  # units of each of the two hidden layers
    steps: Positive[int] = 300  # gradient steps, the same for every batch size
    num_networks: Positive[int] = 3  # networks per batch size and learning rate

    def __call__(self, run: Run) -> dict[str, float]:
        digits = load_digits().to(run.device)
        train, validation = digits.train.take(1_000), Split(digits.train.x[1_000:], labels_from(digits.train.y, 1_000))
        parts = {"training": train, "validation": validation, "test": digits.test}
        accuracy = {
            name: [self.train(run, norm, size, parts) for size in SIZES]
            for name, norm in (("with normalisation", batch_moments), ("without", identity_moments))
        }
        tests = {name: torch.stack([each["test"] for each in results]) for name, results in accuracy.items()}
        run.figure(
            "accuracy by batch size",
            curves(
                {name: (SIZES, each.mean(1)) for name, each in tests.items()},
                x_label="batch size",
                y_label="test accuracy",
                log_x=True,
                bands={name: (each.amin(1), each.amax(1)) for name, each in tests.items()},
            ),
            f"After {self.steps} steps at the learning rate with the highest validation accuracy; mean and range over "
            f"{self.num_networks} networks.",
        )
        gaps = {
            name: (SIZES, [float((each["training"] - each["test"]).mean()) for each in results])
            for name, results in accuracy.items()
        }
        run.figure(
            "generalisation gap",
            curves(gaps, x_label="batch size", y_label="training − test accuracy", log_x=True),
            "With a fixed number of steps, smaller batches also mean fewer epochs, with and without normalisation.",
        )
        noise = self.statistics_noise(run, train.x)
        slope = exponent(SIZES, noise["mean"])
        lines = {"1/√|B|": torch.tensor(SIZES).rsqrt(), **noise}
        run.figure(
            "noise of batch statistics",
            curves(
                {name: (SIZES, each) for name, each in lines.items()},
                x_label="batch size",
                y_label="standard deviation over batches, relative to the unit's",
                log_x=True,
                log_y=True,
            ),
            "Standard deviation, over batches, of the batch mean and of the batch standard deviation of a hidden unit: "
            "the noise that batch normalisation adds to training. That of the mean follows 1/√|B|.",
        )
        mean = {name: each.mean(1) for name, each in tests.items()}
        gain = mean["with normalisation"] - mean["without"]
        best = int(mean["with normalisation"].argmax())
        large = mean["with normalisation"][SIZES.index(32) :]
        accuracy_range = float(large.max() - large.min())
        run.table(
            "accuracy by batch size",
            [
                {
                    "batch size": size,
                    "accuracy with (%)": round(100 * float(mean["with normalisation"][index]), 2),
                    "accuracy without (%)": round(100 * float(mean["without"][index]), 2),
                    "learning rate with": accuracy["with normalisation"][index]["rate"].item(),
                    "learning rate without": accuracy["without"][index]["rate"].item(),
                }
                for index, size in enumerate(SIZES)
            ],
        )
        run.note(
            "results",
            f"With batch size 2 normalisation lowers the accuracy by {-100 * float(gain[0]):.1f} percentage points: "
            f"only the order of the two values remains. The best batch size here is {SIZES[best]}; from 32 on the "
            f"accuracies differ by at most {100 * accuracy_range:.1f} points, so the notes' best range of 50 to 100 is "
            f"not a clear maximum. The standard deviation of batch means scales as |B|^{slope:.2f}; theory gives −½.",
        )
        return {
            "accuracy_at_2": float(mean["with normalisation"][0]),
            "accuracy_at_64": float(mean["with normalisation"][SIZES.index(64)]),
            "accuracy_at_largest": float(mean["with normalisation"][-1]),
            "best_batch_size": float(SIZES[best]),
            "accuracy_gain_at_2": float(gain[0]),
            "accuracy_gain_at_64": float(gain[SIZES.index(64)]),
            "batch_mean_std_exponent": slope,
        }

    def train(self, run: Run, norm: Norm, size: int, parts: dict[str, Split]) -> dict[str, Tensor]:
        """Accuracy on each split of `num_networks` networks at the learning rate with the best validation accuracy.

        All networks are trained in parallel; evaluation uses the moments of the whole training set.
        """
        x, y = parts["training"].x.flatten(1), check_labels(parts["training"].y, 10)
        weights = self.initialise(run, len(RATES) * self.num_networks)
        rates = torch.tensor(RATES, device=run.device).repeat_interleave(self.num_networks)

        def loss(weights: Weights, images: Tensor, labels: Tensor) -> Tensor:
            return cross_entropy(forward(weights, images, norm), labels).mean()

        for _ in range(self.steps):
            rows = torch.randint(len(x), (len(rates), size), device=run.device)
            gradients = vmap(grad(loss))(weights, x[rows], y[rows])
            weights = {
                name: value - rates.view(-1, *[1] * (value.ndim - 1)) * gradients[name]
                for name, value in weights.items()
            }
        accuracies = {}
        for name, part in parts.items():
            logits = vmap(partial(predict, x=part.x.flatten(1), train=x, norm=norm))(weights)
            correct = (logits.argmax(-1) == check_labels(part.y, 10)).float().mean(1)
            accuracies[name] = correct.view(len(RATES), self.num_networks).cpu()
        best = int(accuracies["validation"].mean(1).argmax())
        return {**{name: each[best] for name, each in accuracies.items()}, "rate": torch.tensor(RATES[best])}

    def initialise(self, run: Run, count: int) -> Weights:
        sizes = (64, self.width, self.width, 10)
        weights = {}
        for layer in range(3):
            inputs, outputs = sizes[layer], sizes[layer + 1]
            weights[f"W{layer}"] = torch.randn(count, inputs, outputs, device=run.device) * sqrt(2 / inputs)
            weights[f"scale{layer}"] = torch.ones(count, outputs, device=run.device)
            weights[f"shift{layer}"] = torch.zeros(count, outputs, device=run.device)
        return weights

    def statistics_noise(self, run: Run, x: Tensor) -> dict[str, Tensor]:
        """Standard deviation over batches of the moments of the first layer's units, relative to that of the unit."""
        h = x.flatten(1) @ self.initialise(run, 1)["W0"][0]
        h = (h - h.mean(0)) / h.std(0)
        mean, deviation = [], []
        for size in SIZES:
            draws = min(2_000, 400_000 // size)  # limits the memory for large batches
            by = moments(h[torch.randint(len(h), (draws, size), device=run.device)], (1,))
            mean.append(by.mean.std(0).mean())
            deviation.append(by.variance.sqrt().std(0).mean())
        return {"mean": torch.stack(mean).cpu(), "deviation": torch.stack(deviation).cpu()}


def batch_moments(h: Tensor) -> Moments:
    return moments(h, (0,))


def identity_moments(h: Tensor) -> Moments:
    """Mean 0 and variance 1: no normalisation."""
    return Moments(torch.zeros_like(h[:1]), torch.ones_like(h[:1]))


def layer(weights: Weights, index: int, h: Tensor, by: Moments) -> Tensor:
    return weights[f"scale{index}"] * normalise(h, by) + weights[f"shift{index}"]


def forward(weights: Weights, x: Tensor, norm: Norm) -> Tensor:
    """ReLU(γ BN(x W) + β) twice, then an affine layer (Zhao sec. 8)."""
    for index in range(2):
        h = x @ weights[f"W{index}"]
        x = relu(layer(weights, index, h, norm(h)))
    return x @ weights["W2"] + weights["shift2"]


def predict(weights: Weights, x: Tensor, train: Tensor, norm: Norm) -> Tensor:
    """`forward` with the moments of the training set in every layer."""
    for index in range(2):
        h, h_train = x @ weights[f"W{index}"], train @ weights[f"W{index}"]
        by = norm(h_train)
        x, train = relu(layer(weights, index, h, by)), relu(layer(weights, index, h_train, by))
    return x @ weights["W2"] + weights["shift2"]


def labels_from(y: Tensor | None, start: int) -> Tensor:
    return check_labels(y, 10)[start:]
