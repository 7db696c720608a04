"""Dense classifier of handwritten digits with one hidden layer (book sec. 1.4)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import prod

import torch
from jaxtyping import Float
from torch import Tensor
from torch.optim import SGD

from parnassus.data import open_data
from parnassus.layers import Classifier, check_labels, dense_classifier, evaluate
from parnassus.layers.commands.image_classifiers import EvaluateImages as Evaluate  # noqa: F401 - declares `parnassus evaluate`
from parnassus.layers.commands.image_classifiers import PredictImages as Predict  # noqa: F401 - declares `parnassus predict`
from parnassus.losses import accuracy_per_class, softmax
from parnassus.report import confusion_matrix, curves, image_grid
from parnassus.setting_types import GreyImageData
from parnassus.train import Positive, Run, at_least, at_most, descend

covers = ("B1.4-7", "B1.4-8", "B1.4-11", "B1.4-12", "B1.4-13")
expected = {
    "test_accuracy": at_least(0.96, "test accuracy"),
    "test_loss": at_most(0.18, "test cross-entropy, in nats"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"epochs": 2}, "gpu": {}}


@dataclass(frozen=True)
class Experiment:
    data: GreyImageData = "digits"  # images by class: name of a data set, or path of a folder
    image_size: Positive[int] | None = None  # resize the images of a folder to squares with sides of this many pixels
    width: Positive[int] = 128  # hidden units
    epochs: Positive[int] = 60  # passes over the training images
    batch_size: Positive[int] = 32  # images per gradient step
    learning_rate: Positive[float] = 1.0  # learning rate of SGD

    def model(self, shape: Sequence[int], classes: Sequence[str]) -> Classifier:
        return dense_classifier(prod(shape), len(classes), hidden=(self.width,))

    def predict(self, model: Classifier, x: Float[Tensor, "rows *example"]) -> Float[Tensor, "rows classes"]:
        """Class probabilities, which `parnassus explain` attributes to the inputs."""
        return softmax(model(x))

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_data(self.data, size=self.image_size).to(run.device)
        test, labels = data.test, check_labels(data.test.y, len(data.classes))
        model = run.build(self.model, shape=data.shape, classes=data.classes)
        model, optimizer = run.prepare(model, partial(SGD, lr=self.learning_rate))
        per_epoch = data.train.pairs(self.batch_size, 0).steps_per_epoch
        batches = data.train.pairs(self.batch_size, self.epochs * per_epoch)
        for step, loss in descend(run, model, optimizer, batches):
            run.log(step, loss=loss)
            if (step + 1) % per_epoch == 0:
                run.record(step, test_accuracy=evaluate(model, test.x, labels).accuracy)

        with torch.no_grad():
            logits = model(test.x)
        wrong = (logits.argmax(-1) != labels).nonzero()[:, 0]
        lines = {"test accuracy": (range(1, self.epochs + 1), run.curve("test_accuracy")[1])}
        run.figure("accuracy by epoch", curves(lines, x_label="epoch", y_label="accuracy"))
        run.figure(
            "confusion matrix",
            confusion_matrix(labels, logits.argmax(-1), data.classes),
            "Number of test images by true and predicted class.",
        )
        if len(wrong) and len(data.shape) == 3:
            first = wrong[:12]
            confidence = softmax(logits[first]).amax(-1)
            titles = [
                f"{data.classes[int(y)]} as {data.classes[int(z)]} ({100 * float(p):.0f} %)"
                for y, z, p in zip(labels[first], logits[first].argmax(-1), confidence, strict=True)
            ]
            run.figure(
                "misclassified images",
                image_grid(test.x[first], columns=4, titles=titles, scale=1.3),
                f"The first of {len(wrong)} misclassified test images (of {len(test)}): true class, predicted class, "
                "confidence.",
            )
        by_class = accuracy_per_class(logits, labels)
        run.table("accuracy by class", [dict(zip(data.classes, [round(float(a), 4) for a in by_class], strict=True))])
        final = evaluate(model, test.x, labels)
        return {"test_accuracy": final.accuracy, "test_loss": final.loss}
