"""The first classifier on handwritten digits with every activation of the chapter (book ex. 1.3)."""

from dataclasses import dataclass
from functools import partial
from math import prod

from torch.optim import SGD

from parnassus.data import Dataset, open_data
from parnassus.layers import (
    Activation,
    dense_classifier,
    evaluate,
    gelu,
    identity,
    leaky_relu,
    relu,
    require_labels,
    sigmoid,
    step01,
    tanh,
)
from parnassus.report import bars, curves
from parnassus.train import Run, at_least, between, descend, reported

covers = ("B1.2-8", "B1.4-16")
expected = {
    "relu": at_least(0.85, "test accuracy with ReLU"),
    "leaky_relu": at_least(0.85, "with leaky ReLU"),
    "gelu": at_least(0.83, "with GELU"),
    "tanh": at_least(0.83, "with tanh"),
    "sigmoid": between(0.3, 0.7, "with the sigmoid"),
    "identity": reported("with none: the whole network is affine"),
    "step": between(0.6, 0.82, "with a step, behind which nothing learns"),
    "step_behind_relu": at_least(0.06, "what ReLU gains over the step"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"epochs": 1, "hidden": 16, "batch": 500}, "gpu": {"data": "mnist"}}

TRIED: dict[str, Activation] = {
    "relu": relu,
    "leaky_relu": leaky_relu,
    "gelu": gelu,
    "tanh": tanh,
    "sigmoid": sigmoid,
    "identity": identity,
    "step": step01,
}


@dataclass(frozen=True)
class Experiment:
    data: str = "mnist_mini"  # mnist_mini, mnist, fashion_mnist, digits, or a folder or file of your own
    hidden: int = 512  # units in each of the two hidden layers
    epochs: int = 5  # passes over the training images
    batch: int = 64  # images a step
    rate: float = 0.1  # learning rate of plain SGD; at the 0.001 of the text most of these hardly start

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_data(self.data).to(run.device)
        for name, activation in TRIED.items():
            self.train(run, name, activation, data)
        epoch = range(1, self.epochs + 1)
        names = {name: name.replace("_", " ") for name in TRIED}
        accuracy = {name: run.curve(f"accuracy/{name}")[1] for name in TRIED}
        lines = {names[name]: (epoch, values) for name, values in accuracy.items()}
        final = {name: values[-1] for name, values in accuracy.items()}
        run.figure("accuracy by epoch", curves(lines, x_label="epoch", y_label="test accuracy"))
        run.figure(
            "accuracy at the end",
            bars({names[name]: round(value, 4) for name, value in final.items()}, x_label="test accuracy"),
            "The identity makes the whole network affine; below a step nothing learns.",
        )
        rows: list[dict[str, str | float]] = [
            {
                "activation": names[name],
                "accuracy %": round(100 * final[name], 2),
                "loss": round(run.curve(f"test_loss/{name}")[1][-1], 4),
                "first layer moved": round(run.curve(f"moved/{name}")[1][-1], 4),
            }
            for name in TRIED
        ]
        run.table("results", rows, "The last column is how far the first layer's weights went from their start.")
        behind = [names[name] for name in TRIED if name != "step" and final[name] <= final["step"]]
        run.note(
            "what to see",
            "Behind the step no gradient passes: its hidden layers stay exactly where they began (0 in the last column "
            "of the table), and what accuracy there is comes from the last layer on top of random features. It is the "
            f"control. Not ahead of it after {self.epochs} epochs: {', '.join(behind) or 'none'}. The sigmoid starts "
            "slowly, since each layer multiplies gradients by at most ¼. The identity learns what an affine map can.",
        )
        return {**final, "step_behind_relu": final["relu"] - final["step"]}

    def train(self, run: Run, name: str, activation: Activation, data: Dataset) -> None:
        labels = require_labels(data.test.y, len(data.classes))
        hidden = (self.hidden, self.hidden)
        model = dense_classifier(prod(data.shape), len(data.classes), hidden=hidden, activation=activation)
        first = model.get_parameter("network.1.weight").detach().clone().to(run.device)
        model, optimizer = run.prepare(model, partial(SGD, lr=self.rate))
        per_epoch = data.train.pairs(self.batch, 0, partial=True).epoch
        batches = data.train.pairs(self.batch, self.epochs * per_epoch, partial=True)
        for step, loss in descend(run, model, optimizer, batches):
            run.log(step, **{f"loss/{name}": loss})
            if (step + 1) % per_epoch == 0:
                tested = evaluate(model, data.test.x, labels)
                moved = float((model.get_parameter("network.1.weight").detach() - first).norm())
                run.record(
                    step,
                    **{f"accuracy/{name}": tested.accuracy, f"test_loss/{name}": tested.loss, f"moved/{name}": moved},
                )
