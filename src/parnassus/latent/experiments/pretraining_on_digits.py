"""Pre-training on unlabelled digits helps a classifier that sees a hundred labels (book sec. 4.1)."""

from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from math import prod

import torch
from torch import Tensor, nn
from torch.optim import Adam

from parnassus.data import DataError, Split, open_data
from parnassus.latent.autoencoder import Autoencoder
from parnassus.latent.denoising import DenoisingAutoencoder, masking
from parnassus.layers import Classifier, evaluate, mlp, relu, sigmoid
from parnassus.report import curves
from parnassus.train import Run, at_least, between, descend

covers = ("B4.1-4",)
expected = {
    "pretrained_accuracy": at_least(0.74, "test accuracy with a hundred labels from a pre-trained start"),
    "random_accuracy": between(0.69, 0.75, "the same from a random start"),
    "gain": at_least(0.02, "the first less the second"),
}
profiles = {
    "smoke": {"steps": 30, "repeats": 1, "tuning": 50},
    "gpu": {"data": "mnist", "steps": 20_000, "width": 1024},
}


@dataclass(frozen=True)
class Experiment:
    data: str = "mnist_mini"  # a built-in name, or your own folder of images by class
    labels: int = 100  # labelled examples, the same number of each class
    steps: int = 2_500  # steps of pre-training, without labels
    tuning: int = 300  # steps of fine-tuning, on the labelled examples alone
    width: int = 256  # units of both hidden layers
    share: float = 0.7  # pixels set to zero while pre-training
    repeats: int = 5  # draws of the labelled examples

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_data(self.data).to(run.device)
        labels, answers = data.train.y, data.test.y
        if labels is None or answers is None or not data.classes:
            raise DataError(f"{self.data} has no classes: pre-training is judged by a classifier.")
        sizes = (prod(data.shape), self.width, self.width)
        random = nn.Sequential(nn.Flatten(), *mlp(sizes, output=relu))
        decoder = nn.Sequential(*mlp(sizes[::-1], output=sigmoid), nn.Unflatten(1, data.shape))
        encoder = deepcopy(random)
        model = DenoisingAutoencoder(Autoencoder(encoder, decoder), partial(masking, share=self.share))
        model, optimizer = run.prepare(model, partial(Adam, lr=1e-3))
        for step, loss in descend(run, model, optimizer, data.train.batches(128, self.steps)):
            run.log(step, loss=loss)

        starts = {"pre-trained": encoder, "random": random.to(run.device)}
        draws = [_balanced(data.train.x, labels, self.labels, seed) for seed in range(self.repeats)]
        scores = {
            name: torch.tensor([self._accuracies(deepcopy(start), few, data.test.x, answers) for few in draws])
            for name, start in starts.items()
        }
        self._draw(run, scores)
        last = {name: score[:, -1].mean().item() for name, score in scores.items()}
        return {
            "pretrained_accuracy": last["pre-trained"],
            "random_accuracy": last["random"],
            "gain": last["pre-trained"] - last["random"],
        }

    def _accuracies(self, encoder: nn.Module, few: Split, x: Tensor, y: Tensor) -> list[float]:
        """Accuracies on (x, y) while encoder and a new output layer learn from few examples."""
        torch.manual_seed(0)
        head = nn.Linear(self.width, int(y.max()) + 1)
        model = Classifier(nn.Sequential(encoder, head)).to(x.device)
        optimizer = Adam(model.parameters(), lr=1e-3)
        accuracies = []
        for step, (images, labels) in enumerate(few.pairs(64, self.tuning)):
            if step in self._moments():
                accuracies.append(evaluate(model, x, y).accuracy)
            optimizer.zero_grad()
            model.loss(images, labels).backward()
            optimizer.step()
        return [*accuracies, evaluate(model, x, y).accuracy]

    def _moments(self) -> list[int]:
        return [step for step in (5, 10, 20, 40, 80, 150) if step < self.tuning]

    def _draw(self, run: Run, scores: dict[str, Tensor]) -> None:
        moments = [*self._moments(), self.tuning]
        lines = {name: (moments, score.mean(0)) for name, score in scores.items()}
        bands = {name: (score.amin(0), score.amax(0)) for name, score in scores.items()}
        figure = curves(lines, x_label="steps of fine-tuning", y_label="test accuracy", bands=bands)
        run.figure("accuracy", figure, f"Mean and range over {self.repeats} draws of {self.labels} labelled examples.")


def _balanced(x: Tensor, y: Tensor, count: int, seed: int) -> Split:
    """`count` examples drawn at random, equally many of each class."""
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed)).to(y.device)
    kinds = y.unique()
    rows = torch.cat([order[y[order] == kind][: count // len(kinds)] for kind in kinds])
    return Split(x[rows], y[rows])
