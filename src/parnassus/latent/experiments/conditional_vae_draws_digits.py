"""A conditional VAE draws the digit you ask for, in any hand (book secs. 5.2, 6.3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from sklearn.svm import SVC
from torch import Tensor
from torch.optim import Adam

from parnassus.data import DataError, Dataset, Split, open_data
from parnassus.latent.conditional_vae import ConditionalVAE
from parnassus.latent.decoders import BernoulliDecoder
from parnassus.latent.dense import flat_decoder, flat_encoder
from parnassus.latent.maps import neighbour_accuracy
from parnassus.report import image_grid
from parnassus.train import Run, at_least, at_most, descend, reported

covers = ("B5.2-4", "B6.3-5")
expected = {
    "class_accuracy": at_least(
        0.97, "share of drawn images in which a classifier of real images sees the wished class"
    ),
    "judge_accuracy": reported("the same classifier on real unseen images"),
    "bayes_accuracy": at_least(0.85, "share of unseen images that p(x|y) and Bayes' rule name rightly"),
    "class_left_in_code": at_most(0.4, "share of codes whose nearest codes are of their own class; 0.1 is none left"),
    "negative_elbo": reported("distortion + rate of an unseen image whose class is told, nats"),
    "rate": reported("nats that the code says beside the class"),
}
profiles = {
    "smoke": {"steps": 10, "width": 32},
    "gpu": {"data": "mnist", "steps": 15_000, "batch": 256, "width": 1_024, "latent": 16, "lr": 5e-4},
}


@dataclass(frozen=True)
class Experiment:
    data: str = "digits"  # images by class: digits, mnist_mini, mnist, fashion_mnist, or a folder of yours
    size: int | None = None  # resize the pictures of a folder to this height and width
    steps: int = 1_500  # gradient steps
    batch: int = 128  # images a step
    latent: int = 6  # numbers in a code
    width: int = 256  # hidden units
    lr: float = 2e-3  # Adam's learning rate

    def model(self, shape: Sequence[int], classes: int) -> ConditionalVAE:
        channels, height, width = shape
        encoder = flat_encoder((channels + classes, height, width), 2 * self.latent, width=self.width)
        decoder = BernoulliDecoder(flat_decoder(self.latent + classes, shape, width=self.width))
        return ConditionalVAE(encoder, decoder, self.latent, classes)

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_data(self.data, size=None if self.size is None else (self.size, self.size)).to(run.device)
        if not data.classes or len(data.shape) != 3 or data.test.y is None:
            raise DataError(f"{data.name} must be images by class; its examples have shape {data.shape}")
        model = run.build(self.model, shape=data.shape, classes=len(data.classes))
        model, optimizer = run.prepare(model, partial(Adam, lr=self.lr))
        batches = data.train.pairs(self.batch, self.steps).map(toss)
        for step, loss in descend(run, model, optimizer, batches):
            run.log(step, loss=loss)

        unseen = toss((data.test.x[:1_000], data.test.y[:1_000]))
        with torch.no_grad():
            terms = model.given(unseen[1]).terms(unseen[0])
            codes = model.given(unseen[1]).encode(unseen[0])
            named = model.log_prob_by_class(unseen[0][:300], samples=20).argmax(1)
        wished = torch.arange(50 * len(data.classes), device=run.device) % len(data.classes)
        judge = classifier(data.train)
        self.show(run, model, data, unseen)
        return {
            "class_accuracy": score(judge, draw(model, wished), wished),
            "judge_accuracy": score(judge, data.test.x, data.test.y),
            "bayes_accuracy": float((named == unseen[1][:300]).float().mean()),
            "class_left_in_code": float(neighbour_accuracy(codes, unseen[1], neighbours=min(10, len(codes) - 1))),
            "negative_elbo": float(terms.negative_elbo.mean()),
            "rate": float(terms.rate.mean()),
        }

    @torch.no_grad()
    def show(self, run: Run, model: ConditionalVAE, data: Dataset, unseen: tuple[Tensor, Tensor]) -> None:
        classes = len(data.classes)
        every = torch.arange(classes, device=run.device)
        hands = torch.randn(8, model.latent, device=run.device)
        images = torch.cat([model.decode(hand.expand(classes, -1), every) for hand in hands])
        run.figure("hands", image_grid(images, columns=classes, titles=data.classes), HANDS)
        x, y = unseen[0][:8], unseen[1][:8]
        codes = model.given(y).encode(x)
        styles = [
            torch.cat([image[None], model.decode(code.expand(classes, -1), every)])
            for image, code in zip(data.test.x[:8], codes, strict=True)
        ]
        run.figure(
            "styles", image_grid(torch.cat(styles), columns=classes + 1, titles=["image", *data.classes]), STYLES
        )


@dataclass(frozen=True)
class Sample:
    label: int | None = None  # the class to draw; all in turn unless told
    count: int = 100  # how many

    def __call__(self, model: ConditionalVAE) -> Tensor:
        if self.label is not None and not 0 <= self.label < model.classes:
            raise DataError(f"the model knows classes 0 to {model.classes - 1}; got label={self.label}")
        every = torch.arange(self.count, device=next(model.parameters()).device) % model.classes
        return draw(model, every if self.label is None else torch.full_like(every, self.label))


HANDS = "New images: one class a column, one code a row. The class says what to draw, the code in which hand."
STYLES = "The code of an unseen image (left) with the class changed: the hand stays."


def toss(pair: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Every pixel a coin that shows white with a chance equal to its grey value."""
    return torch.bernoulli(pair[0]), pair[1]


@torch.no_grad()
def draw(model: ConditionalVAE, label: Tensor) -> Tensor:
    """One new image of each of these classes, as means."""
    return model.decode(torch.randn(len(label), model.latent, device=label.device), label)


def classifier(split: Split) -> SVC:
    """A support vector machine on raw pixels; 5,000 images teach it enough."""
    few = split.take(5_000)
    assert few.y is not None
    return SVC(C=10.0).fit(few.x.flatten(1).cpu().numpy(), few.y.cpu().numpy())


def score(judge: SVC, x: Tensor, label: Tensor) -> float:
    return float(judge.score(x.flatten(1).cpu().numpy(), label.cpu().numpy()))
