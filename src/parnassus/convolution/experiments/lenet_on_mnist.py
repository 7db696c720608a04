"""LeNet on handwritten digits with augmentation and a 1cycle schedule (book ex. 1.3).

On all of MNIST (`--profile gpu`) it makes fewer than 60 errors on 10,000 test images.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.optim import AdamW

from parnassus.convolution import first_filters, lenet, random_affine
from parnassus.data import Dataset, open_data
from parnassus.layers import Classifier, check_labels, count_parameters, evaluate
from parnassus.layers.commands.image_classifiers import EvaluateImages as Evaluate  # noqa: F401 - declares `parnassus evaluate`
from parnassus.layers.commands.image_classifiers import PredictImages as Predict  # noqa: F401 - declares `parnassus predict`
from parnassus.optim import one_cycle_rate
from parnassus.report import confusion_matrix, curves, image_grid
from parnassus.setting_types import GreyImageData
from parnassus.train import NonNegative, Positive, Run, UnitInterval, at_least, at_most, no_band
from parnassus.train.timing import Stopwatch

covers = ("B1.4-16",)
expected = {
    "accuracy": at_least(0.95, "test accuracy"),
    "test_loss": at_most(0.2, "cross-entropy on the test images, in nats"),
    "errors": no_band("misclassified test images"),
    "parameters": no_band("trained parameters"),
    "training_seconds": no_band("seconds of the training loop"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"steps": 30, "num_evaluations": 2, "batch_size": 50},
    "gpu": {"data": "mnist", "steps": 9_600, "batch_size": 250, "channels": 32, "hidden_size": 256},
}


@dataclass(frozen=True)
class Experiment:
    data: GreyImageData = "mnist_mini"  # images by class: name of a data set, or path of a folder
    image_size: Positive[int] | None = None  # resize the images of a folder to squares with sides of this many pixels
    steps: Positive[int] = 600  # gradient steps
    num_evaluations: Positive[int] = 10  # evaluations on the test set during training
    batch_size: Positive[int] = 100  # images per gradient step
    channels: Positive[int] = 16  # filters of the first convolution; the second has twice as many
    hidden_size: Positive[int] = 128  # units of the hidden dense layer
    dropout: UnitInterval = 0.5  # dropout probability before each dense layer
    learning_rate: Positive[float] = 3e-3  # peak learning rate of the 1cycle schedule
    weight_decay: NonNegative[float] = 1e-2  # decoupled weight decay of AdamW
    translate: NonNegative[float] = 2.0  # largest random translation in pixels
    degrees: NonNegative[float] = 10.0  # largest random rotation in degrees
    scale: UnitInterval = 0.1  # largest relative change of size

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_data(self.data, size=self.image_size).to(run.device)
        model = run.build(self.model, shape=data.shape, classes=data.classes)
        before = first_filters(model).cpu()
        model, optimizer = run.prepare(model, partial(AdamW, weight_decay=self.weight_decay))
        labels = check_labels(data.test.y, len(data.classes))
        every = max(1, self.steps // self.num_evaluations)
        stopwatch = Stopwatch()
        run.keep("training time", stopwatch)
        for step, (x, y) in run.steps(data.train.pairs(self.batch_size, self.steps)):
            for group in optimizer.param_groups:
                group["lr"] = one_cycle_rate(step, self.steps, peak=self.learning_rate)
            augmented = random_affine(x, translate=self.translate, degrees=self.degrees, scale=self.scale)
            with run.autocast():
                loss = model.loss(augmented, y)
            run.update(optimizer, loss)
            run.log(step, loss=loss.detach())
            if (step + 1) % every == 0:
                evaluation = evaluate(model, data.test.x, labels)
                run.record(step, accuracy=evaluation.accuracy, test_loss=evaluation.loss)
        seconds = stopwatch.seconds
        model.eval()
        run.publish(model)
        self.plot_results(run, model, data, before)
        evaluation = evaluate(model, data.test.x, labels)
        return {
            "accuracy": evaluation.accuracy,
            "test_loss": evaluation.loss,
            "errors": round((1 - evaluation.accuracy) * len(labels)),
            "parameters": count_parameters(model),
            "training_seconds": seconds,
        }

    def model(self, shape: Sequence[int], classes: Sequence[str]) -> Classifier:
        inputs, height, width = shape
        return lenet(
            (inputs, height, width),
            len(classes),
            channels=(self.channels, 2 * self.channels),
            hidden=(self.hidden_size,),
            dropout=self.dropout,
        )

    def plot_results(self, run: Run, model: Classifier, data: Dataset, before: Tensor) -> None:
        x = data.train.x[:10]
        augmented = torch.cat(
            [x, *(random_affine(x, translate=self.translate, degrees=self.degrees, scale=self.scale) for _ in range(2))]
        )
        labels = ("original", "augmented", "augmented")
        run.figure(
            "augmented images",
            image_grid(augmented, columns=10, row_labels=labels),
            "Training images with random affine transforms.",
        )
        steps, accuracy = run.curve("accuracy")
        errors = {"test error": (steps, [1 - value for value in accuracy])}
        run.figure("test error", curves(errors, x_label="step", y_label="test error rate", log_y=True))
        if data.shape[0] == 1:
            both = torch.cat([before, first_filters(model).cpu()])
            limit = both.abs().amax()
            run.figure(
                "filters",
                image_grid(both / (2 * limit) + 0.5, columns=self.channels // 2, scale=0.8),
                f"The {self.channels} filters of the first layer before (top) and after training (bottom).",
            )
        plot_errors(run, model, data)


@torch.no_grad()
def plot_errors(run: Run, model: Classifier, data: Dataset) -> None:
    """Misclassified test images, most confident first, and their confusion matrix."""
    labels = check_labels(data.test.y, len(data.classes))
    probabilities = torch.cat([model(part).softmax(-1) for part in data.test.x.split(1_000)])
    confidence, predicted = probabilities.max(-1)
    wrong = (predicted != labels).nonzero()[:, 0]
    if len(wrong) == 0:
        run.note("misclassified images", "All test images are classified correctly.")
        return
    selected = wrong[confidence[wrong].argsort(descending=True)][:30]
    titles = [f"{data.classes[int(labels[k])]} as {data.classes[int(predicted[k])]}" for k in selected]
    run.figure(
        "misclassified images",
        image_grid(data.test.x[selected], columns=10, titles=titles),
        f"{len(selected)} of the {len(wrong)} misclassified test images (true as predicted), most confident first.",
    )
    run.figure(
        "confusion matrix",
        confusion_matrix(labels[wrong], predicted[wrong], data.classes),
        "True and predicted classes of the misclassified test images.",
    )
