"""A law learned from a few digits draws new ones; do they help a classifier? (Diehl sec. 5.2)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.optim import Adam

from parnassus.data import DataError, Dataset, Split, open_data
from parnassus.data.splits import first_of_each_class
from parnassus.layers import dense_classifier, evaluate, require_labels
from parnassus.probability import GenerativeClassifier, energy_distance, own_covariances
from parnassus.report import curves, image_grid
from parnassus.train import Run, at_least, at_most, descend, reported

covers = ("D5.2.2",)
expected = {
    "real_accuracy": reported("test accuracy of a network trained on the fewest real digits of each class"),
    "augmented_accuracy": reported("the same with drawn digits added"),
    "gain_with_few": at_least(-0.04, "what the drawn digits add, fewest real ones"),
    "gain_with_many": at_least(-0.04, "the same, most real ones"),
    "drawn_alone_accuracy": at_least(0.87, "accuracy of a network that saw drawn digits only, most real ones behind"),
    "energy_distance": at_most(0.08, "energy distance of drawn digits to unseen ones"),
    "real_energy_distance": reported("the same of training digits"),
}
profiles = {
    "smoke": {"steps": 5, "drawn": 50, "few": (10,)},
    "gpu": {"data": "mnist", "steps": 5_000, "drawn": 20_000, "few": (10, 50, 200, 1_000)},
}


@dataclass(frozen=True)
class Experiment:
    data: str = "digits"  # pictures by class: digits, mnist_mini, mnist, fashion_mnist, or a folder of yours
    few: tuple[int, ...] = (5, 10, 20, 50, 100)  # real examples of each class
    drawn: int = 2_000  # pictures drawn from the learned law
    shrinkage: float = 0.2  # how far covariances are drawn to round ones
    hidden: int = 64  # hidden units of the classifier
    steps: int = 300  # gradient steps of each classifier
    batch: int = 64  # pictures a step
    lr: float = 3e-3  # Adam's learning rate

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_data(self.data).to(run.device)
        if len(data.shape) != 3 or not data.classes:
            raise DataError(f"{data.name} must be pictures by class; its examples have shape {data.shape}.")
        labels, sizes = require_labels(data.train.y, len(data.classes)), list(self.few)
        accuracy: dict[str, list[float]] = {"real": [], "real and drawn": [], "drawn alone": []}
        distances = {}
        for size in sizes:
            rows = first_of_each_class(labels, size)
            real = Split(data.train.x[rows], labels[rows])
            drawn = self.draw(real, data)
            both = Split(torch.cat([real.x, drawn.x]), torch.cat([labels[rows], require_labels(drawn.y, 2)]))
            for name, part in zip(accuracy, (real, both, drawn), strict=True):
                accuracy[name].append(self.train(run, name, part, data, logged=size == sizes[-1]))
            unseen = data.test.x.flatten(1)
            distances[size] = [float(energy_distance(part.x.flatten(1)[:1_000], unseen)) for part in (drawn, real)]
            if size == sizes[-1]:
                show_drawn(run, data, real, drawn)
        run.figure(
            "accuracy",
            curves(
                {name: (sizes, row) for name, row in accuracy.items()},
                x_label="real digits of each class",
                y_label="test accuracy",
                log_x=True,
            ),
            f"A network with {self.hidden} hidden units, trained on real digits, on {self.drawn:,} digits drawn from "
            "Gaussians that were fitted to the same real ones, and on both. Nothing else was learned from.",
        )
        run.table(
            "laws",
            [
                {
                    "real digits of each class": size,
                    "drawn to unseen": round(distances[size][0], 4),
                    "real to unseen": round(distances[size][1], 4),
                }
                for size in sizes
            ],
            "Energy distances: how far the drawn digits, and the real ones they come from, are from unseen digits.",
        )
        gains = [both - real for real, both in zip(accuracy["real"], accuracy["real and drawn"], strict=True)]
        run.note(
            "what to see",
            f"With {sizes[0]} real digits of each class the drawn ones change the accuracy by {100 * gains[0]:+.1f} "
            f"points, with {sizes[-1]} by {100 * gains[-1]:+.1f}: a Gaussian law is too poor to teach a network what "
            "it could not learn from the real digits themselves. Yet who saw drawn digits alone names "
            f"{100 * accuracy['drawn alone'][-1]:.0f} % of the real ones.",
        )
        return {
            "real_accuracy": accuracy["real"][0],
            "augmented_accuracy": accuracy["real and drawn"][0],
            "gain_with_few": gains[0],
            "gain_with_many": gains[-1],
            "drawn_alone_accuracy": accuracy["drawn alone"][-1],
            "energy_distance": distances[sizes[-1]][0],
            "real_energy_distance": distances[sizes[-1]][1],
        }

    def draw(self, real: Split, data: Dataset) -> Split:
        """New pictures of each class in turn, from Gaussians fitted to the real ones; pixels kept in [0, 1]."""
        classes = len(data.classes)
        model = GenerativeClassifier.fit(
            real.x.flatten(1),
            require_labels(real.y, classes),
            classes=classes,
            model=partial(own_covariances, shrinkage=self.shrinkage),
        )
        wished = torch.arange(self.drawn, device=real.x.device) % classes
        made = torch.cat([model.sample_like(part) for part in wished.split(500)])
        return Split(made.clamp(0, 1).reshape(-1, *data.shape), wished)

    def train(self, run: Run, name: str, part: Split, data: Dataset, *, logged: bool) -> float:
        """Test accuracy of a network trained on this part."""
        model = dense_classifier(part.x[0].numel(), len(data.classes), hidden=(self.hidden,))
        model, optimizer = run.prepare(model, partial(Adam, lr=self.lr))
        for step, loss in descend(run, model, optimizer, part.pairs(self.batch, self.steps)):
            if logged:
                run.log(step, **{f"loss/{name}": loss})
        return evaluate(model, data.test.x, require_labels(data.test.y, len(data.classes))).accuracy


def show_drawn(run: Run, data: Dataset, real: Split, drawn: Split) -> None:
    columns = len(data.classes)
    first = first_of_each_class(require_labels(real.y, columns), 1)
    ordered = first[require_labels(real.y, columns)[first].argsort()]
    pictures: Sequence[Tensor] = (real.x[ordered], drawn.x[: 4 * columns])
    run.figure(
        "drawn digits",
        image_grid(
            torch.cat(list(pictures)),
            columns=columns,
            titles=data.classes,
            row_labels=("real", *["drawn"] * 4),
        ),
        "A real digit of each class, and four drawn from the Gaussian fitted to its class: blurred and grainy, for a "
        "Gaussian knows means and covariances of pixels and nothing of strokes.",
    )
