"""Digits named through Bayes' rule and named directly: which needs more examples? (Diehl sec. 5.2)."""

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.functional import nll_loss
from torch.optim import Adam

from parnassus.convolution.lenet import Convolve
from parnassus.data import DataError, Dataset, Split, open_data
from parnassus.data.splits import first_of_each_class
from parnassus.layers import (
    Classifier,
    SupportVectorMachine,
    dense_classifier,
    gaussian_svm,
    linear_svm,
    relu,
    require_labels,
)
from parnassus.probability import (
    FitClasses,
    GenerativeClassifier,
    naive_bernoulli,
    naive_gaussian,
    own_covariances,
    shared_covariance,
)
from parnassus.report import confusion, curves, histograms, image_grid
from parnassus.train import Run, at_least, descend, reported

covers = ("D5.2.1",)
expected = {
    "own_covariances": at_least(0.97, "test accuracy through Bayes, a Gaussian for each class"),
    "shared_covariance": at_least(0.92, "the same with one covariance for all classes"),
    "naive_gaussian": at_least(0.85, "the same with independent pixels"),
    "naive_bernoulli": at_least(0.82, "the same with independent pixels that are black or white"),
    "softmax_regression": at_least(0.9, "test accuracy of a linear softmax classifier"),
    "small_cnn": at_least(0.95, "the same of two convolutions and a softmax"),
    "linear_svm": at_least(0.92, "the same of a linear support vector machine"),
    "gaussian_svm": at_least(0.95, "the same of one with random waves"),
    "bayes_lead_with_few": reported("accuracy that Bayes with Gaussians has over softmax regression, fewest examples"),
    "noise_found_out": at_least(0.99, "share of noise images less likely than 99 % of the unseen digits"),
    "softmax_certainty_on_noise": reported("mean of the largest probability that softmax regression gives them"),
}
profiles = {
    "smoke": {"steps": 5, "waves": 50, "few": (20,)},
    "gpu": {"data": "mnist", "steps": 6_000, "batch": 256, "waves": 8_000, "few": (20, 100, 500, 2_000)},
}


@dataclass(frozen=True)
class Experiment:
    data: str = "digits"  # pictures by class: digits, mnist_mini, mnist, fashion_mnist, or a folder of yours
    few: tuple[int, ...] = (5, 10, 20, 50)  # examples of each class on the way to all of them
    steps: int = 400  # gradient steps of each discriminative model
    batch: int = 64  # pictures a step
    lr: float = 5e-3  # Adam's learning rate
    shrinkage: float = 0.2  # how far covariances are drawn to round ones
    waves: int = 1_000  # random waves of the Gaussian support vector machine

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_data(self.data).to(run.device)
        if len(data.shape) != 3 or not data.classes:
            raise DataError(f"{data.name} must be pictures by class; its examples have shape {data.shape}.")
        labels = require_labels(data.train.y, len(data.classes))
        sizes = list(self.few)
        parts = [Split(data.train.x[rows], labels[rows]) for rows in (first_of_each_class(labels, n) for n in sizes)]
        parts.append(data.train)
        named: dict[str, list[Tensor]] = {}  # log-probabilities or scores of the test pictures, by model and size
        for part in parts:
            for name, scores in self.through_bayes(part, data).items():
                named.setdefault(name, []).append(scores)
            direct = {name: self.train(run, name, model, part, data) for name, model in self.direct(data).items()}
            for name, each in direct.items():
                named.setdefault(name, []).append(scores_of(each, data.test.x))
        truth = require_labels(data.test.y, len(data.classes))
        accuracy = {
            name: [float((scores.argmax(1) == truth).float().mean()) for scores in row] for name, row in named.items()
        }
        self.show(run, data, [len(part) for part in parts], named, accuracy)
        found_out, certainty = self.judge_noise(run, data, direct["softmax regression"])
        last = {name.replace(" ", "_"): row[-1] for name, row in accuracy.items()}
        return {
            **last,
            "bayes_lead_with_few": accuracy["own covariances"][0] - accuracy["softmax regression"][0],
            "noise_found_out": found_out,
            "softmax_certainty_on_noise": certainty,
        }

    def generative(self) -> dict[str, FitClasses]:
        return {
            "own covariances": partial(own_covariances, shrinkage=self.shrinkage),
            "shared covariance": partial(shared_covariance, shrinkage=self.shrinkage),
            "naive gaussian": naive_gaussian,
            "naive bernoulli": naive_bernoulli,
        }

    def through_bayes(self, part: Split, data: Dataset) -> dict[str, Tensor]:
        """The log-posteriors of the test pictures: how each class looks, then Bayes' rule."""
        labels, classes = require_labels(part.y, len(data.classes)), len(data.classes)
        posteriors = {}
        for name, model in self.generative().items():
            view = black_and_white if name == "naive bernoulli" else grey
            fitted = GenerativeClassifier.fit(view(part.x), labels, classes=classes, model=model)
            posteriors[name] = torch.cat([fitted.log_posterior(view(few)) for few in data.test.x.split(500)])
        return posteriors

    def direct(self, data: Dataset) -> dict[str, Classifier | SupportVectorMachine]:
        """Models of P(C | x) alone, and models of a margin."""
        inputs, classes = data.train.x[0].numel(), len(data.classes)
        gamma = 1 / (inputs * float(data.train.x.var()))
        return {
            "softmax regression": dense_classifier(inputs, classes, hidden=()),
            "small cnn": small_cnn(data.shape, classes),
            "linear svm": linear_svm(inputs, classes),
            "gaussian svm": gaussian_svm(inputs, classes, waves=self.waves, gamma=gamma),
        }

    def train(
        self, run: Run, name: str, model: Classifier | SupportVectorMachine, part: Split, data: Dataset
    ) -> Classifier | SupportVectorMachine:
        model, optimizer = run.prepare(model, partial(Adam, lr=self.lr))
        for step, loss in descend(run, model, optimizer, part.pairs(self.batch, self.steps)):
            if part is data.train:
                run.log(step, **{f"loss/{name}": loss})
        return model

    def judge_noise(self, run: Run, data: Dataset, softmax: Classifier | SupportVectorMachine) -> tuple[float, float]:
        """Pictures with their pixels dealt anew: unlikely under the law of digits, named by softmax all the same."""
        labels, classes = require_labels(data.train.y, len(data.classes)), len(data.classes)
        model = GenerativeClassifier.fit(
            grey(data.train.x), labels, classes=classes, model=self.generative()["own covariances"]
        )
        digits = data.test.x[:500]
        order = torch.rand(len(digits), digits[0].numel(), device=run.device).argsort(1)
        noise = grey(digits).gather(1, order)
        likely, unlikely = model.log_prob(grey(digits)), model.log_prob(noise)
        with torch.no_grad():
            certainty = float(softmax(noise.reshape(digits.shape)).softmax(1).amax(1).mean())
        found = float((unlikely < likely.quantile(0.01)).float().mean())
        run.figure(
            "what is a digit",
            histograms({"unseen digits": likely, "their pixels dealt anew": unlikely}, x_label="log p(x), nats"),
            "The evidence p(x) of the Gaussian classes. A model that knows the joint law can say that something is no "
            f"digit. Softmax regression names a class for the same noise with a mean probability of {certainty:.2f}.",
        )
        pair = torch.cat([digits[:10], noise[:10].reshape(-1, *data.shape)])
        run.figure(
            "noise",
            image_grid(pair, columns=10, row_labels=("digits", "dealt anew")),
            "Each picture below has the pixels of the one above, in random order.",
        )
        return found, certainty

    def show(
        self,
        run: Run,
        data: Dataset,
        sizes: list[int],
        named: dict[str, list[Tensor]],
        accuracy: dict[str, list[float]],
    ) -> None:
        truth = require_labels(data.test.y, len(data.classes))
        errors = {name: (sizes, [1 - each for each in row]) for name, row in accuracy.items()}
        run.figure(
            "errors",
            curves(
                errors, x_label="training pictures", y_label="share of test pictures misnamed", log_x=True, log_y=True
            ),
            "The first four go through Bayes' rule, the others name the class directly. Gaussians need no steps.",
        )
        best = named["own covariances"][-1].argmax(1)
        run.figure(
            "confusion",
            confusion(truth.cpu(), best.cpu(), data.classes),
            "Unseen digits as named through Bayes with a Gaussian for each class.",
        )
        rows: list[dict[str, str | float]] = [
            {
                "model": name,
                "way": "joint law, Bayes" if name in self.generative() else "margin" if "svm" in name else "P(C | x)",
                f"accuracy, {sizes[0]} pictures": round(accuracy[name][0], 4),
                f"accuracy, {sizes[-1]} pictures": round(accuracy[name][-1], 4),
                "cross-entropy": "none" if "svm" in name else round(float(nll_loss(scores[-1], truth)), 3),
            }
            for name, scores in named.items()
        ]
        run.table(
            "models",
            rows,
            "Cross-entropy: mean of −log P(C | x) on unseen digits; machines with a margin give no probabilities. "
            "Independent pixels make a model far too certain.",
        )


@torch.no_grad()
def scores_of(model: Classifier | SupportVectorMachine, x: Tensor) -> Tensor:
    """Log-probabilities, where the model gives any; its largest entry names the class in any case."""
    return torch.cat([model(few) for few in x.split(500)]).log_softmax(1)


def grey(x: Tensor) -> Tensor:
    return x.flatten(1)


def black_and_white(x: Tensor) -> Tensor:
    return (x.flatten(1) > 0.5).to(x.dtype)


def small_cnn(shape: tuple[int, ...], classes: int) -> Classifier:
    """Two convolutions that pool, then a linear layer."""
    channels, height, width = shape
    return Classifier(
        nn.Sequential(
            Convolve(nn.Conv2d(channels, 16, 3, padding=1), activation=relu, pool=nn.MaxPool2d(2)),
            Convolve(nn.Conv2d(16, 32, 3, padding=1), activation=relu, pool=nn.MaxPool2d(2)),
            nn.Flatten(),
            nn.Linear(32 * (height // 4) * (width // 4), classes),
        )
    )
