"""Classification losses: cross-entropy converges faster than distances between distributions (Diehl sec. 1.4)."""

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
from parnassus.layers import Classifier, check_labels, dense_classifier, evaluate
from parnassus.losses import accuracy, cross_entropy, one_hot, softmax
from parnassus.probability import lp_distance, total_variation
from parnassus.report import PALETTE, curves, image_grid, subplots
from parnassus.setting_types import GreyImageData
from parnassus.train import Positive, Run, UnitInterval, at_least, at_most, between

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("C-05", "D1.4.8")
expected = {
    "cross_entropy": at_least(0.86, "test accuracy after training with cross-entropy"),
    "l1": at_least(0.84, "test accuracy after training with the L¹ distance between one-hot label and softmax"),
    "l2": at_least(0.84, "test accuracy after training with the L² distance"),
    "squared_l2": at_least(0.86, "test accuracy after training with the squared L² distance"),
    "total_variation": at_least(0.84, "test accuracy after training with total variation, half of L¹"),
    "steps_cross_entropy": between(30, 70, "steps to the target accuracy with cross-entropy"),
    "steps_l1": between(60, 150, "steps to the target accuracy with the L¹ distance"),
    "head_start": between(1.4, 3.0, "ratio of steps to the target accuracy, L¹ to cross-entropy"),
    "raw_cross_entropy": at_least(0.84, "test accuracy on pixels from 0 to 255 with cross-entropy"),
    "raw_l1": at_most(0.65, "test accuracy on pixels from 0 to 255 with the L¹ distance"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"data": "digits", "epochs": 1, "width": 16},
    "gpu": {"data": "mnist", "batch_size": 128},
}

Loss: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""A loss function of logits and labels, with one value per example."""


def label_distance(distance: Callable[[Tensor, Tensor], Tensor]) -> Loss:
    """The loss distance(one-hot label, softmax of the logits)."""
    return lambda logits, labels: distance(one_hot(labels, logits.shape[-1]).to(logits), softmax(logits))


LOSSES: dict[str, Loss] = {
    "cross_entropy": cross_entropy,
    "l1": label_distance(partial(lp_distance, order=1.0)),
    "l2": label_distance(partial(lp_distance, order=2.0)),
    "squared_l2": label_distance(lambda p, q: lp_distance(p, q, order=2.0).square()),
    "total_variation": label_distance(total_variation),
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
    data: GreyImageData = "mnist_mini"  # images by class: name of a data set, or path of a folder
    image_size: Positive[int] | None = None  # resize the images of a folder to squares with sides of this many pixels
    width: Positive[int] = 128  # hidden units
    epochs: Positive[int] = 2  # passes over the training images
    batch_size: Positive[int] = 64  # images per gradient step
    learning_rate: Positive[float] = 1e-3  # learning rate of Adam
    target_accuracy: UnitInterval = 0.8  # test accuracy up to which steps are counted

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_data(self.data, size=self.image_size).to(run.device)
        labels = check_labels(data.test.y, len(data.classes))
        run.figure(
            "examples",
            image_grid(data.test.x[:8], columns=8, titles=[data.classes[int(y)] for y in labels[:8]]),
            "Test images and their classes.",
        )
        initial = dense_classifier(prod(data.shape), len(data.classes), hidden=(self.width,))
        for name in LOSSES:
            self.train(run, name, deepcopy(initial), data)
            self.train(run, name, deepcopy(initial), data, scale=255.0, group="raw_")
        run.figure("gradient magnitude", plot_gradient_magnitudes(len(data.classes)), GRADIENT_CAPTION)
        lines = {NAMES[name]: run.curve(f"test_accuracy/{name}") for name in LOSSES}
        raw = {NAMES[name]: run.curve(f"raw_test_accuracy/{name}") for name in LOSSES}
        run.figure(
            "accuracy by step",
            curves(lines, x_label="step", y_label="test accuracy"),
            "The same initial weights and batches for every loss. Every loss compares the one-hot label with the "
            "softmax.",
        )
        run.figure(
            "accuracy by step on raw pixels",
            curves(raw, x_label="step", y_label="test accuracy"),
            "The same with pixels from 0 to 255: initial logits are so large that most softmax outputs are nearly "
            "one-hot, often for a wrong class. There the gradients of all losses but cross-entropy vanish.",
        )
        final = {name: run.curve(f"test_accuracy/{name}")[1][-1] for name in LOSSES}
        final_raw = {name: run.curve(f"raw_test_accuracy/{name}")[1][-1] for name in LOSSES}
        steps = {name: self.steps_to_target(run, name) for name in LOSSES}
        rows: list[dict[str, str | float]] = [
            {
                "loss": NAMES[name],
                "accuracy (%)": round(100 * final[name], 1),
                f"steps to {100 * self.target_accuracy:g} %": steps[name],
                "accuracy (%), raw pixels": round(100 * final_raw[name], 1),
            }
            for name in LOSSES
        ]
        run.table("results", rows, "Steps: the total number if the target accuracy was not reached.")
        run.note(
            "summary",
            f"Cross-entropy reaches {100 * self.target_accuracy:g} % after {steps['cross_entropy']} steps, L¹ after "
            f"{steps['l1']}. Total variation is half of L¹, and Adam is nearly invariant to the scale of the loss: "
            f"their curves nearly agree. On raw pixels cross-entropy reaches {100 * final_raw['cross_entropy']:.0f} % "
            f"and L¹ {100 * final_raw['l1']:.0f} %.",
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
        labels = check_labels(data.test.y, len(data.classes))
        loss_function = LOSSES[name]
        model, optimizer = run.prepare(model, partial(Adam, lr=self.learning_rate))
        steps = self.epochs * data.train.pairs(self.batch_size, 0).steps_per_epoch
        interval = max(1, steps // 100)
        for step, (x, y) in run.steps(data.train.pairs(self.batch_size, steps)):
            logits = model(scale * x)
            loss = loss_function(logits, y).mean()
            run.update(optimizer, loss)
            run.log(
                step,
                **{
                    f"{group}batch_loss/{name}": loss.detach(),
                    f"{group}batch_accuracy/{name}": accuracy(logits.detach(), y),
                },
            )
            if step % interval == 0 or step == steps - 1:
                run.record(
                    step, **{f"{group}test_accuracy/{name}": evaluate(model, scale * data.test.x, labels).accuracy}
                )

    def steps_to_target(self, run: Run, name: str) -> int:
        """Number of steps until the test accuracy reaches the target, or the total number."""
        steps, values = run.curve(f"test_accuracy/{name}")
        reached = [step + 1 for step, value in zip(steps, values, strict=True) if value >= self.target_accuracy]
        return reached[0] if reached else steps[-1] + 1


GRADIENT_CAPTION = (
    "Negative derivative of each loss with respect to the logit of the true class, by the probability q of this "
    "class (the rest is uniform). With cross-entropy it is 1 − q, largest for a confidently wrong output. The other "
    "gradients vanish there, so badly misclassified examples contribute almost nothing."
)


def plot_gradient_magnitudes(classes: int) -> "Figure":
    figure, axes = subplots(size=(6.8, 3.8))
    ax = axes[0, 0]
    q = torch.linspace(0.001, 0.999, 400, dtype=torch.float64)
    label = torch.zeros(len(q), dtype=torch.long)
    for (name, loss), colour in zip(LOSSES.items(), PALETTE, strict=False):
        logits = torch.cat([q[:, None], ((1 - q) / (classes - 1))[:, None].expand(-1, classes - 1)], 1).log()
        logits.requires_grad_()
        (gradient,) = torch.autograd.grad(loss(logits, label).sum(), logits)
        ax.plot(q, -gradient[:, 0], color=colour, label=NAMES[name])
    ax.set(xlabel="probability q of the true class", ylabel="−∂loss/∂logit of the true class", ylim=(0, 1.05))
    ax.legend()
    return figure
