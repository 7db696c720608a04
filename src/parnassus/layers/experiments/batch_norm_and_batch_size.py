"""Batch normalisation in batches of 2 to 2,048: too small, about right, too large? (Zhao sec. 8)."""

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
from parnassus.layers import Moments, moments, normalise, relu, require_labels
from parnassus.losses import cross_entropy
from parnassus.report import curves
from parnassus.train import Run, at_least, at_most, between, reported

covers = ("Z8.1", "Z8.2", "D1.6.7", "B2.2-1")
expected = {
    "accuracy_at_2": at_most(0.75, "test accuracy with normalisation, two examples a batch"),
    "accuracy_at_64": at_least(0.93, "the same with 64"),
    "accuracy_at_largest": at_least(0.93, "the same with the largest batch"),
    "best_size": reported("batch size of the best test accuracy with normalisation"),
    "gain_at_2": at_most(-0.1, "accuracy with normalisation less that without, at 2"),
    "gain_at_64": at_least(0.0, "the same at 64"),
    "noise_of_means": between(-0.55, -0.45, "power of the batch size with which batch means scatter; −½ is the law"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"steps": 10, "seeds": 1}, "gpu": {"seeds": 32, "steps": 2_000}}

SIZES = (2, 4, 8, 16, 32, 64, 128, 256, 512, 2_048)
RATES = (0.03, 0.1, 0.3, 1.0)

Weights: TypeAlias = dict[str, Tensor]
Norm: TypeAlias = Callable[[Tensor], Moments]
"""What a layer's outputs are centred and scaled by."""


@dataclass(frozen=True)
class Experiment:
    hidden: int = 64  # units in each of two hidden layers
    steps: int = 300  # gradient steps, the same for every size
    seeds: int = 3  # networks of each kind, for each of four learning rates

    def __call__(self, run: Run) -> dict[str, float]:
        digits = load_digits().to(run.device)
        train, held_out = digits.train.take(1_000), Split(digits.train.x[1_000:], rest(digits.train.y, 1_000))
        parts = {"training": train, "held out": held_out, "test": digits.test}
        accuracy = {
            name: [self.train(run, norm, size, parts) for size in SIZES]
            for name, norm in (("with normalisation", over_batch), ("without", leave))
        }
        tests = {name: torch.stack([each["test"] for each in found]) for name, found in accuracy.items()}
        run.figure(
            "accuracy by batch size",
            curves(
                {name: (SIZES, each.mean(1)) for name, each in tests.items()},
                x_label="examples a batch",
                y_label="test accuracy",
                log_x=True,
                bands={name: (each.amin(1), each.amax(1)) for name, each in tests.items()},
            ),
            f"After {self.steps} steps at the learning rate that was best on held-out digits; mean and range of "
            f"{self.seeds} networks.",
        )
        gaps = {
            name: (SIZES, [float((each["training"] - each["test"]).mean()) for each in found])
            for name, found in accuracy.items()
        }
        run.figure(
            "generalisation gap",
            curves(gaps, x_label="examples a batch", y_label="training less test accuracy", log_x=True),
            "Small batches also mean fewer passes over the data, with and without normalisation alike.",
        )
        spread = self.scatter(run, train.x)
        slope = exponent(SIZES, spread["mean"])
        law = torch.tensor(SIZES).rsqrt()
        lines = {"1/√|B|": law, **spread}
        run.figure(
            "noise of batch statistics",
            curves(
                {name: (SIZES, each) for name, each in lines.items()},
                x_label="examples a batch",
                y_label="scatter, in spreads of the unit",
                log_x=True,
                log_y=True,
            ),
            "How much the mean and the deviation of a hidden unit differ from batch to batch: the noise that "
            "normalisation puts into training. The mean's line lies on the law's.",
        )
        mean = {name: each.mean(1) for name, each in tests.items()}
        gain = mean["with normalisation"] - mean["without"]
        best = int(mean["with normalisation"].argmax())
        large = mean["with normalisation"][SIZES.index(32) :]
        flat = float(large.max() - large.min())
        run.table(
            "by size",
            [
                {
                    "batch": size,
                    "with normalisation %": round(100 * float(mean["with normalisation"][index]), 2),
                    "without %": round(100 * float(mean["without"][index]), 2),
                    "its learning rate": accuracy["with normalisation"][index]["rate"].item(),
                    "without: learning rate": accuracy["without"][index]["rate"].item(),
                }
                for index, size in enumerate(SIZES)
            ],
        )
        run.note(
            "what to see",
            f"In batches of two normalisation costs {-100 * float(gain[0]):.1f} points: of two numbers it leaves only "
            f"which is larger. It is best here at {SIZES[best]}; from 32 on sizes differ by {100 * flat:.1f} points, "
            "so that the notes' best range of 50 to 100 is no clear peak. Batch means scatter with the power "
            f"{slope:.2f} of the size, by the law −½.",
        )
        return {
            "accuracy_at_2": float(mean["with normalisation"][0]),
            "accuracy_at_64": float(mean["with normalisation"][SIZES.index(64)]),
            "accuracy_at_largest": float(mean["with normalisation"][-1]),
            "best_size": float(SIZES[best]),
            "gain_at_2": float(gain[0]),
            "gain_at_64": float(gain[SIZES.index(64)]),
            "noise_of_means": slope,
        }

    def train(self, run: Run, norm: Norm, size: int, parts: dict[str, Split]) -> dict[str, Tensor]:
        """Accuracy on each part of `seeds` networks at the rate that is best on the part held out.

        All seeds and rates are trained side by side; a test uses the moments of the whole training part.
        """
        x, y = parts["training"].x.flatten(1), require_labels(parts["training"].y, 10)
        weights = self.start(run, len(RATES) * self.seeds)
        rates = torch.tensor(RATES, device=run.device).repeat_interleave(self.seeds)

        def loss(own: Weights, images: Tensor, labels: Tensor) -> Tensor:
            return cross_entropy(forward(own, images, norm), labels).mean()

        for _ in range(self.steps):
            rows = torch.randint(len(x), (len(rates), size), device=run.device)
            slopes = vmap(grad(loss))(weights, x[rows], y[rows])
            weights = {
                name: value - rates.view(-1, *[1] * (value.ndim - 1)) * slopes[name] for name, value in weights.items()
            }
        found = {}
        for name, part in parts.items():
            logits = vmap(partial(predict, x=part.x.flatten(1), train=x, norm=norm))(weights)
            right = (logits.argmax(-1) == require_labels(part.y, 10)).float().mean(1)
            found[name] = right.view(len(RATES), self.seeds).cpu()
        best = int(found["held out"].mean(1).argmax())
        return {**{name: right[best] for name, right in found.items()}, "rate": torch.tensor(RATES[best])}

    def start(self, run: Run, count: int) -> Weights:
        sizes = (64, self.hidden, self.hidden, 10)
        weights = {}
        for layer in range(3):
            inputs, outputs = sizes[layer], sizes[layer + 1]
            weights[f"W{layer}"] = torch.randn(count, inputs, outputs, device=run.device) * sqrt(2 / inputs)
            weights[f"scale{layer}"] = torch.ones(count, outputs, device=run.device)
            weights[f"shift{layer}"] = torch.zeros(count, outputs, device=run.device)
        return weights

    def scatter(self, run: Run, x: Tensor) -> dict[str, Tensor]:
        """How the moments of the first layer's units scatter from batch to batch, in spreads of the unit."""
        h = x.flatten(1) @ self.start(run, 1)["W0"][0]
        h = (h - h.mean(0)) / h.std(0)
        mean, deviation = [], []
        for size in SIZES:
            draws = min(2_000, 400_000 // size)  # so that the largest batches fit into memory
            by = moments(h[torch.randint(len(h), (draws, size), device=run.device)], (1,))
            mean.append(by.mean.std(0).mean())
            deviation.append(by.variance.sqrt().std(0).mean())
        return {"mean": torch.stack(mean).cpu(), "deviation": torch.stack(deviation).cpu()}


def over_batch(h: Tensor) -> Moments:
    return moments(h, (0,))


def leave(h: Tensor) -> Moments:
    return Moments(torch.zeros_like(h[:1]), torch.ones_like(h[:1]))


def layer(own: Weights, index: int, h: Tensor, by: Moments) -> Tensor:
    return own[f"scale{index}"] * normalise(h, by) + own[f"shift{index}"]


def forward(own: Weights, x: Tensor, norm: Norm) -> Tensor:
    """ReLU(γ BN(x W) + β) twice, then an affine layer (Zhao sec. 8)."""
    for index in range(2):
        h = x @ own[f"W{index}"]
        x = relu(layer(own, index, h, norm(h)))
    return x @ own["W2"] + own["shift2"]


def predict(own: Weights, x: Tensor, train: Tensor, norm: Norm) -> Tensor:
    """`forward` with the moments of the training part in every layer."""
    for index in range(2):
        h, seen = x @ own[f"W{index}"], train @ own[f"W{index}"]
        by = norm(seen)
        x, train = relu(layer(own, index, h, by)), relu(layer(own, index, seen, by))
    return x @ own["W2"] + own["shift2"]


def rest(y: Tensor | None, start: int) -> Tensor:
    return require_labels(y, 10)[start:]
