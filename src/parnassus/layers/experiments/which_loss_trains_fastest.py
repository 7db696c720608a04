"""One classifier, five losses: cross-entropy pulls hardest on what is most wrong (Diehl sec. 1.4)."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import TYPE_CHECKING, TypeAlias

import torch
from torch import Tensor
from torch.optim import Adam

from parnassus.data import Dataset, open_data
from parnassus.layers import Classifier, dense_classifier, evaluate, require_labels
from parnassus.losses import accuracy, cross_entropy, one_hot, softmax
from parnassus.probability import lp_distance, total_variation
from parnassus.report import PALETTE, curves, image_grid, subplots
from parnassus.train import Run, at_least, at_most, between

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("C-05", "D1.4.8")
expected = {
    "cross_entropy": at_least(0.86, "test accuracy, trained on cross-entropy"),
    "l1": at_least(0.84, "on the L¹ distance of label and softmax"),
    "l2": at_least(0.84, "on the L² distance"),
    "squared_l2": at_least(0.86, "on the squared L² distance"),
    "total_variation": at_least(0.84, "on total variation, half of L¹"),
    "steps_cross_entropy": between(30, 70, "steps to the goal with cross-entropy"),
    "steps_l1": between(60, 150, "the same with L¹"),
    "head_start": between(1.4, 3.0, "steps of L¹ over steps of cross-entropy"),
    "raw_cross_entropy": at_least(0.84, "test accuracy on pixels from 0 to 255, cross-entropy"),
    "raw_l1": at_most(0.65, "the same, L¹"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"data": "digits", "epochs": 1, "hidden": 16},
    "gpu": {"data": "mnist", "batch": 128},
}

Loss: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""From logits and labels to one number for each example."""


def against_label(distance: Callable[[Tensor, Tensor], Tensor]) -> Loss:
    """A distance of distributions as a loss: the label one-hot in the first place, the softmax in the second."""
    return lambda logits, labels: distance(one_hot(labels, logits.shape[-1]).to(logits), softmax(logits))


LOSSES: dict[str, Loss] = {
    "cross_entropy": cross_entropy,
    "l1": against_label(partial(lp_distance, order=1.0)),
    "l2": against_label(partial(lp_distance, order=2.0)),
    "squared_l2": against_label(lambda p, q: lp_distance(p, q, order=2.0).square()),
    "total_variation": against_label(total_variation),
}
NAMES = {
    "cross_entropy": "cross-entropy",
    "l1": "L¹",
    "l2": "L²",
    "squared_l2": "squared L²",
    "total_variation": "total variation",
}


@dataclass(frozen=True)
class Experiment:
    data: str = "mnist_mini"  # mnist_mini, digits, mnist, fashion_mnist, or a folder or file of your own
    hidden: int = 128  # hidden units
    epochs: int = 2  # passes over the training images
    batch: int = 64  # images a step
    rate: float = 1e-3  # learning rate of Adam
    goal: float = 0.8  # test accuracy to which steps are counted

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_data(self.data).to(run.device)
        labels = require_labels(data.test.y, len(data.classes))
        run.figure(
            "eight images",
            image_grid(data.test.x[:8], columns=8, titles=[data.classes[int(y)] for y in labels[:8]]),
            "What is to be told apart.",
        )
        start = dense_classifier(prod(data.shape), len(data.classes), hidden=(self.hidden,))
        for name in LOSSES:
            self.train(run, name, deepcopy(start), data)
            self.train(run, name, deepcopy(start), data, scale=255.0, group="raw_")
        run.figure("pull", draw_pull(len(data.classes)), PULL)
        lines = {NAMES[name]: run.curve(f"test_accuracy/{name}") for name in LOSSES}
        raw = {NAMES[name]: run.curve(f"raw_test_accuracy/{name}") for name in LOSSES}
        run.figure(
            "accuracy by step",
            curves(lines, x_label="step", y_label="test accuracy"),
            "The same network from the same start on the same batches. Every loss is the distance of the one-hot label "
            "from the softmax.",
        )
        run.figure(
            "accuracy by step on raw pixels",
            curves(raw, x_label="step", y_label="test accuracy"),
            "The same with pixels from 0 to 255: logits begin so large that most softmax outputs are nearly one-hot, "
            "often on the wrong class. There all distances but cross-entropy are flat.",
        )
        final = {name: run.curve(f"test_accuracy/{name}")[1][-1] for name in LOSSES}
        final_raw = {name: run.curve(f"raw_test_accuracy/{name}")[1][-1] for name in LOSSES}
        steps = {name: self.steps_to_goal(run, name) for name in LOSSES}
        rows: list[dict[str, str | float]] = [
            {
                "loss": NAMES[name],
                "accuracy %": round(100 * final[name], 1),
                f"steps to {100 * self.goal:g} %": steps[name],
                "accuracy %, raw pixels": round(100 * final_raw[name], 1),
            }
            for name in LOSSES
        ]
        run.table("results", rows, "Where the goal was not met, the number of all steps stands.")
        run.note(
            "what to see",
            f"Cross-entropy meets {100 * self.goal:g} % after {steps['cross_entropy']} steps, L¹ after {steps['l1']}. "
            "Total variation is half of L¹, and Adam does not feel a factor: their curves nearly agree. On raw pixels "
            f"cross-entropy comes to {100 * final_raw['cross_entropy']:.0f} % all the same and L¹ to "
            f"{100 * final_raw['l1']:.0f} %.",
        )
        return {
            **final,
            "steps_cross_entropy": steps["cross_entropy"],
            "steps_l1": steps["l1"],
            "head_start": steps["l1"] / steps["cross_entropy"],
            "raw_cross_entropy": final_raw["cross_entropy"],
            "raw_l1": final_raw["l1"],
        }

    def train(
        self, run: Run, name: str, model: Classifier, data: Dataset, *, scale: float = 1.0, group: str = ""
    ) -> None:
        labels = require_labels(data.test.y, len(data.classes))
        loss_of = LOSSES[name]
        model, optimizer = run.prepare(model, partial(Adam, lr=self.rate))
        steps = self.epochs * data.train.pairs(self.batch, 0).epoch
        often = max(1, steps // 100)
        for step, (x, y) in run.steps(data.train.pairs(self.batch, steps)):
            logits = model(scale * x)
            loss = loss_of(logits, y).mean()
            run.update(optimizer, loss)
            run.log(
                step,
                **{
                    f"{group}batch_loss/{name}": loss.detach(),
                    f"{group}batch_accuracy/{name}": accuracy(logits.detach(), y),
                },
            )
            if step % often == 0 or step == steps - 1:
                run.record(
                    step, **{f"{group}test_accuracy/{name}": evaluate(model, scale * data.test.x, labels).accuracy}
                )

    def steps_to_goal(self, run: Run, name: str) -> int:
        """The first step after which the test accuracy met the goal, all steps if it never did."""
        steps, values = run.curve(f"test_accuracy/{name}")
        met = [step + 1 for step, value in zip(steps, values, strict=True) if value >= self.goal]
        return met[0] if met else steps[-1] + 1


PULL = (
    "How hard each loss pulls on the logit of the right class, by the probability that this class has so far (the rest "
    "is spread evenly). Cross-entropy pulls by 1 − q: most where the answer is most wrong. The others let go there "
    "too, so that an example that is quite wrong teaches them next to nothing."
)


def draw_pull(classes: int) -> "Figure":
    figure, axes = subplots(size=(6.8, 3.8))
    ax = axes[0, 0]
    q = torch.linspace(0.001, 0.999, 400, dtype=torch.float64)
    label = torch.zeros(len(q), dtype=torch.long)
    for (name, loss), colour in zip(LOSSES.items(), PALETTE, strict=False):
        logits = torch.cat([q[:, None], ((1 - q) / (classes - 1))[:, None].expand(-1, classes - 1)], 1).log()
        logits.requires_grad_()
        (slope,) = torch.autograd.grad(loss(logits, label).sum(), logits)
        ax.plot(q, -slope[:, 0], color=colour, label=NAMES[name])
    ax.set(xlabel="probability q of the right class", ylabel="pull on its logit", ylim=(0, 1.05))
    ax.legend()
    return figure
