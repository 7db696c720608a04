"""A 1cycle schedule for the first classifier, and what of its gain is momentum (book ex. 1.2).

torch's scheduler sets a momentum on plain SGD unless told not to. Rate and momentum are pure functions of the step
here, so that each can be left out; both networks of the chapter are trained in each way from the same start.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import prod

from torch.optim import SGD

from parnassus.data import Dataset, open_data
from parnassus.layers import Activation, Classifier, dense_classifier, evaluate, identity, relu, require_labels
from parnassus.optim import one_cycle_momentum, one_cycle_rate
from parnassus.report import curves
from parnassus.train import Run, at_least, between, reported

covers = ("B1.3-12", "B1.4-15")
expected = {
    "constant_printed": reported("test accuracy of the printed network at a constant rate"),
    "cycle_printed": reported("the same with a 1cycle"),
    "cycle_momentum_printed": between(0.5, 0.88, "the same with a 1cycle and its momentum"),
    "constant_fixed": between(0.4, 0.7, "test accuracy without the last ReLU at a constant rate"),
    "cycle_fixed": at_least(0.77, "the same with a 1cycle"),
    "cycle_momentum_fixed": at_least(0.88, "the same with a 1cycle and its momentum"),
    "gain_of_momentum": at_least(0.05, "what the momentum adds to the 1cycle"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"steps": 30, "stages": 2, "hidden": 32},
    "gpu": {"data": "fashion_mnist", "steps": 4_690},
}


@dataclass(frozen=True)
class Experiment:
    data: str = "mnist_mini"  # mnist_mini, fashion_mnist, mnist, digits, or a folder or file of your own
    hidden: int = 512  # units in each of the two hidden layers
    steps: int = 2_000  # gradient steps; the text takes 4,690, which are 5 epochs of Fashion-MNIST
    stages: int = 5  # tests on the way
    batch: int = 64  # images a step
    rate: float = 1e-3  # the constant learning rate
    peak: float = 1e-2  # the highest rate of the cycle

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_data(self.data).to(run.device)
        schedules: dict[str, tuple[Callable[[int], float], Callable[[int], float]]] = {
            "constant": (lambda _: self.rate, lambda _: 0.0),
            "cycle": (lambda step: one_cycle_rate(step, self.steps, peak=self.peak), lambda _: 0.0),
            "cycle_momentum": (
                lambda step: one_cycle_rate(step, self.steps, peak=self.peak),
                lambda step: one_cycle_momentum(step, self.steps),
            ),
        }
        outputs: dict[str, Activation] = {"printed": relu, "fixed": identity}
        start = self.network(data, identity).state_dict()
        accuracy = {}
        for end, output in outputs.items():
            for way, (rate, momentum) in schedules.items():
                model = self.network(data, output)
                model.load_state_dict(start)
                name = f"{way}_{end}"
                self.train(run, name, model, data, rate=rate, momentum=momentum)
                accuracy[name] = run.curve(f"accuracy/{name}")[1]

        stage = range(1, self.stages + 1)
        for end in outputs:
            lines = {way.replace("_", " with "): (stage, accuracy[f"{way}_{end}"]) for way in schedules}
            run.figure(
                f"accuracy, {end} network",
                curves(lines, x_label="stage", y_label="test accuracy"),
                "With a ReLU behind the logits, as printed." if end == "printed" else "Without the last ReLU.",
            )
        final = {name: values[-1] for name, values in accuracy.items()}
        rows: list[dict[str, str | float]] = [
            {"schedule": way.replace("_", " with "), **{end: round(100 * final[f"{way}_{end}"], 1) for end in outputs}}
            for way in schedules
        ]
        run.table("final test accuracy in %", rows, f"After {self.steps:,} steps from the same start.")
        gain = final["cycle_momentum_fixed"] - final["cycle_fixed"]
        run.note(
            "what to see",
            f"The cycle alone lifts the network without the last ReLU from {100 * final['constant_fixed']:.1f} to "
            f"{100 * final['cycle_fixed']:.1f} %; the momentum that torch's OneCycleLR adds unasked lifts it to "
            f"{100 * final['cycle_momentum_fixed']:.1f} %. Pass cycle_momentum=False there to compare schedules alone.",
        )
        return {**final, "gain_of_momentum": gain}

    def network(self, data: Dataset, output: Activation) -> Classifier:
        hidden = (self.hidden, self.hidden)
        return dense_classifier(prod(data.shape), len(data.classes), hidden=hidden, output=output)

    def train(
        self,
        run: Run,
        name: str,
        model: Classifier,
        data: Dataset,
        *,
        rate: Callable[[int], float],
        momentum: Callable[[int], float],
    ) -> None:
        labels = require_labels(data.test.y, len(data.classes))
        model, optimizer = run.prepare(model, partial(SGD, lr=self.rate, momentum=0.9))
        every = self.steps // self.stages
        for step, (x, y) in run.steps(data.train.pairs(self.batch, self.steps, partial=True)):
            for group in optimizer.param_groups:
                group["lr"], group["momentum"] = rate(step), momentum(step)
            with run.autocast():
                loss = model.loss(x, y)
            run.update(optimizer, loss)
            run.log(step, **{f"loss/{name}": loss.detach()})
            if (step + 1) % every == 0:
                run.record(step, **{f"accuracy/{name}": evaluate(model, data.test.x, labels).accuracy})
