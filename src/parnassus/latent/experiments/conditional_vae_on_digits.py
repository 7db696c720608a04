"""Conditional VAE of digits: samples of a requested class, separated from style (book secs. 5.2, 6.3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.optim import Adam

from parnassus.data import DataError, Dataset, open_grey_images
from parnassus.latent.autoencoders.dense_networks import mlp_decoder, mlp_encoder
from parnassus.latent.latent_space.quality_metrics import neighbour_accuracy
from parnassus.latent.variational.conditional_vae import ConditionalVAE
from parnassus.latent.variational.decoders import BernoulliDecoder
from parnassus.layers.pixel_classifier import classifier_accuracy, fit_classifier
from parnassus.report import image_grid
from parnassus.setting_types import GreyImageData
from parnassus.train import NonNegative, Positive, Run, at_least, at_most, descend, no_band

covers = ("B5.2-4", "B6.3-5")
expected = {
    "class_accuracy": at_least(
        0.97, "fraction of samples that a classifier of real images assigns to the requested class"
    ),
    "classifier_accuracy": no_band("accuracy of the classifier on real test images"),
    "bayes_accuracy": at_least(0.85, "accuracy of classifying test images by p(x|y) and Bayes' rule"),
    "code_neighbour_accuracy": at_most(
        0.4, "accuracy of predicting the class of a code from its nearest codes; 0.1 is chance"
    ),
    "negative_elbo": no_band("distortion + rate of a test image given its class, nats"),
    "rate": no_band("rate of the code given the class, nats"),
}
profiles = {
    "smoke": {"steps": 10, "width": 32},
    "gpu": {
        "data": "mnist",
        "steps": 15_000,
        "batch_size": 256,
        "width": 1_024,
        "latent_dim": 16,
        "learning_rate": 5e-4,
    },
}


@dataclass(frozen=True)
class Experiment:
    data: GreyImageData = "digits"  # images by class: name of a data set, or path of a folder
    image_size: Positive[int] | None = None  # height and width to which images of a folder are resized
    steps: Positive[int] = 1_500  # gradient steps
    batch_size: Positive[int] = 128  # images per gradient step
    latent_dim: Positive[int] = 6  # dimension of the code
    width: Positive[int] = 256  # hidden units
    learning_rate: Positive[float] = 2e-3  # Adam's learning rate

    def model(self, shape: Sequence[int], classes: int) -> ConditionalVAE:
        channels, height, width = shape
        encoder = mlp_encoder((channels + classes, height, width), 2 * self.latent_dim, width=self.width)
        decoder = BernoulliDecoder(mlp_decoder(self.latent_dim + classes, shape, width=self.width))
        return ConditionalVAE(encoder, decoder, self.latent_dim, classes)

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_grey_images(self.data, self.image_size).to(run.device)
        if not data.classes or data.test.y is None:
            raise DataError(f"{data.name} must consist of images by class; its images have no labels")
        model = run.build(self.model, shape=data.shape, classes=len(data.classes))
        model, optimizer = run.prepare(model, partial(Adam, lr=self.learning_rate))
        batches = data.train.pairs(self.batch_size, self.steps).map(binarise)
        for step, loss in descend(run, model, optimizer, batches):
            run.log(step, loss=loss)

        x, label = binarise((data.test.x[:1_000], data.test.y[:1_000]))
        with torch.no_grad():
            terms = model.condition_on(label).terms(x)
            codes = model.condition_on(label).encode(x)
            predicted = model.log_prob_by_class(x[:300], samples=20).argmax(1)
        requested = torch.arange(50 * len(data.classes), device=run.device) % len(data.classes)
        classifier = fit_classifier(data.train.x, data.train.y)
        self.plot_samples(run, model, data, (x, label))
        return {
            "class_accuracy": classifier_accuracy(classifier, sample_means(model, requested), requested),
            "classifier_accuracy": classifier_accuracy(classifier, data.test.x, data.test.y),
            "bayes_accuracy": float((predicted == label[:300]).float().mean()),
            "code_neighbour_accuracy": float(neighbour_accuracy(codes, label, neighbours=min(10, len(codes) - 1))),
            "negative_elbo": float(terms.negative_elbo.mean()),
            "rate": float(terms.rate.mean()),
        }

    @torch.no_grad()
    def plot_samples(self, run: Run, model: ConditionalVAE, data: Dataset, test: tuple[Tensor, Tensor]) -> None:
        classes = len(data.classes)
        all_classes = torch.arange(classes, device=run.device)
        styles = torch.randn(8, model.latent_dim, device=run.device)
        images = torch.cat([model.decode(style.expand(classes, -1), all_classes) for style in styles])
        run.figure("samples", image_grid(images, columns=classes, titles=data.classes), SAMPLES)
        x, y = test[0][:8], test[1][:8]
        codes = model.condition_on(y).encode(x)
        rows = [
            torch.cat([image[None], model.decode(code.expand(classes, -1), all_classes)])
            for image, code in zip(data.test.x[:8], codes, strict=True)
        ]
        run.figure(
            "class_changes",
            image_grid(torch.cat(rows), columns=classes + 1, titles=["image", *data.classes]),
            CLASS_CHANGES,
        )


@dataclass(frozen=True)
class Sample:
    label: NonNegative[int] | None = None  # class of the samples; all classes in turn by default
    num_samples: Positive[int] = 100  # number of samples

    def __call__(self, model: ConditionalVAE) -> Tensor:
        if self.label is not None and not 0 <= self.label < model.classes:
            raise DataError(f"label must be between 0 and {model.classes - 1}; got label={self.label}")
        in_turn = torch.arange(self.num_samples, device=next(model.parameters()).device) % model.classes
        return sample_means(model, in_turn if self.label is None else torch.full_like(in_turn, self.label))


SAMPLES = "Samples, one class per column and one code per row: the code determines what the classes have in common."
CLASS_CHANGES = "The code of a test image (left), decoded with every class: the style is preserved."


def binarise(pair: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Binary images whose pixels are white with a probability equal to the grey value, and their labels."""
    return torch.bernoulli(pair[0]), pair[1]


@torch.no_grad()
def sample_means(model: ConditionalVAE, label: Tensor) -> Tensor:
    """The mean of p(x|z, y) for one code of the prior per label."""
    return model.decode(torch.randn(len(label), model.latent_dim, device=label.device), label)
