"""A small dense network learns handwritten digits in seconds (book sec. 1.4)."""

from dataclasses import dataclass
from functools import partial
from math import prod

import torch
from jaxtyping import Float
from torch import Tensor
from torch.optim import SGD

from parnassus.data import open_data
from parnassus.layers import Classifier, dense_classifier, evaluate, require_labels
from parnassus.losses import accuracy_per_class, softmax
from parnassus.report import confusion, curves, image_grid
from parnassus.train import Run, at_least, at_most, descend

covers = ("B1.4-7", "B1.4-8", "B1.4-11", "B1.4-12", "B1.4-13")
expected = {
    "test_accuracy": at_least(0.96, "share of unseen digits named rightly"),
    "test_loss": at_most(0.18, "cross-entropy on them, in nats"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"epochs": 2}, "gpu": {}}


@dataclass(frozen=True)
class Experiment:
    data: str = "digits"  # digits, mnist_mini, mnist, fashion_mnist, or a folder or file of your own
    hidden: int = 128  # hidden units
    epochs: int = 60  # passes over the training images
    batch: int = 32  # images a step
    rate: float = 1.0  # learning rate of plain SGD

    def model(self, inputs: int, classes: int) -> Classifier:
        return dense_classifier(inputs, classes, hidden=(self.hidden,))

    def predict(self, model: Classifier, x: Float[Tensor, "rows *example"]) -> Float[Tensor, "rows classes"]:
        """Probabilities, which `parnassus explain` shares out among the inputs."""
        return softmax(model(x))

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_data(self.data).to(run.device)
        test, labels = data.test, require_labels(data.test.y, len(data.classes))
        model = run.build(self.model, inputs=prod(data.shape), classes=len(data.classes))
        model, optimizer = run.prepare(model, partial(SGD, lr=self.rate))
        per_epoch = data.train.pairs(self.batch, 0).epoch
        batches = data.train.pairs(self.batch, self.epochs * per_epoch)
        for step, loss in descend(run, model, optimizer, batches):
            run.log(step, loss=loss)
            if (step + 1) % per_epoch == 0:
                run.record(step, test_accuracy=evaluate(model, test.x, labels).accuracy)

        with torch.no_grad():
            logits = model(test.x)
        wrong = (logits.argmax(-1) != labels).nonzero()[:, 0]
        seen = {"test accuracy": (range(1, self.epochs + 1), run.curve("test_accuracy")[1])}
        run.figure("accuracy by epoch", curves(seen, x_label="epoch", y_label="share right"))
        run.figure(
            "confusion",
            confusion(labels, logits.argmax(-1), data.classes),
            "How many test images of each class were given each name.",
        )
        if len(wrong) and len(data.shape) == 3:
            shown = wrong[:12]
            sure = softmax(logits[shown]).amax(-1)
            titles = [
                f"{data.classes[int(y)]} as {data.classes[int(z)]} ({100 * float(p):.0f} %)"
                for y, z, p in zip(labels[shown], logits[shown].argmax(-1), sure, strict=True)
            ]
            run.figure(
                "mistakes",
                image_grid(test.x[shown], columns=4, titles=titles, scale=1.3),
                f"{len(wrong)} of {len(test)} test images are misread; the first ones, with how sure the network was.",
            )
        by_class = accuracy_per_class(logits, labels)
        run.table("accuracy by class", [dict(zip(data.classes, [round(float(a), 4) for a in by_class], strict=True))])
        final = evaluate(model, test.x, labels)
        return {"test_accuracy": final.accuracy, "test_loss": final.loss}
