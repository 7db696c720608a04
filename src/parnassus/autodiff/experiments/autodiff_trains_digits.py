"""Our own engine learns handwritten digits, step for step beside torch (book sec. 2.1)."""

import time
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy as torch_cross_entropy

from parnassus.autodiff import Network, cross_entropy, relu, torch_twin
from parnassus.data import load_digits
from parnassus.report import curves, image_grid
from parnassus.train import Run, at_least, at_most, between, reported

covers = ("B2.1-5", "Z2.1")
expected = {
    "test_accuracy": at_least(0.93, "share of unseen digits named rightly"),
    "test_loss": between(0.05, 0.25, "cross-entropy on unseen digits"),
    "gap_to_torch": at_most(1e-10, "largest difference between a loss of ours and torch's"),
    "weights_apart": at_most(1e-9, "largest difference between a weight of ours and torch's at the end"),
    "time_by_torch": reported("our time a step over torch's, in float64 on one thread"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"steps": 30}, "gpu": {}}


@dataclass(frozen=True)
class Experiment:
    hidden: int = 128  # hidden units
    steps: int = 2_000  # gradient steps
    batch: int = 64  # digits a step
    rate: float = 0.1  # learning rate

    def __call__(self, run: Run) -> dict[str, float]:
        digits = load_digits()
        assert digits.test.y is not None
        ours = Network((64, self.hidden, 10), relu, np.random.default_rng(run.seed))
        theirs = torch_twin(ours, nn.ReLU())
        optimizer = torch.optim.SGD(theirs.parameters(), lr=self.rate)
        run.keep("ours", ours)
        run.keep("torch", theirs)
        spent = {"ours": 0.0, "torch": 0.0}

        for step, (pictures, labels) in run.steps(digits.train.pairs(self.batch, self.steps)):
            inputs = pictures.flatten(1).double()
            x, y = inputs.numpy(), labels.numpy()
            began = time.perf_counter()
            loss = ours.descend(x, partial(cross_entropy, labels=y), rate=self.rate)
            between_both = time.perf_counter()
            torch_loss = torch_cross_entropy(theirs(inputs), labels)
            run.update(optimizer, torch_loss)
            other = torch_loss.item()
            spent["ours"] += between_both - began
            spent["torch"] += time.perf_counter() - between_both
            run.log(step, **{"loss/ours": loss, "loss/torch": other, "gap": abs(loss - other)})

        x, y = digits.test.x.flatten(1).double().numpy(), digits.test.y.numpy()
        logits = ours(x)
        accuracy = float((logits.argmax(1) == y).mean())
        steps, losses = run.curve("loss/ours")
        gaps = run.curve("gap")[1]
        run.figure(
            "two engines, one loss",
            curves(
                {"loss": (steps, losses), "ours and torch apart": (steps, [max(gap, 1e-17) for gap in gaps])},
                x_label="step",
                y_label="cross-entropy",
                log_y=True,
            ),
            "Both networks see the same batches from the same start; what parts them is rounding in the last digit of "
            "a float64 (10⁻¹⁷ stands for no difference at all).",
        )
        wrong = np.flatnonzero(logits.argmax(1) != y)[:20]
        if len(wrong):
            run.figure(
                "what it gets wrong",
                image_grid(
                    digits.test.x[wrong],
                    titles=[f"{y[row]} read as {logits[row].argmax()}" for row in wrong],
                    columns=10,
                ),
                f"Unseen digits with a wrong answer, {(logits.argmax(1) != y).sum()} of {len(y)} in all.",
            )
        apart = max(
            float(np.abs(weight - theirs.state_dict()[name].numpy().T).max())
            for weight, name in zip(ours.weights, theirs.state_dict(), strict=True)
        )
        run.note(
            "what to see",
            f"An engine of a few hundred lines over NumPy learns to read digits ({accuracy:.1%} right) and takes the "
            f"very steps that torch takes: after {self.steps:,} of them no weight differs by more than {apart:.0e}.",
        )
        return {
            "test_accuracy": accuracy,
            "test_loss": float(cross_entropy(logits, y)),
            "gap_to_torch": max(gaps),
            "weights_apart": apart,
            "time_by_torch": spent["ours"] / max(spent["torch"], 1e-9),
        }
