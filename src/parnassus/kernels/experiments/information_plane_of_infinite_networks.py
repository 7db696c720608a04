"""The information plane of infinitely wide networks in training, exact instead of binned (book ch. 18)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from parnassus.data import load_digits
from parnassus.kernels import (
    InfiniteEnsemble,
    ReLU,
    fully_connected,
    information_with_inputs,
    information_with_labels,
)
from parnassus.report import FAINT, PALETTE, curves, subplots
from parnassus.train import Run, at_least, at_most, between

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("BF-1",)
expected = {
    "label_bits": between(0.75, 1.0, "I(Y; Z) in bits at the end, of at most 1"),
    "input_bits": between(1.3, 2.2, "I(X; Z) in bits at the end"),
    "order": at_most(1e-6, "largest I(Y; Z) − I(X; Z) on the way; data processing says at most 0"),
    "test_error": at_most(0.3, "expected squared error on unseen digits at the end"),
    "accuracy": at_least(0.95, "share of unseen digits whose mean output has the right sign"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"train": 20, "test": 30, "moments": 6}, "gpu": {}}


class Path(NamedTuple):
    """What an ensemble knows at each moment."""

    times: Tensor
    inputs: Tensor
    labels: Tensor
    error: Tensor
    training_error: Tensor
    distance: Tensor


@dataclass(frozen=True)
class Experiment:
    first: int = 3  # the digit with the label 1
    second: int = 8  # the digit with the label −1
    train: int = 60  # digits to learn from
    test: int = 80  # unseen digits, at which outputs Z are looked at
    depths: tuple[int, ...] = (1, 3, 6)  # hidden layers
    moments: int = 24  # times from 10⁻² to 10³

    def __call__(self, run: Run) -> dict[str, float]:
        x, y = self.digits(run.seed)
        known, unseen = slice(0, self.train), slice(self.train, self.train + self.test)
        times = torch.logspace(-2, 3, self.moments, dtype=torch.float64)
        paths, right = {}, 0.0
        for depth in self.depths:
            ensemble = InfiniteEnsemble.fit(fully_connected(depth, ReLU()), x[known], y[known])
            paths[f"{depth} hidden layer{'s' if depth > 1 else ''}"] = follow(ensemble, x[unseen], y[unseen], times)
            mean = ensemble.law(x[unseen], float(times[-1])).mean
            right = float((mean.sign() == y[unseen]).double().mean())
        run.figure(
            "the information plane",
            plane_figure(paths),
            "What the output Z knows of the input and of its label while training goes on, from the rings to the dots. "
            "No point may lie above the line.",
        )
        run.figure(
            "error against time",
            curves(
                {
                    f"{kind}, {name}": (path.times, values)
                    for name, path in paths.items()
                    for kind, values in (("unseen", path.error), ("training", path.training_error))
                },
                x_label="time τ of gradient flow",
                y_label="expected squared error",
                log_x=True,
            ),
            "Squared error of a network of the ensemble, its bias and its variance together.",
        )
        run.figure(
            "the way of the parameters",
            curves(
                {name: (path.times, path.distance.sqrt()) for name, path in paths.items()},
                x_label="time τ of gradient flow",
                y_label="root of E ‖θ − θ₀‖²",
                log_x=True,
            ),
            "How far the parameters go, with weights from N(0, 1): a few units, however many there are.",
        )
        last = list(paths.values())[-1]
        run.note(
            "what to see",
            "Both informations rise together at first. Here infinite networks do not go back along I(X; Z) to forget "
            "inputs, as the information-bottleneck picture of training has it; and nothing was binned to see it.",
        )
        return {
            "label_bits": float(last.labels[-1]),
            "input_bits": float(last.inputs[-1]),
            "order": max(float((path.labels - path.inputs).max()) for path in paths.values()),
            "test_error": float(last.error[-1]),
            "accuracy": right,
        }

    def digits(self, seed: int) -> tuple[Tensor, Tensor]:
        """Two kinds of digits as unit vectors, in random order, with labels ±1."""
        data = load_digits()
        assert data.train.y is not None
        chosen = (data.train.y == self.first) | (data.train.y == self.second)
        order = torch.randperm(int(chosen.sum()), generator=torch.Generator().manual_seed(seed))
        x = torch.nn.functional.normalize(data.train.x[chosen][order].flatten(1).double(), dim=1)
        y = torch.where(data.train.y[chosen][order] == self.first, 1.0, -1.0).double()
        if len(x) < self.train + self.test:
            raise ValueError(f"there are {len(x)} such digits; got train={self.train}, test={self.test}")
        return x, y


def follow(ensemble: InfiniteEnsemble, x: Tensor, y: Tensor, times: Tensor) -> Path:
    """The information in bits, the errors and the way of the parameters at each time."""
    inputs, labels, errors, training, distances = [], [], [], [], []
    for time in times.tolist():
        law = ensemble.law(x, time)
        variances = law.covariance.diagonal().clamp(min=1e-12)
        inputs.append(information_with_inputs(law.mean, variances, base=2.0))
        labels.append(information_with_labels(law.mean, variances, (y > 0).long(), base=2.0))
        errors.append(float(((law.mean - y).square() + variances).mean()))
        training.append(ensemble.expected_error(ensemble.x, ensemble.y, time))
        distances.append(ensemble.parameter_distance(time))
    rest = (torch.tensor(part) for part in (errors, training, distances))
    return Path(times, torch.stack(inputs), torch.stack(labels), *rest)


def plane_figure(paths: dict[str, Path]) -> "Figure":
    figure, axes = subplots(size=(6.4, 4.2))
    ax = axes[0, 0]
    top = max(float(path.labels.max()) for path in paths.values())
    ax.plot([0, top], [0, top], color=FAINT, linestyle=":", linewidth=1.2)
    for (name, path), colour in zip(paths.items(), PALETTE, strict=False):
        ax.plot(path.inputs, path.labels, color=colour, label=name)
        ax.plot(path.inputs[:1], path.labels[:1], color=colour, marker="o", markerfacecolor="none")
        ax.plot(path.inputs[-1:], path.labels[-1:], color=colour, marker="o")
    ax.set(xlabel="I(X; Z) in bits", ylabel="I(Y; Z) in bits")
    ax.legend(loc="lower right")
    return figure
