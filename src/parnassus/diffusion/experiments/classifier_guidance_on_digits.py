"""Classifier guidance and classifier-free guidance of a diffusion model of digits (book sec. 13.3)."""

from dataclasses import dataclass
from functools import partial
from typing import TypeVar, cast

import torch
from sklearn.svm import SVC
from torch import Tensor
from torch.optim.lr_scheduler import OneCycleLR

from parnassus.data import Dataset, open_data
from parnassus.data.preparation.signed_pixels import signed_labelled_images
from parnassus.diffusion.chain.forward_process import Denoiser, diffuse
from parnassus.diffusion.chain.schedules import cosine_schedule
from parnassus.diffusion.guidance import class_gradient, classifier_free_guidance, classifier_guidance, clip_x0
from parnassus.diffusion.models.ddpm import DDPM
from parnassus.diffusion.networks.mlp_denoisers import ResidualMLP
from parnassus.diffusion.networks.noisy_classifier import NoisyClassifier
from parnassus.diffusion.samplers.ddim import ddim
from parnassus.diffusion.samplers.image_sampling import to_pixels
from parnassus.diffusion.samplers.time_steps import evenly_spaced_steps
from parnassus.layers.pixel_classifier import classifier_accuracy, fit_classifier
from parnassus.metrics.pixel_metrics import within_class_std
from parnassus.optim import Adam
from parnassus.report import curves, image_grid
from parnassus.setting_types import GreyImageData
from parnassus.train import Positive, Run, at_least, at_most, between, descend, no_band

covers = ("B13.3-1", "B13.3-2")
expected = {
    "unguided_accuracy": at_most(0.2, "class accuracy of unguided samples: about chance level"),
    "guided_accuracy": at_least(0.8, "class accuracy with classifier guidance at its best scale"),
    "classifier_free_accuracy": at_least(0.95, "class accuracy with classifier-free guidance at scale 2"),
    "diversity_at_best": no_band(
        "within-class standard deviation relative to real images, classifier guidance at its best scale"
    ),
    "diversity_classifier_free": no_band(
        "within-class standard deviation relative to real images, classifier-free guidance"
    ),
    "accuracy_low_noise": at_least(0.92, "test accuracy of the noise-aware classifier at noise level 0.1"),
    "accuracy_high_noise": between(0.25, 0.55, "test accuracy of the noise-aware classifier at noise level 0.9"),
}
profiles = {
    "smoke": {
        "steps": 4,
        "classifier_steps": 4,
        "width": 32,
        "num_train_timesteps": 20,
        "num_inference_steps": 3,
        "num_samples": 30,
    },
    "gpu": {
        "data": "mnist",
        "steps": 10_000,
        "classifier_steps": 3_000,
        "width": 1_024,
        "num_train_timesteps": 1_000,
        "num_samples": 2_000,
    },
}

Model = TypeVar("Model", DDPM, NoisyClassifier)
CLASSIFIER_SCALES = (0.0, 1.0, 2.0, 5.0, 10.0, 20.0)
CLASSIFIER_FREE_SCALES = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)


@dataclass(frozen=True)
class GuidedSamples:
    """Images sampled at one guidance scale, with their class accuracy and relative diversity."""

    images: Tensor
    accuracy: float
    diversity: float


@dataclass(frozen=True)
class Experiment:
    data: GreyImageData = "digits"  # images by class: name of a data set, or path of a folder
    image_size: Positive[int] | None = None  # resize the images of a folder to squares with sides of this many pixels
    steps: Positive[int] = 1_500  # gradient steps of the denoiser
    classifier_steps: Positive[int] = 300  # gradient steps of the classifier
    batch_size: Positive[int] = 128  # images per gradient step
    width: Positive[int] = 256  # hidden units of the denoiser
    classifier_channels: Positive[int] = 16  # channels of the classifier
    num_train_timesteps: Positive[int] = 200  # number of diffusion steps T
    learning_rate: Positive[float] = 2e-3  # peak learning rate of Adam, reached after 10 % of the steps
    num_inference_steps: Positive[int] = 25  # DDIM steps per sample
    num_samples: Positive[int] = 200  # number of samples per guidance scale

    def __call__(self, run: Run) -> dict[str, float]:
        data = signed_labelled_images(open_data(self.data, size=self.image_size)).to(run.device)
        classes, shape = len(data.classes), cast("tuple[int, int, int]", data.shape)
        schedule = cosine_schedule(self.num_train_timesteps)
        denoiser = ResidualMLP(shape, self.width, classes=classes)
        model = DDPM(denoiser, shape, schedule=schedule, classes=classes, dropout=0.5)
        model = self.train(run, model, data, self.steps, "denoiser")
        noisy = NoisyClassifier(shape, classes, schedule=schedule, width=self.classifier_channels)
        noisy = self.train(run, noisy, data, self.classifier_steps, "classifier")

        classifier = fit_classifier(data.train.x, data.train.y)
        low, high = compare_classifiers(run, data, noisy, classifier)
        label = torch.arange(self.num_samples, device=run.device) % classes
        real_std = within_class_std(data.train.x, data.train.y)

        def evaluate(guided: Denoiser) -> GuidedSamples:
            images = self.sample(model, guided)
            accuracy = classifier_accuracy(classifier, images, label)
            return GuidedSamples(images, accuracy, float(within_class_std(images, label) / real_std))

        by_classifier = {
            scale: evaluate(classifier_guidance(model.denoiser, schedule, noisy, label, scale))
            for scale in CLASSIFIER_SCALES
        }
        classifier_free = {
            scale: evaluate(classifier_free_guidance(model.denoiser, label, scale)) for scale in CLASSIFIER_FREE_SCALES
        }
        plot_accuracy_and_diversity(run, by_classifier, classifier_free)
        plot_samples_by_scale(run, data, by_classifier)
        best = max(by_classifier.values(), key=lambda samples: samples.accuracy)
        return {
            "unguided_accuracy": by_classifier[0.0].accuracy,
            "guided_accuracy": best.accuracy,
            "classifier_free_accuracy": classifier_free[2.0].accuracy,
            "diversity_at_best": best.diversity,
            "diversity_classifier_free": classifier_free[2.0].diversity,
            "accuracy_low_noise": low,
            "accuracy_high_noise": high,
        }

    def train(self, run: Run, model: Model, data: Dataset, steps: int, name: str) -> Model:
        model, optimizer, scheduler = run.prepare(
            model,
            partial(Adam, lr=self.learning_rate),
            partial(OneCycleLR, max_lr=self.learning_rate, total_steps=steps + 1, pct_start=0.1, cycle_momentum=False),
        )
        for step, loss in descend(run, model, optimizer, data.train.pairs(self.batch_size, steps)):
            scheduler.step()
            run.log(step, **{f"loss/{name}": loss})
        return model.eval()

    def sample(self, model: DDPM, guided: Denoiser) -> Tensor:
        """DDIM samples with a guided denoiser; the initial noise is the same for every scale."""
        generator = torch.Generator().manual_seed(0)
        start = torch.randn(self.num_samples, *model.shape, generator=generator).to(next(model.parameters()).device)
        grid = evenly_spaced_steps(self.num_train_timesteps, min(self.num_inference_steps, self.num_train_timesteps))
        with torch.no_grad():
            return ddim(clip_x0(guided, model.schedule), model.schedule, start, grid=grid)


def compare_classifiers(run: Run, data: Dataset, noisy: NoisyClassifier, clean_classifier: SVC) -> tuple[float, float]:
    """Accuracy and gradient norm at each noise level, and the accuracy of a classifier of clean images."""
    assert data.test.y is not None
    x, y = data.test.x[:500], data.test.y[:500]
    schedule = noisy.schedule
    steps = torch.linspace(0, len(schedule) - 1, 25).long()
    level = (1 - schedule.alpha_bar[steps]).sqrt()
    accuracies, clean_accuracies, norms = [], [], []
    for step in steps.tolist():
        t = torch.full((len(x),), step, device=x.device)
        state = diffuse(schedule, x, t, torch.randn_like(x))
        with torch.no_grad():
            accuracies.append(float((noisy(state, t).argmax(1) == y).double().mean()))
        clean_accuracies.append(classifier_accuracy(clean_classifier, state, y))
        norms.append(float(class_gradient(noisy, state, t, y).flatten(1).norm(dim=1).mean()))
    lines: dict[str, tuple[object, object]] = {
        "trained on noisy images": (level, accuracies),
        "trained on clean images": (level, clean_accuracies),
    }
    run.figure(
        "classifiers",
        curves(lines, x_label="noise level √(1 − ᾱ_t)", y_label="test accuracy"),
        "Guidance needs a classifier that is accurate at every noise level. The classifier trained on clean images is "
        "better at low noise and degrades sooner; at pure noise both are at chance level.",
    )
    run.figure(
        "classifier gradient",
        curves({"‖∇ log p(y|x_t)‖": (level, norms)}, x_label="noise level √(1 − ᾱ_t)", y_label="mean norm", log_y=True),
        "Mean norm of the classifier gradient that guides the sampler, at each noise level.",
    )
    return accuracies[int((level - 0.1).abs().argmin())], accuracies[int((level - 0.9).abs().argmin())]


def plot_accuracy_and_diversity(
    run: Run, by_classifier: dict[float, GuidedSamples], classifier_free: dict[float, GuidedSamples]
) -> None:
    """Class accuracy against diversity, one line for each kind of guidance."""
    kinds = {"classifier guidance": by_classifier, "classifier-free guidance": classifier_free}
    lines: dict[str, tuple[object, object]] = {
        name: ([each.diversity for each in kind.values()], [each.accuracy for each in kind.values()])
        for name, kind in kinds.items()
    }
    run.figure(
        "accuracy and diversity",
        curves(lines, x_label="within-class standard deviation, real images = 1", y_label="class accuracy"),
        "The trade-off between class accuracy and diversity of both kinds of guidance, as the scale grows from 0.",
    )
    rows: list[dict[str, str | float]] = [
        {"guidance": name, "scale": scale, "class accuracy": each.accuracy, "diversity": each.diversity}
        for name, kind in kinds.items()
        for scale, each in kind.items()
    ]
    run.table("guidance", rows)


def plot_samples_by_scale(run: Run, data: Dataset, by_classifier: dict[float, GuidedSamples]) -> None:
    columns = len(data.classes)
    figure = image_grid(
        to_pixels(torch.cat([samples.images[:columns] for samples in by_classifier.values()])),
        columns=columns,
        titles=data.classes,
        row_labels=[f"γ = {scale:g}" for scale in by_classifier],
    )
    run.figure(
        "samples by guidance scale",
        figure,
        "Samples from the same initial noise with classifier guidance at each scale; at 0 the class has no effect.",
    )
