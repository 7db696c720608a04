"""Train a digit classifier with tape-based autodiff on NumPy, step by step equal to torch autograd (book sec. 2.1)."""

import time
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy as torch_cross_entropy

from parnassus.autodiff import DenseNetwork, cross_entropy, relu, to_torch
from parnassus.data import load_digits
from parnassus.report import curves, image_grid
from parnassus.train import Positive, Run, at_least, at_most, between, no_band

covers = ("B2.1-5", "Z2.1")
expected = {
    "test_accuracy": at_least(0.93, "accuracy on test digits"),
    "test_loss": between(0.05, 0.25, "cross-entropy on test digits"),
    "gap_to_torch": at_most(1e-10, "largest difference between the losses of tape and torch"),
    "weight_difference": at_most(1e-9, "largest difference between final weights of tape and torch"),
    "time_ratio_to_torch": no_band("ratio of the time per step of the tape to that of torch, in float64 on one thread"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"steps": 30}, "gpu": {}}


@dataclass(frozen=True)
class Experiment:
    width: Positive[int] = 128  # hidden units
    steps: Positive[int] = 2_000  # gradient steps
    batch_size: Positive[int] = 64  # digits per gradient step
    learning_rate: Positive[float] = 0.1  # learning rate of SGD

    def __call__(self, run: Run) -> dict[str, float]:
        digits = load_digits()
        assert digits.test.y is not None
        by_tape = DenseNetwork((64, self.width, 10), relu, np.random.default_rng(run.seed))
        by_torch = to_torch(by_tape, nn.ReLU())
        optimizer = torch.optim.SGD(by_torch.parameters(), lr=self.learning_rate)
        run.keep("tape", by_tape)
        run.keep("torch", by_torch)
        times = nn.Module()
        times.register_buffer("seconds", torch.zeros(2, dtype=torch.float64))
        run.keep("times", times)
        seconds = times.get_buffer("seconds")  # of the tape and of torch

        for step, (images, labels) in run.steps(digits.train.pairs(self.batch_size, self.steps)):
            inputs = images.flatten(1).double()
            x, y = inputs.numpy(), labels.numpy()
            start = time.perf_counter()
            loss = by_tape.gradient_step(x, partial(cross_entropy, labels=y), learning_rate=self.learning_rate)
            tape_end = time.perf_counter()
            torch_loss = torch_cross_entropy(by_torch(inputs), labels)
            run.update(optimizer, torch_loss)
            torch_loss_value = torch_loss.item()
            seconds += torch.tensor([tape_end - start, time.perf_counter() - tape_end])
            run.log(step, **{"loss/tape": loss, "loss/torch": torch_loss_value, "gap": abs(loss - torch_loss_value)})

        x, y = digits.test.x.flatten(1).double().numpy(), digits.test.y.numpy()
        logits = by_tape(x)
        accuracy = float((logits.argmax(1) == y).mean())
        steps, losses = run.curve("loss/tape")
        gaps = run.curve("gap")[1]
        run.figure(
            "loss by engine",
            curves(
                {"loss": (steps, losses), "difference of tape and torch": (steps, [max(gap, 1e-17) for gap in gaps])},
                x_label="step",
                y_label="cross-entropy",
                log_y=True,
            ),
            "Both networks start from the same weights and receive the same batches; they differ by float64 rounding "
            "(differences of 0 are plotted at 10⁻¹⁷).",
        )
        wrong = np.flatnonzero(logits.argmax(1) != y)[:20]
        if len(wrong):
            run.figure(
                "misclassified digits",
                image_grid(
                    digits.test.x[wrong],
                    titles=[f"{y[row]} → {logits[row].argmax()}" for row in wrong],
                    columns=10,
                ),
                f"Misclassified test digits (label → prediction), {(logits.argmax(1) != y).sum()} of {len(y)} in "
                "total.",
            )
        weight_gap = max(
            float(np.abs(weight - by_torch.state_dict()[name].numpy().T).max())
            for weight, name in zip(by_tape.weights, by_torch.state_dict(), strict=True)
        )
        run.note(
            "results",
            f"An automatic differentiation engine of a few hundred lines on NumPy reaches {accuracy:.1%} test accuracy "
            f"and takes the same steps as torch: after {self.steps:,} steps no weight differs by more than "
            f"{weight_gap:.0e}.",
        )
        return {
            "test_accuracy": accuracy,
            "test_loss": float(cross_entropy(logits, y)),
            "gap_to_torch": max(gaps),
            "weight_difference": weight_gap,
            "time_ratio_to_torch": float(seconds[0] / seconds[1]),
        }
