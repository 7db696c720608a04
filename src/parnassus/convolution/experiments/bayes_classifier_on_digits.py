"""Generative and discriminative classifiers of digits against training set size (Diehl sec. 5.2)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.functional import nll_loss
from torch.optim import Adam

from parnassus.convolution.lenet import ConvBlock
from parnassus.data import Dataset, Split, open_labelled_images
from parnassus.data.splits import first_of_each_class
from parnassus.layers import (
    Classifier,
    SupportVectorMachine,
    check_labels,
    dense_classifier,
    gaussian_svm,
    linear_svm,
    relu,
)
from parnassus.layers.commands.image_classifiers import EvaluateImages as Evaluate  # noqa: F401 - declares `parnassus evaluate`
from parnassus.layers.commands.image_classifiers import PredictImages as Predict  # noqa: F401 - declares `parnassus predict`
from parnassus.probability import (
    FitClassConditionals,
    GenerativeClassifier,
    fit_bernoulli_naive_bayes,
    fit_gaussian_naive_bayes,
    fit_linear_discriminant,
    fit_quadratic_discriminant,
)
from parnassus.report import confusion_matrix, curves, histograms, image_grid
from parnassus.setting_types import GreyImageData
from parnassus.train import Positive, Run, UnitInterval, at_least, descend, no_band

covers = ("D5.2.1",)
expected = {
    "quadratic_discriminant": at_least(0.97, "test accuracy of Bayes' rule with a Gaussian per class"),
    "linear_discriminant": at_least(0.92, "test accuracy of Bayes' rule with Gaussians of a shared covariance"),
    "gaussian_naive_bayes": at_least(0.85, "test accuracy of naive Bayes with Gaussian pixels"),
    "bernoulli_naive_bayes": at_least(0.82, "test accuracy of naive Bayes with binary pixels"),
    "softmax_regression": at_least(0.9, "test accuracy of a linear softmax classifier"),
    "small_cnn": at_least(0.95, "test accuracy of a CNN with two convolutions"),
    "linear_svm": at_least(0.92, "test accuracy of a linear support vector machine"),
    "gaussian_svm": at_least(0.95, "test accuracy of a support vector machine on random Fourier features"),
    "generative_gain_few": no_band("accuracy of the quadratic discriminant minus softmax regression, fewest examples"),
    "noise_detected": at_least(0.99, "fraction of noise images less likely than 99 % of the test images"),
    "softmax_confidence_on_noise": no_band("mean largest probability of softmax regression on noise images"),
}
profiles = {
    "smoke": {"steps": 5, "num_features": 50, "examples_per_class": (20,)},
    "gpu": {
        "data": "mnist",
        "steps": 6_000,
        "batch_size": 256,
        "num_features": 8_000,
        "examples_per_class": (20, 100, 500, 2_000),
    },
}


@dataclass(frozen=True)
class Experiment:
    data: GreyImageData = "digits"  # images by class: name of a data set, or path of a folder
    image_size: Positive[int] | None = None  # resize the images of a folder to squares with sides of this many pixels
    examples_per_class: tuple[Positive[int], ...] = (5, 10, 20, 50)  # smaller training sets, in examples per class
    steps: Positive[int] = 400  # gradient steps of each discriminative model
    batch_size: Positive[int] = 64  # images per gradient step
    learning_rate: Positive[float] = 5e-3  # learning rate of Adam
    shrinkage: UnitInterval = 0.2  # shrinkage of covariances towards multiples of the identity
    num_features: Positive[int] = 1_000  # random Fourier features of the Gaussian support vector machine

    def model(self, shape: Sequence[int], classes: Sequence[str]) -> Classifier:
        """The CNN, whose weights after training on all images are saved."""
        return small_cnn(shape, len(classes))

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_labelled_images(self.data, self.image_size).to(run.device)
        labels = check_labels(data.train.y, len(data.classes))
        sizes = list(self.examples_per_class)
        parts = [Split(data.train.x[rows], labels[rows]) for rows in (first_of_each_class(labels, n) for n in sizes)]
        parts.append(data.train)
        scores_by_model: dict[str, list[Tensor]] = {}  # of the test images, for each training set size
        for part in parts:
            for name, scores in self.generative_log_posteriors(part, data).items():
                scores_by_model.setdefault(name, []).append(scores)
            discriminative = {
                name: self.train(run, name, model, part, data) for name, model in self.discriminative(run, data).items()
            }
            for name, each in discriminative.items():
                scores_by_model.setdefault(name, []).append(compute_scores(each, data.test.x))
        run.publish(discriminative["small cnn"])
        truth = check_labels(data.test.y, len(data.classes))
        accuracy = {
            name: [float((scores.argmax(1) == truth).float().mean()) for scores in row]
            for name, row in scores_by_model.items()
        }
        self.plot_results(run, data, [len(part) for part in parts], scores_by_model, accuracy)
        detected, confidence = self.evaluate_noise(run, data, discriminative["softmax regression"])
        last = {name.replace(" ", "_"): row[-1] for name, row in accuracy.items()}
        return {
            **last,
            "generative_gain_few": accuracy["quadratic discriminant"][0] - accuracy["softmax regression"][0],
            "noise_detected": detected,
            "softmax_confidence_on_noise": confidence,
        }

    def generative(self) -> dict[str, FitClassConditionals]:
        return {
            "quadratic discriminant": partial(fit_quadratic_discriminant, shrinkage=self.shrinkage),
            "linear discriminant": partial(fit_linear_discriminant, shrinkage=self.shrinkage),
            "gaussian naive bayes": fit_gaussian_naive_bayes,
            "bernoulli naive bayes": fit_bernoulli_naive_bayes,
        }

    def generative_log_posteriors(self, part: Split, data: Dataset) -> dict[str, Tensor]:
        """Log-posteriors of the test images: fit p(x | C), then apply Bayes' rule."""
        labels, classes = check_labels(part.y, len(data.classes)), len(data.classes)
        posteriors = {}
        for name, model in self.generative().items():
            view = binarise if name == "bernoulli naive bayes" else flatten_images
            fitted = GenerativeClassifier.fit(view(part.x), labels, classes=classes, model=model)
            posteriors[name] = torch.cat([fitted.log_posterior(view(batch)) for batch in data.test.x.split(500)])
        return posteriors

    def discriminative(self, run: Run, data: Dataset) -> dict[str, Classifier | SupportVectorMachine]:
        """Discriminative models of P(C | x), and support vector machines."""
        inputs, classes = data.train.x[0].numel(), len(data.classes)
        gamma = 1 / (inputs * float(data.train.x.var()))
        return {
            "softmax regression": dense_classifier(inputs, classes, hidden=()),
            "small cnn": run.build(self.model, shape=data.shape, classes=data.classes),
            "linear svm": linear_svm(inputs, classes),
            "gaussian svm": gaussian_svm(inputs, classes, num_features=self.num_features, gamma=gamma),
        }

    def train(
        self, run: Run, name: str, model: Classifier | SupportVectorMachine, part: Split, data: Dataset
    ) -> Classifier | SupportVectorMachine:
        model, optimizer = run.prepare(model, partial(Adam, lr=self.learning_rate))
        for step, loss in descend(run, model, optimizer, part.pairs(self.batch_size, self.steps)):
            if part is data.train:
                run.log(step, **{f"loss/{name}": loss})
        return model

    def evaluate_noise(
        self, run: Run, data: Dataset, softmax: Classifier | SupportVectorMachine
    ) -> tuple[float, float]:
        """Images with permuted pixels: unlikely under the generative model, but confidently classified by softmax."""
        labels, classes = check_labels(data.train.y, len(data.classes)), len(data.classes)
        model = GenerativeClassifier.fit(
            flatten_images(data.train.x), labels, classes=classes, model=self.generative()["quadratic discriminant"]
        )
        digits = data.test.x[:500]
        order = torch.rand(len(digits), digits[0].numel(), device=run.device).argsort(1)
        noise = flatten_images(digits).gather(1, order)
        digit_log_prob, noise_log_prob = model.log_prob(flatten_images(digits)), model.log_prob(noise)
        with torch.no_grad():
            confidence = float(softmax(noise.reshape(digits.shape)).softmax(1).amax(1).mean())
        detected = float((noise_log_prob < digit_log_prob.quantile(0.01)).float().mean())
        run.figure(
            "log-likelihood",
            histograms({"test images": digit_log_prob, "permuted pixels": noise_log_prob}, x_label="log p(x) (nats)"),
            "The evidence p(x) under the Gaussian classes. A generative model can detect that an image is of no class; "
            f"softmax regression classifies the same noise with a mean confidence of {confidence:.2f}.",
        )
        pair = torch.cat([digits[:10], noise[:10].reshape(-1, *data.shape)])
        run.figure(
            "permuted images",
            image_grid(pair, columns=10, row_labels=("images", "permuted")),
            "Each image of the lower row has the pixels of the one above, in random order.",
        )
        return detected, confidence

    def plot_results(
        self,
        run: Run,
        data: Dataset,
        sizes: list[int],
        scores_by_model: dict[str, list[Tensor]],
        accuracy: dict[str, list[float]],
    ) -> None:
        truth = check_labels(data.test.y, len(data.classes))
        errors = {name: (sizes, [1 - each for each in row]) for name, row in accuracy.items()}
        run.figure(
            "test error",
            curves(errors, x_label="number of training images", y_label="test error rate", log_x=True, log_y=True),
            "The first four are generative and use Bayes' rule, the others are discriminative.",
        )
        best = scores_by_model["quadratic discriminant"][-1].argmax(1)
        run.figure(
            "confusion matrix",
            confusion_matrix(truth.cpu(), best.cpu(), data.classes),
            "True and predicted classes of test images under the quadratic discriminant.",
        )
        rows: list[dict[str, str | float]] = [
            {
                "model": name,
                "type": "generative" if name in self.generative() else "margin" if "svm" in name else "P(C | x)",
                f"accuracy, {sizes[0]} images": round(accuracy[name][0], 4),
                f"accuracy, {sizes[-1]} images": round(accuracy[name][-1], 4),
                "cross-entropy": "none" if "svm" in name else round(float(nll_loss(scores[-1], truth)), 3),
            }
            for name, scores in scores_by_model.items()
        ]
        run.table(
            "models",
            rows,
            "Cross-entropy: mean of −log P(C | x) on test images; support vector machines give no probabilities. "
            "Models with independent pixels are overconfident.",
        )


@torch.no_grad()
def compute_scores(model: Classifier | SupportVectorMachine, x: Tensor) -> Tensor:
    """Log-softmax of the outputs; its argmax is the predicted class."""
    return torch.cat([model(batch) for batch in x.split(500)]).log_softmax(1)


def flatten_images(x: Tensor) -> Tensor:
    return x.flatten(1)


def binarise(x: Tensor) -> Tensor:
    return (x.flatten(1) > 0.5).to(x.dtype)


def small_cnn(shape: Sequence[int], classes: int) -> Classifier:
    """Two convolutions with pooling, then a linear layer."""
    channels, height, width = shape
    return Classifier(
        nn.Sequential(
            ConvBlock(nn.Conv2d(channels, 16, 3, padding=1), activation=relu, pool=nn.MaxPool2d(2)),
            ConvBlock(nn.Conv2d(16, 32, 3, padding=1), activation=relu, pool=nn.MaxPool2d(2)),
            nn.Flatten(),
            nn.Linear(32 * (height // 4) * (width // 4), classes),
        )
    )
