"""Dense classifiers of handwritten digits with different activation functions: test accuracy (book ex. 1.3)."""

from dataclasses import dataclass
from functools import partial
from math import prod

from torch.optim import SGD

from parnassus.data import Dataset, open_data
from parnassus.layers import (
    Activation,
    check_labels,
    dense_classifier,
    evaluate,
    gelu,
    heaviside,
    identity,
    leaky_relu,
    relu,
    sigmoid,
    tanh,
)
from parnassus.report import bar_chart, curves
from parnassus.setting_types import GreyImageData
from parnassus.train import Positive, Run, at_least, between, descend, no_band

covers = ("B1.2-8", "B1.4-16")
expected = {
    "relu": at_least(0.85, "test accuracy with ReLU"),
    "leaky_relu": at_least(0.85, "test accuracy with leaky ReLU"),
    "gelu": at_least(0.83, "test accuracy with GELU"),
    "tanh": at_least(0.83, "test accuracy with tanh"),
    "sigmoid": between(0.3, 0.7, "test accuracy with the sigmoid"),
    "identity": no_band("test accuracy with the identity: the network is affine"),
    "step": between(0.6, 0.82, "test accuracy with a step function, which passes no gradient"),
    "step_behind_relu": at_least(0.06, "test accuracy with ReLU minus that with the step function"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"epochs": 1, "width": 16, "batch_size": 500},
    "gpu": {"data": "mnist"},
}

ACTIVATIONS: dict[str, Activation] = {
    "relu": relu,
    "leaky_relu": leaky_relu,
    "gelu": gelu,
    "tanh": tanh,
    "sigmoid": sigmoid,
    "identity": identity,
    "step": heaviside,
}


@dataclass(frozen=True)
class Experiment:
    data: GreyImageData = "mnist_mini"  # images by class: name of a data set, or path of a folder
    image_size: Positive[int] | None = None  # resize the images of a folder to squares with sides of this many pixels
    width: Positive[int] = 512  # units of each of the two hidden layers
    epochs: Positive[int] = 5  # passes over the training images
    batch_size: Positive[int] = 64  # images per gradient step
    learning_rate: Positive[float] = 0.1  # learning rate of SGD; at the book's 0.001 most networks are hardly trained

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_data(self.data, size=self.image_size).to(run.device)
        for name, activation in ACTIVATIONS.items():
            self.train(run, name, activation, data)
        epoch = range(1, self.epochs + 1)
        names = {name: name.replace("_", " ") for name in ACTIVATIONS}
        accuracy = {name: run.curve(f"accuracy/{name}")[1] for name in ACTIVATIONS}
        lines = {names[name]: (epoch, values) for name, values in accuracy.items()}
        final = {name: values[-1] for name, values in accuracy.items()}
        run.figure("accuracy by epoch", curves(lines, x_label="epoch", y_label="test accuracy"))
        run.figure(
            "final accuracy",
            bar_chart({names[name]: round(value, 4) for name, value in final.items()}, x_label="test accuracy"),
            "With the identity the network is affine; the step function passes no gradient to the hidden layers.",
        )
        rows: list[dict[str, str | float]] = [
            {
                "activation": names[name],
                "accuracy (%)": round(100 * final[name], 2),
                "loss": round(run.curve(f"test_loss/{name}")[1][-1], 4),
                "weight change of layer 1": round(run.curve(f"weight_change/{name}")[1][-1], 4),
            }
            for name in ACTIVATIONS
        ]
        run.table(
            "results",
            rows,
            "Last column: Frobenius norm of the change of the first layer's weights since initialisation.",
        )
        not_better = [names[name] for name in ACTIVATIONS if name != "step" and final[name] <= final["step"]]
        run.note(
            "results",
            "The step function passes no gradient: the hidden layers keep their initial weights (0 in the last column "
            "of the table), and the last layer is a linear classifier of random features. This is the baseline. Not "
            f"better than it after {self.epochs} epochs: {', '.join(not_better) or 'none'}. The sigmoid learns slowly "
            "at first, since each layer scales gradients by at most ¼. With the identity the network is an affine map.",
        )
        return {**final, "step_behind_relu": final["relu"] - final["step"]}

    def train(self, run: Run, name: str, activation: Activation, data: Dataset) -> None:
        labels = check_labels(data.test.y, len(data.classes))
        hidden = (self.width, self.width)
        model = dense_classifier(prod(data.shape), len(data.classes), hidden=hidden, activation=activation)
        initial = model.get_parameter("network.1.weight").detach().clone().to(run.device)
        model, optimizer = run.prepare(model, partial(SGD, lr=self.learning_rate))
        per_epoch = data.train.pairs(self.batch_size, 0, partial=True).steps_per_epoch
        batches = data.train.pairs(self.batch_size, self.epochs * per_epoch, partial=True)
        for step, loss in descend(run, model, optimizer, batches):
            run.log(step, **{f"loss/{name}": loss})
            if (step + 1) % per_epoch == 0:
                test = evaluate(model, data.test.x, labels)
                change = float((model.get_parameter("network.1.weight").detach() - initial).norm())
                run.record(
                    step,
                    **{
                        f"accuracy/{name}": test.accuracy,
                        f"test_loss/{name}": test.loss,
                        f"weight_change/{name}": change,
                    },
                )
