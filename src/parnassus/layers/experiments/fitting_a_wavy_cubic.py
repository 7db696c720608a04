"""A small network fits 3 sin 5x + x³, or fails to, by its settings alone (Diehl sec. 1.3).

The tutorial's settings are far too short; the same network with Adam and more passes follows every wave; plain descent
at a rate that looks harmless ends in NaN. Every setting is a flag: find others.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from parnassus.data.toy import curve
from parnassus.layers import mlp
from parnassus.losses import mean_squared_error
from parnassus.optim import SGD, Adam
from parnassus.report import INK, PALETTE, curves, subplots
from parnassus.train import Run, at_least, at_most, between

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("C-09", "D1.3.4")
expected = {
    "error_as_given": at_least(2.0, "mean squared error on unseen points with the tutorial's settings"),
    "error_with_adam": at_most(1.0, "the same with Adam and more passes"),
    "error_of_the_mean": at_least(4.0, "the same for the best constant"),
    "steps_to_nan": between(1, 1_000, "steps of plain descent at the large rate until a weight is not finite"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"long_epochs": 30}, "gpu": {}}


@dataclass(frozen=True)
class Experiment:
    samples: int = 100  # points, uniform on [−2, 2]
    hidden: int = 80  # units of the hidden layer
    batch: int = 16  # points a step
    rate: float = 1e-3  # learning rate of the tutorial, plain descent
    epochs: int = 10  # passes of the tutorial
    adam_rate: float = 1e-2  # learning rate of the settings that work
    long_epochs: int = 2_000  # passes of the settings that work
    large_rate: float = 0.3  # learning rate of the settings that end in NaN

    def __call__(self, run: Run) -> dict[str, float]:
        train, test = (curve(count, wave, noise=0.0, seed=run.seed + k, low=-2.0, high=2.0) for k, count in SPLITS)
        x, y = train.x[: self.samples], train.y
        assert y is not None
        assert test.y is not None
        y = y[: self.samples]
        start = mlp((1, self.hidden, 1))
        kept = {name: value.clone() for name, value in start.state_dict().items()}
        ways: dict[str, tuple[Callable[[Iterable[nn.Parameter]], Optimizer], int]] = {
            "as given": (partial(SGD, lr=self.rate), self.epochs),
            "with Adam": (partial(Adam, lr=self.adam_rate), self.long_epochs),
        }
        found: dict[str, Tensor] = {}
        errors: dict[str, float] = {}
        batches = -(-self.samples // self.batch)
        line = torch.linspace(-2, 2, 400)[:, None]
        for name, (factory, epochs) in ways.items():
            model = mlp((1, self.hidden, 1))
            model.load_state_dict(kept)
            model, optimizer = run.prepare(model, factory)
            for step, _ in run.steps(epochs * batches):
                rows = torch.randint(self.samples, (self.batch,))
                loss = mean_squared_error(model(x[rows].to(run.device)), y[rows].to(run.device))
                run.update(optimizer, loss)
                run.log(step, **{f"loss/{name}": loss.detach()})
            with torch.no_grad():
                found[name] = model(line.to(run.device)).cpu()
                errors[name] = float(mean_squared_error(model(test.x.to(run.device)).cpu(), test.y))
        losses = steps_until_nan(start, x, y, rate=self.large_rate)

        run.figure("fits", fits(x, y, line, found), "Dashed, the curve; dots, the points that were seen.")
        overflow = {f"rate {self.large_rate:g}": (range(len(losses)), [min(loss, 1e38) for loss in losses])}
        run.figure(
            "the way to NaN",
            curves(overflow, x_label="step", y_label="mean squared error", log_y=True),
            "Plain descent on all points at the large rate: each step overshoots further than the last, until the "
            "numbers end.",
        )
        constant = float(mean_squared_error(y.mean().expand_as(test.y), test.y))
        run.note(
            "what to see",
            f"With the tutorial's settings the network ends at an error of {errors['as given']:.3g}, where the best "
            f"constant has {constant:.3g}: {self.epochs} passes of plain descent at {self.rate:g} are far too few. "
            f"{self.long_epochs} passes of Adam bring {errors['with Adam']:.3g}. At a rate of {self.large_rate:g} "
            f"descent leaves the numbers after {len(losses) - 1} steps.",
        )
        return {
            "error_as_given": errors["as given"],
            "error_with_adam": errors["with Adam"],
            "error_of_the_mean": constant,
            "steps_to_nan": len(losses) - 1,
        }


SPLITS = ((0, 10_000), (1, 2_000))
"""Seeds and sizes of the draws to train on, of which the first `samples` are taken, and to test on."""


def wave(x: Tensor) -> Tensor:
    return 3 * torch.sin(5 * x) + x**3


def steps_until_nan(start: nn.Module, x: Tensor, y: Tensor, *, rate: float, most: int = 2_000) -> list[float]:
    """The losses of plain descent on all points until a number is not finite."""
    optimizer = SGD(start.parameters(), lr=rate)
    losses: list[float] = []
    for _ in range(most):
        loss = mean_squared_error(start(x), y)
        if not bool(loss.isfinite()):
            break
        losses.append(float(loss.detach()))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return losses


def fits(x: Tensor, y: Tensor, line: Tensor, found: dict[str, Tensor]) -> "Figure":
    figure, axes = subplots(1, len(found), size=(9.0, 3.6))
    for ax, (name, values), colour in zip(axes[0], found.items(), PALETTE, strict=False):
        ax.plot(line[:, 0], wave(line[:, 0]), color=INK, linestyle="--", linewidth=1)
        ax.scatter(x[:, 0], y[:, 0], color=INK, s=9, zorder=3)
        ax.plot(line[:, 0], values[:, 0], color=colour, linewidth=2)
        ax.set(title=name, xlabel="x", ylim=(-12, 12))
    return figure
