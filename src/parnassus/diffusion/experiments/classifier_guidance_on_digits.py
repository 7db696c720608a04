"""A classifier that knows noise steers a model that knows no classes (book sec. 13.3)."""

from dataclasses import dataclass
from functools import partial
from typing import TypeVar, cast

import torch
from sklearn.svm import SVC
from torch import Tensor
from torch.optim.lr_scheduler import OneCycleLR

from parnassus.data import Dataset, Split, open_data
from parnassus.diffusion.ddpm import DDPM
from parnassus.diffusion.denoisers import ResidualMLP
from parnassus.diffusion.experiments.diffusion_on_digits import accuracy, centred, classifier, variety, visible
from parnassus.diffusion.guidance import class_gradient, classifier_guided, clipped, guided
from parnassus.diffusion.noisy_classifier import NoisyClassifier
from parnassus.diffusion.process import Denoiser, diffuse
from parnassus.diffusion.samplers import ddim, even_grid
from parnassus.diffusion.schedules import cosine_schedule
from parnassus.optim import Adam
from parnassus.report import curves, image_grid
from parnassus.train import Run, at_least, at_most, between, descend, reported

covers = ("B13.3-1", "B13.3-2")
expected = {
    "unguided_accuracy": at_most(0.2, "share of samples of the wished class without guidance: about chance"),
    "guided_accuracy": at_least(0.8, "the same, led by the classifier at the scale that leads best"),
    "classifier_free_accuracy": at_least(0.95, "the same by classifier-free guidance with scale 2"),
    "diversity_at_best": reported("spread within a class as a share of real images' spread, at that scale"),
    "diversity_classifier_free": reported("the same by classifier-free guidance with scale 2"),
    "accuracy_low_noise": at_least(0.92, "share of test images the noisy classifier names with a tenth of the noise"),
    "accuracy_high_noise": between(0.25, 0.55, "the same with nine tenths of the noise"),
}
profiles = {
    "smoke": {"steps": 4, "classifier_steps": 4, "width": 32, "chain": 20, "draws": 3, "count": 30},
    "gpu": {
        "data": "mnist",
        "steps": 10_000,
        "classifier_steps": 3_000,
        "width": 1_024,
        "chain": 1_000,
        "count": 2_000,
    },
}

Model = TypeVar("Model", DDPM, NoisyClassifier)
SCALES = (0.0, 1.0, 2.0, 5.0, 10.0, 20.0)
FREE = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)


@dataclass(frozen=True)
class Experiment:
    data: str = "digits"  # a set of images by class: digits, mnist_mini, mnist, fashion_mnist, or a folder of yours
    steps: int = 1_500  # gradient steps of the denoiser
    classifier_steps: int = 300  # gradient steps of the classifier
    batch: int = 128  # images a step
    width: int = 256  # hidden units of the denoiser
    channels: int = 16  # of the classifier
    chain: int = 200  # diffusion steps T
    lr: float = 2e-3  # Adam's largest learning rate, reached after a tenth of the steps
    draws: int = 25  # DDIM steps that draw a sample
    count: int = 200  # samples at each scale

    def __call__(self, run: Run) -> dict[str, float]:
        data = centred(open_data(self.data)).to(run.device)
        classes, shape = len(data.classes), cast("tuple[int, int, int]", data.shape)
        schedule = cosine_schedule(self.chain)
        denoiser = ResidualMLP(shape, self.width, classes=classes)
        model = DDPM(denoiser, shape, schedule=schedule, classes=classes, dropout=0.5)  # half its time without classes
        model = self.train(run, model, data, self.steps, "denoiser")
        noisy = NoisyClassifier(shape, classes, schedule=schedule, width=self.channels)
        noisy = self.train(run, noisy, data, self.classifier_steps, "classifier")

        judge = classifier(data.train)
        low, high = show_robustness(run, data, noisy, judge)
        wished = torch.arange(self.count, device=run.device) % classes

        def judged(lead: Denoiser) -> tuple[Tensor, float, float]:
            samples = self.draw(model, lead)
            right = accuracy(judge, Split(samples, wished))
            return samples, right, float(variety(samples, wished) / variety(data.train.x, data.train.y))

        by_classifier = {
            scale: judged(classifier_guided(model.denoiser, schedule, noisy, wished, scale)) for scale in SCALES
        }
        free = {scale: judged(guided(model.denoiser, wished, scale)) for scale in FREE}
        show_trade(run, by_classifier, free)
        show_images(run, data, {scale: found[0] for scale, found in by_classifier.items()})
        best = max(SCALES, key=lambda scale: by_classifier[scale][1])
        return {
            "unguided_accuracy": by_classifier[0.0][1],
            "guided_accuracy": by_classifier[best][1],
            "classifier_free_accuracy": free[2.0][1],
            "diversity_at_best": by_classifier[best][2],
            "diversity_classifier_free": free[2.0][2],
            "accuracy_low_noise": low,
            "accuracy_high_noise": high,
        }

    def train(self, run: Run, model: Model, data: Dataset, steps: int, name: str) -> Model:
        model, optimizer = run.prepare(model, partial(Adam, lr=self.lr))
        warming = OneCycleLR(optimizer, self.lr, total_steps=steps + 1, pct_start=0.1, cycle_momentum=False)
        run.keep(f"warming the {name}", warming)
        for step, loss in descend(run, model, optimizer, data.train.pairs(self.batch, steps)):
            warming.step()
            run.log(step, **{f"loss/{name}": loss})
        return model.eval()

    def draw(self, model: DDPM, lead: Denoiser) -> Tensor:
        """From the same noise at every scale, so that the scale is all that differs."""
        source = torch.Generator().manual_seed(0)
        start = torch.randn(self.count, *model.shape, generator=source).to(next(model.parameters()).device)
        grid = even_grid(self.chain, min(self.draws, self.chain))
        with torch.no_grad():
            return ddim(clipped(lead, model.schedule), model.schedule, start, grid=grid)


def show_robustness(run: Run, data: Dataset, noisy: NoisyClassifier, judge: SVC) -> tuple[float, float]:
    """Accuracy and gradient at each noise level, beside the accuracy of a judge that has seen clean images only."""
    assert data.test.y is not None
    x, y = data.test.x[:500], data.test.y[:500]
    schedule = noisy.schedule
    steps = torch.linspace(0, len(schedule) - 1, 25).long()
    level = (1 - schedule.alpha_bar[steps]).sqrt()
    right, clean_only, norms = [], [], []
    for step in steps.tolist():
        t = torch.full((len(x),), step, device=x.device)
        state = diffuse(schedule, x, t, torch.randn_like(x))
        with torch.no_grad():
            right.append(float((noisy(state, t).argmax(1) == y).double().mean()))
        clean_only.append(accuracy(judge, Split(state, y)))
        norms.append(float(class_gradient(noisy, state, t, y).flatten(1).norm(dim=1).mean()))
    lines: dict[str, tuple[object, object]] = {
        "taught with noise": (level, right),
        "taught with clean images": (level, clean_only),
    }
    run.figure(
        "robust",
        curves(lines, x_label="noise level √(1 − ᾱ_t)", y_label="accuracy on unseen images"),
        "The classifier must be good at every noise level. The judge, which was taught with clean images, "
        "is the better one where there is little noise and falls sooner; in pure noise nobody can be right.",
    )
    run.figure(
        "gradient",
        curves(
            {"‖∇ log p(y|x_t)‖": (level, norms)}, x_label="noise level √(1 − ᾱ_t)", y_label="mean length", log_y=True
        ),
        "What it has to say to the sampler: the mean length of its gradient at each noise level.",
    )
    return right[int((level - 0.1).abs().argmin())], right[int((level - 0.9).abs().argmin())]


def show_trade(
    run: Run,
    by_classifier: dict[float, tuple[Tensor, float, float]],
    free: dict[float, tuple[Tensor, float, float]],
) -> None:
    """Accuracy against diversity, one line for each kind of guidance."""
    kinds = {"by a classifier": by_classifier, "classifier-free": free}
    lines: dict[str, tuple[object, object]] = {
        name: ([found[2] for found in kind.values()], [found[1] for found in kind.values()])
        for name, kind in kinds.items()
    }
    run.figure(
        "trade",
        curves(lines, x_label="diversity: spread within a class, real images = 1", y_label="class accuracy"),
        "What each kind of guidance pays in diversity for accuracy, as its scale grows from 0.",
    )
    rows: list[dict[str, str | float]] = [
        {"guidance": name, "scale": scale, "class accuracy": found[1], "diversity": found[2]}
        for name, kind in kinds.items()
        for scale, found in kind.items()
    ]
    run.table("trade", rows)


def show_images(run: Run, data: Dataset, sets: dict[float, Tensor]) -> None:
    columns = len(data.classes)
    figure = image_grid(
        visible(torch.cat([samples[:columns] for samples in sets.values()])),
        columns=columns,
        titles=data.classes,
        row_labels=[f"γ = {scale:g}" for scale in sets],
    )
    run.figure("by_scale", figure, "From the same noise, led by the classifier at each scale; at 0 it is not heard.")
