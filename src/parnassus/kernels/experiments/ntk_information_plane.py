"""NTK ensembles in the information plane: exact mutual information during training (book ch. 18)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from parnassus.data import load_digits
from parnassus.kernels import (
    InfiniteEnsemble,
    ReLU,
    fully_connected,
    input_mutual_information,
    label_mutual_information,
)
from parnassus.report import FAINT, PALETTE, curves, subplots
from parnassus.train import Positive, Run, at_least, at_most, between

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("BF-1",)
expected = {
    "label_bits": between(0.75, 1.0, "I(Y; Z) in bits at the end, of at most 1"),
    "input_bits": between(1.3, 2.2, "I(X; Z) in bits at the end"),
    "max_information_difference": at_most(
        1e-6, "maximum of I(Y; Z) − I(X; Z) over time; at most 0 by the data-processing inequality"
    ),
    "test_error": at_most(0.3, "expected squared error on test digits at the end"),
    "accuracy": at_least(0.95, "test accuracy of the mean output"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"num_examples": 20, "num_test": 30, "num_times": 6}, "gpu": {}}


class Trajectory(NamedTuple):
    """Mutual information in bits, errors and squared parameter distance of an ensemble over time."""

    times: Tensor
    input_information: Tensor
    label_information: Tensor
    error: Tensor
    training_error: Tensor
    distance: Tensor


@dataclass(frozen=True)
class Experiment:
    positive_digit: Positive[int] = 3  # digit with label 1
    negative_digit: Positive[int] = 8  # digit with label −1
    num_examples: Positive[int] = 60  # training digits
    num_test: Positive[int] = 80  # test digits, at which the outputs Z are evaluated
    depths: tuple[Positive[int], ...] = (1, 3, 6)  # hidden layers
    num_times: Positive[int] = 24  # number of times from 10⁻² to 10³

    def __call__(self, run: Run) -> dict[str, float]:
        x, y = self.digits(run.seed)
        train, test = slice(0, self.num_examples), slice(self.num_examples, self.num_examples + self.num_test)
        times = torch.logspace(-2, 3, self.num_times, dtype=torch.float64)
        trajectories, accuracy = {}, 0.0
        for depth in self.depths:
            ensemble = InfiniteEnsemble.fit(fully_connected(depth, ReLU()), x[train], y[train])
            name = f"{depth} hidden layer{'s' if depth > 1 else ''}"
            trajectories[name] = trace_ensemble(ensemble, x[test], y[test], times)
            mean = ensemble.distribution(x[test], float(times[-1])).mean
            accuracy = float((mean.sign() == y[test]).double().mean())
        run.figure(
            "information plane",
            plot_plane(trajectories),
            "Mutual information of the output Z with the input and with the label during training, from circle to dot. "
            "By the data-processing inequality no point lies above the line.",
        )
        run.figure(
            "error against time",
            curves(
                {
                    f"{kind}, {name}": (path.times, values)
                    for name, path in trajectories.items()
                    for kind, values in (("test", path.error), ("training", path.training_error))
                },
                x_label="time τ of gradient flow",
                y_label="expected squared error",
                log_x=True,
            ),
            "Expected squared error of a network of the ensemble: squared bias plus variance.",
        )
        run.figure(
            "parameter distance",
            curves(
                {name: (path.times, path.distance.sqrt()) for name, path in trajectories.items()},
                x_label="time τ of gradient flow",
                y_label="root of E ‖θ − θ₀‖²",
                log_x=True,
            ),
            "Distance of the parameters from initialisation, with weights from N(0, 1): finite for infinite width.",
        )
        last = list(trajectories.values())[-1]
        run.note(
            "results",
            "I(X; Z) and I(Y; Z) increase together at first. I(X; Z) does not decrease later, unlike the compression "
            "phase proposed by the information-bottleneck theory; the values are exact, without binning.",
        )
        return {
            "label_bits": float(last.label_information[-1]),
            "input_bits": float(last.input_information[-1]),
            "max_information_difference": max(
                float((path.label_information - path.input_information).max()) for path in trajectories.values()
            ),
            "test_error": float(last.error[-1]),
            "accuracy": accuracy,
        }

    def digits(self, seed: int) -> tuple[Tensor, Tensor]:
        """Images of the two digits as unit vectors in random order, with labels ±1."""
        data = load_digits()
        assert data.train.y is not None
        selected = (data.train.y == self.positive_digit) | (data.train.y == self.negative_digit)
        order = torch.randperm(int(selected.sum()), generator=torch.Generator().manual_seed(seed))
        x = torch.nn.functional.normalize(data.train.x[selected][order].flatten(1).double(), dim=1)
        y = torch.where(data.train.y[selected][order] == self.positive_digit, 1.0, -1.0).double()
        if len(x) < self.num_examples + self.num_test:
            raise ValueError(
                f"num_examples + num_test must be at most {len(x)}; "
                f"got num_examples={self.num_examples}, num_test={self.num_test}"
            )
        return x, y


def trace_ensemble(ensemble: InfiniteEnsemble, x: Tensor, y: Tensor, times: Tensor) -> Trajectory:
    """Mutual information in bits, errors and parameter distance at each time."""
    inputs, labels, errors, training, distances = [], [], [], [], []
    for time in times.tolist():
        outputs = ensemble.distribution(x, time)
        variances = outputs.covariance.diagonal().clamp(min=1e-12)
        inputs.append(input_mutual_information(outputs.mean, variances, base=2.0))
        labels.append(label_mutual_information(outputs.mean, variances, (y > 0).long(), base=2.0))
        errors.append(float(((outputs.mean - y).square() + variances).mean()))
        training.append(ensemble.expected_error(ensemble.x, ensemble.y, time))
        distances.append(ensemble.parameter_distance(time))
    rest = (torch.tensor(part) for part in (errors, training, distances))
    return Trajectory(times, torch.stack(inputs), torch.stack(labels), *rest)


def plot_plane(trajectories: dict[str, Trajectory]) -> "Figure":
    figure, axes = subplots(size=(6.4, 4.2))
    ax = axes[0, 0]
    top = max(float(path.label_information.max()) for path in trajectories.values())
    ax.plot([0, top], [0, top], color=FAINT, linestyle=":", linewidth=1.2)
    for (name, path), colour in zip(trajectories.items(), PALETTE, strict=False):
        ax.plot(path.input_information, path.label_information, color=colour, label=name)
        ax.plot(
            path.input_information[:1], path.label_information[:1], color=colour, marker="o", markerfacecolor="none"
        )
        ax.plot(path.input_information[-1:], path.label_information[-1:], color=colour, marker="o")
    ax.set(xlabel="I(X; Z) (bits)", ylabel="I(Y; Z) (bits)")
    ax.legend(loc="lower right")
    return figure
