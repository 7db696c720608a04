"""MLP regression of 3 sin 5x + x³: effect of optimiser, learning rate and epochs (Diehl sec. 1.3).

With the tutorial's settings training is too short; the same network with Adam and more epochs fits the function;
gradient descent with too large a learning rate diverges to NaN.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from parnassus.data.built_in.toy import curve
from parnassus.layers import mlp
from parnassus.losses import mean_squared_error
from parnassus.optim import SGD, Adam
from parnassus.report import INK, PALETTE, curves, subplots
from parnassus.train import Positive, Run, at_least, at_most, between

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("C-09", "D1.3.4")
expected = {
    "test_error_sgd": at_least(2.0, "test mean squared error with the tutorial's settings"),
    "test_error_adam": at_most(1.0, "test mean squared error with Adam and more epochs"),
    "test_error_constant": at_least(4.0, "test mean squared error of the best constant"),
    "steps_to_nan": between(1, 1_000, "steps of gradient descent with the diverging rate until the loss is not finite"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"adam_epochs": 30}, "gpu": {}}


@dataclass(frozen=True)
class Experiment:
    num_points: Positive[int] = 100  # training points, uniform on [−2, 2]
    width: Positive[int] = 80  # units of the hidden layer
    batch_size: Positive[int] = 16  # points per gradient step
    learning_rate: Positive[float] = 1e-3  # learning rate of SGD, as in the tutorial
    epochs: Positive[int] = 10  # epochs of SGD, as in the tutorial
    adam_learning_rate: Positive[float] = 1e-2  # learning rate of Adam
    adam_epochs: Positive[int] = 2_000  # epochs of Adam
    diverging_learning_rate: Positive[float] = 0.3  # rate at which gradient descent diverges

    def __call__(self, run: Run) -> dict[str, float]:
        train, test = (
            curve(count, target_function, noise=0.0, seed=run.seed + k, low=-2.0, high=2.0) for k, count in SPLITS
        )
        x, y = train.x[: self.num_points], train.y
        assert y is not None
        assert test.y is not None
        y = y[: self.num_points]
        initial = mlp((1, self.width, 1))
        initial_state = {name: value.clone() for name, value in initial.state_dict().items()}
        optimisers: dict[str, tuple[Callable[[Iterable[nn.Parameter]], Optimizer], int]] = {
            "SGD (tutorial)": (partial(SGD, lr=self.learning_rate), self.epochs),
            "Adam": (partial(Adam, lr=self.adam_learning_rate), self.adam_epochs),
        }
        predictions: dict[str, Tensor] = {}
        errors: dict[str, float] = {}
        batches = -(-self.num_points // self.batch_size)
        line = torch.linspace(-2, 2, 400)[:, None]
        for name, (factory, epochs) in optimisers.items():
            model = mlp((1, self.width, 1))
            model.load_state_dict(initial_state)
            model, optimizer = run.prepare(model, factory)
            for step, _ in run.steps(epochs * batches):
                rows = torch.randint(self.num_points, (self.batch_size,))
                loss = mean_squared_error(model(x[rows].to(run.device)), y[rows].to(run.device))
                run.update(optimizer, loss)
                run.log(step, **{f"loss/{name}": loss.detach()})
            with torch.no_grad():
                predictions[name] = model(line.to(run.device)).cpu()
                errors[name] = float(mean_squared_error(model(test.x.to(run.device)).cpu(), test.y))
        losses = diverging_losses(initial, x, y, rate=self.diverging_learning_rate)

        run.figure("fits", plot_fits(x, y, line, predictions), "Dashed: target function; dots: training points.")
        divergence = {
            f"learning rate {self.diverging_learning_rate:g}": (
                range(len(losses)),
                [min(loss, 1e38) for loss in losses],
            )
        }
        run.figure(
            "divergence",
            curves(divergence, x_label="step", y_label="mean squared error", log_y=True),
            "Full-batch gradient descent with too large a learning rate: each step overshoots further, until the loss "
            "overflows.",
        )
        constant = float(mean_squared_error(y.mean().expand_as(test.y), test.y))
        run.note(
            "results",
            f"With the tutorial's settings the test error is {errors['SGD (tutorial)']:.3g}, that of the best constant "
            f"{constant:.3g}: {self.epochs} epochs of SGD with learning rate {self.learning_rate:g} are too few. "
            f"{self.adam_epochs} epochs of Adam reach {errors['Adam']:.3g}. With learning rate "
            f"{self.diverging_learning_rate:g} the loss of gradient descent is not finite after {len(losses) - 1} "
            "steps.",
        )
        return {
            "test_error_sgd": errors["SGD (tutorial)"],
            "test_error_adam": errors["Adam"],
            "test_error_constant": constant,
            "steps_to_nan": len(losses) - 1,
        }


SPLITS = ((0, 10_000), (1, 2_000))
"""Seed and size of the training data, of which the first `num_points` are used, and of the test data."""


def target_function(x: Tensor) -> Tensor:
    return 3 * torch.sin(5 * x) + x**3


def diverging_losses(model: nn.Module, x: Tensor, y: Tensor, *, rate: float, max_steps: int = 2_000) -> list[float]:
    """The losses of full-batch gradient descent until one is not finite."""
    optimizer = SGD(model.parameters(), lr=rate)
    losses: list[float] = []
    for _ in range(max_steps):
        loss = mean_squared_error(model(x), y)
        if not bool(loss.isfinite()):
            break
        losses.append(float(loss.detach()))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return losses


def plot_fits(x: Tensor, y: Tensor, line: Tensor, predictions: dict[str, Tensor]) -> "Figure":
    figure, axes = subplots(1, len(predictions), size=(9.0, 3.6))
    for ax, (name, values), colour in zip(axes[0], predictions.items(), PALETTE, strict=False):
        ax.plot(line[:, 0], target_function(line[:, 0]), color=INK, linestyle="--", linewidth=1)
        ax.scatter(x[:, 0], y[:, 0], color=INK, s=9, zorder=3)
        ax.plot(line[:, 0], values[:, 0], color=colour, linewidth=2)
        ax.set(title=name, xlabel="x", ylim=(-12, 12))
    return figure
