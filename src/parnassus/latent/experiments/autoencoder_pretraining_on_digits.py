"""Autoencoder pre-training of a digit classifier with a hundred labels (book sec. 4.1)."""

from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from math import prod

import torch
from torch import Tensor, nn
from torch.optim import Adam

from parnassus.data import DataError, Split, open_data
from parnassus.latent.autoencoders.autoencoder import Autoencoder
from parnassus.latent.autoencoders.denoising_autoencoder import DenoisingAutoencoder, mask_at_random
from parnassus.layers import Classifier, evaluate, mlp, relu, sigmoid
from parnassus.report import curves
from parnassus.setting_types import ImageData
from parnassus.train import Positive, Run, UnitInterval, at_least, between, descend

covers = ("B4.1-4",)
expected = {
    "pretrained_accuracy": at_least(0.74, "test accuracy of a pre-trained network, fine-tuned with a hundred labels"),
    "random_accuracy": between(
        0.69, 0.75, "test accuracy of a randomly initialised network, trained with a hundred labels"
    ),
    "accuracy_gain": at_least(0.02, "difference of the two accuracies"),
}
profiles = {
    "smoke": {"steps": 30, "num_repeats": 1, "finetune_steps": 50},
    "gpu": {"data": "mnist", "steps": 20_000, "width": 1024},
}


@dataclass(frozen=True)
class Experiment:
    data: ImageData = "mnist_mini"  # images by class: name of a data set, or path of a folder
    image_size: Positive[int] | None = None  # resize the images of a folder to squares with sides of this many pixels
    num_labelled_examples: Positive[int] = 100  # labelled examples, equally many per class
    steps: Positive[int] = 2_500  # gradient steps of pre-training
    finetune_steps: Positive[int] = 300  # gradient steps of fine-tuning on the labelled examples
    width: Positive[int] = 256  # hidden units of both layers
    mask_fraction: UnitInterval = 0.7  # fraction of pixels set to zero during pre-training
    num_repeats: Positive[int] = 5  # random choices of the labelled examples

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_data(self.data, size=self.image_size).to(run.device)
        train_labels, test_labels = data.train.y, data.test.y
        if train_labels is None or test_labels is None or not data.classes:
            raise DataError(f"examples must have class labels; {self.data} has none")
        sizes = (prod(data.shape), self.width, self.width)
        random_encoder = nn.Sequential(nn.Flatten(), *mlp(sizes, output=relu))
        decoder = nn.Sequential(*mlp(sizes[::-1], output=sigmoid), nn.Unflatten(1, data.shape))
        encoder = deepcopy(random_encoder)
        model = DenoisingAutoencoder(
            Autoencoder(encoder, decoder), partial(mask_at_random, probability=self.mask_fraction)
        )
        model, optimizer = run.prepare(model, partial(Adam, lr=1e-3))
        for step, loss in descend(run, model, optimizer, data.train.batches(128, self.steps)):
            run.log(step, loss=loss)

        encoders = {"pre-trained": encoder, "random": random_encoder.to(run.device)}
        subsets = [
            _sample_balanced(data.train.x, train_labels, self.num_labelled_examples, seed)
            for seed in range(self.num_repeats)
        ]
        accuracies = {
            name: torch.tensor(
                [self._fine_tune(deepcopy(start), subset, data.test.x, test_labels) for subset in subsets]
            )
            for name, start in encoders.items()
        }
        self._plot_accuracy(run, accuracies)
        final = {name: values[:, -1].mean().item() for name, values in accuracies.items()}
        return {
            "pretrained_accuracy": final["pre-trained"],
            "random_accuracy": final["random"],
            "accuracy_gain": final["pre-trained"] - final["random"],
        }

    def _fine_tune(self, encoder: nn.Module, subset: Split, x: Tensor, y: Tensor) -> list[float]:
        """Accuracies on (x, y) while encoder and a new output layer are trained on the subset."""
        torch.manual_seed(0)
        head = nn.Linear(self.width, int(y.max()) + 1)
        model = Classifier(nn.Sequential(encoder, head)).to(x.device)
        optimizer = Adam(model.parameters(), lr=1e-3)
        accuracies = []
        for step, (images, labels) in enumerate(subset.pairs(64, self.finetune_steps)):
            if step in self._evaluation_steps():
                accuracies.append(evaluate(model, x, y).accuracy)
            optimizer.zero_grad()
            model.loss(images, labels).backward()
            optimizer.step()
        return [*accuracies, evaluate(model, x, y).accuracy]

    def _evaluation_steps(self) -> list[int]:
        return [step for step in (5, 10, 20, 40, 80, 150) if step < self.finetune_steps]

    def _plot_accuracy(self, run: Run, accuracies: dict[str, Tensor]) -> None:
        steps = [*self._evaluation_steps(), self.finetune_steps]
        lines = {name: (steps, values.mean(0)) for name, values in accuracies.items()}
        bands = {name: (values.amin(0), values.amax(0)) for name, values in accuracies.items()}
        figure = curves(lines, x_label="fine-tuning step", y_label="test accuracy", bands=bands)
        run.figure(
            "accuracy",
            figure,
            f"Mean and range over {self.num_repeats} random choices of {self.num_labelled_examples} labelled examples.",
        )


def _sample_balanced(x: Tensor, y: Tensor, count: int, seed: int) -> Split:
    """`count` random examples, equally many per class."""
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed)).to(y.device)
    classes = y.unique()
    rows = torch.cat([order[y[order] == label][: count // len(classes)] for label in classes])
    return Split(x[rows], y[rows])
