"""1cycle schedule on the first classifier: separate effects of learning rate and momentum (book ex. 1.2).

torch's OneCycleLR cycles the momentum of the optimiser by default. Here learning rate and momentum are separate
functions of the step, so that each can be switched off; both networks of the chapter are trained with every schedule
from the same initial weights.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod

from torch.optim import SGD

from parnassus.data import Dataset, open_data
from parnassus.layers import Activation, Classifier, check_labels, dense_classifier, evaluate, identity, relu
from parnassus.layers.commands.image_classifiers import EvaluateImages as Evaluate  # noqa: F401 - declares `parnassus evaluate`
from parnassus.layers.commands.image_classifiers import PredictImages as Predict  # noqa: F401 - declares `parnassus predict`
from parnassus.optim import one_cycle_momentum, one_cycle_rate
from parnassus.report import curves
from parnassus.setting_types import GreyImageData
from parnassus.train import Positive, Run, at_least, between, no_band

covers = ("B1.3-12", "B1.4-15")
expected = {
    "constant_printed": no_band("test accuracy of the printed network with a constant learning rate"),
    "cycle_printed": no_band("test accuracy of the printed network with a 1cycle learning rate"),
    "cycle_momentum_printed": between(
        0.5, 0.88, "test accuracy of the printed network with 1cycle learning rate and momentum"
    ),
    "constant_fixed": between(0.4, 0.7, "test accuracy without the final ReLU, constant learning rate"),
    "cycle_fixed": at_least(0.77, "test accuracy without the final ReLU, 1cycle learning rate"),
    "cycle_momentum_fixed": at_least(0.88, "test accuracy without the final ReLU, 1cycle learning rate and momentum"),
    "gain_of_momentum": at_least(0.05, "accuracy gain from cycling the momentum, without the final ReLU"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"steps": 30, "num_evaluations": 2, "width": 32},
    "gpu": {"data": "fashion_mnist", "steps": 4_690},
}

SAVED = "cycle_momentum_fixed"
"""The network whose weights are saved: schedule and variant."""


@dataclass(frozen=True)
class Experiment:
    data: GreyImageData = "mnist_mini"  # images by class: name of a data set, or path of a folder
    image_size: Positive[int] | None = None  # resize the images of a folder to squares with sides of this many pixels
    width: Positive[int] = 512  # units in each of the two hidden layers
    steps: Positive[int] = 2_000  # gradient steps; the book uses 4,690, that is 5 epochs of Fashion-MNIST
    num_evaluations: Positive[int] = 5  # evaluations on the test images during training
    batch_size: Positive[int] = 64  # images per gradient step
    learning_rate: Positive[float] = 1e-3  # constant learning rate
    max_learning_rate: Positive[float] = 1e-2  # maximum learning rate of the cycle

    def model(self, shape: Sequence[int], classes: Sequence[str], output: Activation = identity) -> Classifier:
        return dense_classifier(prod(shape), len(classes), hidden=(self.width, self.width), output=output)

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_data(self.data, size=self.image_size).to(run.device)
        schedules: dict[str, tuple[Callable[[int], float], Callable[[int], float]]] = {
            "constant": (lambda _: self.learning_rate, lambda _: 0.0),
            "cycle": (lambda step: one_cycle_rate(step, self.steps, peak=self.max_learning_rate), lambda _: 0.0),
            "cycle_momentum": (
                lambda step: one_cycle_rate(step, self.steps, peak=self.max_learning_rate),
                lambda step: one_cycle_momentum(step, self.steps),
            ),
        }
        outputs: dict[str, Activation] = {"printed": relu, "fixed": identity}
        initial_state = run.build(self.model, shape=data.shape, classes=data.classes).state_dict()
        accuracy = {}
        for variant, output in outputs.items():
            for schedule, (rate, momentum) in schedules.items():
                model = self.model(data.shape, data.classes, output)
                model.load_state_dict(initial_state)
                name = f"{schedule}_{variant}"
                model = self.train(run, name, model, data, rate=rate, momentum=momentum)
                if name == SAVED:
                    run.publish(model)
                accuracy[name] = run.curve(f"accuracy/{name}")[1]

        evaluations = range(1, self.num_evaluations + 1)
        for variant in outputs:
            lines = {
                schedule.replace("_", " with "): (evaluations, accuracy[f"{schedule}_{variant}"])
                for schedule in schedules
            }
            run.figure(
                f"accuracy, {variant} network",
                curves(lines, x_label="evaluation", y_label="test accuracy"),
                "With a ReLU after the logits, as printed." if variant == "printed" else "Without the final ReLU.",
            )
        final = {name: values[-1] for name, values in accuracy.items()}
        rows: list[dict[str, str | float]] = [
            {
                "schedule": schedule.replace("_", " with "),
                **{variant: round(100 * final[f"{schedule}_{variant}"], 1) for variant in outputs},
            }
            for schedule in schedules
        ]
        run.table("final test accuracy (%)", rows, f"After {self.steps:,} steps from the same initial weights.")
        gain = final["cycle_momentum_fixed"] - final["cycle_fixed"]
        run.note(
            "results",
            "Without the final ReLU, the 1cycle learning rate alone raises the test accuracy from "
            f"{100 * final['constant_fixed']:.1f} to {100 * final['cycle_fixed']:.1f} %; the momentum that torch's "
            f"OneCycleLR cycles by default raises it further, to {100 * final['cycle_momentum_fixed']:.1f} %. Use "
            "OneCycleLR(cycle_momentum=False) to compare learning rates alone.",
        )
        return {**final, "gain_of_momentum": gain}

    def train(
        self,
        run: Run,
        name: str,
        model: Classifier,
        data: Dataset,
        *,
        rate: Callable[[int], float],
        momentum: Callable[[int], float],
    ) -> Classifier:
        labels = check_labels(data.test.y, len(data.classes))
        model, optimizer = run.prepare(model, partial(SGD, lr=self.learning_rate, momentum=0.9))
        interval = self.steps // self.num_evaluations
        for step, (x, y) in run.steps(data.train.pairs(self.batch_size, self.steps, partial=True)):
            for group in optimizer.param_groups:
                group["lr"], group["momentum"] = rate(step), momentum(step)
            with run.autocast():
                loss = model.loss(x, y)
            run.update(optimizer, loss)
            run.log(step, **{f"loss/{name}": loss.detach()})
            if (step + 1) % interval == 0:
                run.record(step, **{f"accuracy/{name}": evaluate(model, data.test.x, labels).accuracy})
        return model
