"""Class-conditional diffusion of handwritten digits with classifier-free guidance (book secs. 13.2, 13.3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, cast

import torch
from torch import Tensor

from parnassus.data import Dataset, open_data
from parnassus.data.preparation.signed_pixels import signed_labelled_images
from parnassus.diffusion.chain.forward_process import noising_states
from parnassus.diffusion.chain.objectives import error_by_step
from parnassus.diffusion.chain.schedules import cosine_schedule
from parnassus.diffusion.commands.averaged_training import train_with_averaging
from parnassus.diffusion.commands.sample_images import ImageSample
from parnassus.diffusion.figures import plot_nearest, plot_samples
from parnassus.diffusion.guidance import clip_x0
from parnassus.diffusion.models.ddpm import DDPM
from parnassus.diffusion.networks.mlp_denoisers import ResidualMLP
from parnassus.diffusion.samplers.ddim import ddim_path
from parnassus.diffusion.samplers.image_sampling import ddim_images, to_pixels
from parnassus.diffusion.samplers.time_steps import evenly_spaced_steps
from parnassus.layers.pixel_classifier import classifier_accuracy, fit_classifier
from parnassus.metrics.feature_network import FeatureNetwork
from parnassus.metrics.frechet import frechet_distance
from parnassus.metrics.pixel_metrics import nearest_distance, within_class_std
from parnassus.report import curves, image_grid
from parnassus.setting_types import GreyImageData
from parnassus.train import AtLeast, NonNegative, Positive, Run, at_least, no_band
from parnassus.train.sample_predict_evaluate import ResultRow
from parnassus.train.trained import TrainedRun

covers = ("B13.2-1", "B13.2.4-6", "B13.2.4-7", "B13.2.4-8", "B13.2.4-9", "B13.2.5-2", "B13.3-2")
expected = {
    "class_accuracy": at_least(
        0.95, "fraction of guided samples that a classifier of real images assigns to the requested class"
    ),
    "trained_on_samples_accuracy": at_least(0.85, "test accuracy of a classifier trained on samples only"),
    "real_accuracy": no_band("test accuracy of a classifier trained on real images"),
    "novelty": at_least(
        0.5, "median distance of a sample to the training images relative to that of a test image; 0 for copies"
    ),
}
profiles = {
    "smoke": {"steps": 10, "width": 32, "num_train_timesteps": 20, "num_inference_steps": 5, "num_samples": 60},
    "gpu": {
        "data": "mnist",
        "steps": 30_000,
        "batch_size": 512,
        "width": 1_536,
        "num_blocks": 6,
        "num_train_timesteps": 1_000,
        "learning_rate": 5e-4,
    },
}


@dataclass(frozen=True)
class Experiment:
    data: GreyImageData = "digits"  # images by class: name of a data set, or path of a folder
    image_size: Positive[int] | None = None  # resize the images of a folder to squares with sides of this many pixels
    steps: Positive[int] = 1_800  # gradient steps
    batch_size: Positive[int] = 128  # images per gradient step
    width: Positive[int] = 384  # hidden units of the denoiser
    num_blocks: Positive[int] = 3  # residual blocks of the denoiser
    num_train_timesteps: Positive[int] = 200  # number of diffusion steps T
    learning_rate: Positive[float] = 2e-3  # peak learning rate of Adam, reached after 10 % of the steps
    num_inference_steps: Positive[int] = 50  # DDIM steps per sample
    guidance_scale: NonNegative[float] = 2.0  # 0 ignores the class, 1 is the conditional model, larger amplifies it
    num_samples: Positive[int] = 1_000  # number of samples to evaluate

    def model(self, shape: Sequence[int], classes: int) -> DDPM:
        denoiser = ResidualMLP(tuple(shape), self.width, blocks=self.num_blocks, classes=classes)
        return DDPM(denoiser, tuple(shape), schedule=cosine_schedule(self.num_train_timesteps), classes=classes)

    def __call__(self, run: Run) -> dict[str, float]:
        data = signed_labelled_images(open_data(self.data, size=self.image_size)).to(run.device)
        classes = len(data.classes)
        model = run.build(self.model, shape=data.shape, classes=classes)
        batches = data.train.pairs(self.batch_size, self.steps)
        trained = train_with_averaging(run, model, batches, self.learning_rate)
        label = torch.arange(self.num_samples, device=run.device) % classes
        steps = min(self.num_inference_steps, self.num_train_timesteps)
        samples = ddim_images(trained, label, guidance_scale=self.guidance_scale, steps=steps)
        run.figure(
            "samples", plot_samples(samples, data.classes), "Samples; columns are the classes they are conditioned on."
        )
        nearest = plot_nearest(samples[: len(data.classes)], data.train.x)
        run.figure("nearest training images", nearest, "Samples (above) and their nearest training images (below).")
        plot_forward_and_reverse(run, data, trained, self.guidance_scale)
        plot_loss_by_step(run, data.test.x, trained)
        self.compare_guidance_scales(run, data, trained)
        return evaluate_samples(samples, label, data)

    @torch.no_grad()
    def compare_guidance_scales(self, run: Run, data: Dataset, model: DDPM) -> None:
        """Class accuracy and diversity against the guidance scale, with a third of the samples and 25 steps."""
        classifier = fit_classifier(data.train.x, data.train.y)
        label = torch.arange(self.num_samples // 3, device=run.device) % len(data.classes)
        scales = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
        sets = [
            ddim_images(model, label, guidance_scale=scale, steps=min(25, self.num_train_timesteps)) for scale in scales
        ]
        rows = [
            {
                "scale": scale,
                "class accuracy": classifier_accuracy(classifier, samples, label),
                "diversity": float(within_class_std(samples, label) / within_class_std(data.train.x, data.train.y)),
            }
            for scale, samples in zip(scales, sets, strict=True)
        ]
        lines = {name: (scales, [row[name] for row in rows]) for name in ("class accuracy", "diversity")}
        caption = (
            "Guidance increases class accuracy and reduces diversity; large scales saturate the pixels, which "
            "increases the spread again. Accuracy: by a classifier of real images. "
            "Diversity: within-class standard deviation relative to real images."
        )
        run.figure("guidance", curves(lines, x_label="guidance scale s", y_label="accuracy, diversity"), caption)
        run.table("guidance", rows)
        columns = len(data.classes)
        figure = image_grid(
            to_pixels(torch.cat([samples[:columns] for samples in sets])),
            columns=columns,
            titles=data.classes,
            row_labels=[f"s = {scale:g}" for scale in scales],
        )
        run.figure(
            "samples by guidance scale",
            figure,
            "One sample of each class at each guidance scale; at 0 the class is ignored.",
        )


@dataclass(frozen=True)
class Sample(ImageSample):
    """Images of the requested classes."""


@dataclass(frozen=True)
class Evaluate:
    """Quality of new samples: accuracy of their classes, distance to training images and to test images."""

    num_samples: Positive[int] = 1_000  # number of new samples
    guidance_scale: NonNegative[float] = 2.0  # 0 ignores the class, 1 is the conditional model, larger amplifies it
    num_inference_steps: Positive[int] = 50  # DDIM steps per sample
    classifier_steps: Annotated[int, AtLeast(4)] = 200  # gradient steps of the feature network, for Fréchet distance
    seed: NonNegative[int] = 0  # seed of the samples

    def __call__(self, runs: Sequence[TrainedRun]) -> list[ResultRow]:
        return [self.evaluate(trained) for trained in runs]

    def evaluate(self, trained: TrainedRun) -> ResultRow:
        settings = cast("Experiment", trained.experiment)
        data = signed_labelled_images(open_data(settings.data, size=settings.image_size))
        model = cast("DDPM", trained.model)
        label = torch.arange(self.num_samples) % len(data.classes)
        with torch.no_grad(), torch.random.fork_rng():
            torch.manual_seed(self.seed)
            samples = ddim_images(model, label, guidance_scale=self.guidance_scale, steps=self.num_inference_steps)
        metrics = evaluate_samples(samples, label, data)
        network = FeatureNetwork.fit(
            to_pixels(data.train.x),
            cast("Tensor", data.train.y),
            name=f"a ResNet trained on {data.name}",
            steps=self.classifier_steps,
        )
        real, generated = (network(to_pixels(x)).rows for x in (data.test.x[: self.num_samples], samples))
        return {
            "run": trained.folder.path.name,
            "num_samples": self.num_samples,
            "class_accuracy": metrics["class_accuracy"],
            "trained_on_samples_accuracy": metrics["trained_on_samples_accuracy"],
            "novelty": metrics["novelty"],
            "frechet_distance": frechet_distance(real, generated),
        }


def evaluate_samples(samples: Tensor, label: Tensor, data: Dataset) -> dict[str, float]:
    """Class accuracy of samples, test accuracy of classifiers of samples and of real images, and novelty."""
    classifier, trained_on_samples = fit_classifier(data.train.x, data.train.y), fit_classifier(samples, label)
    return {
        "class_accuracy": classifier_accuracy(classifier, samples, label),
        "trained_on_samples_accuracy": classifier_accuracy(trained_on_samples, data.test.x, data.test.y),
        "real_accuracy": classifier_accuracy(classifier, data.test.x, data.test.y),
        "novelty": float(nearest_distance(samples, data.train.x) / nearest_distance(data.test.x, data.train.x)),
    }


@torch.no_grad()
def plot_forward_and_reverse(run: Run, data: Dataset, model: DDPM, guidance_scale: float) -> None:
    """Ten states of the forward chain and of DDIM sampling."""
    rows = min(5, len(data.classes))
    clean = torch.stack([data.test.x[data.test.y == index][0] for index in range(rows)])
    noise = torch.randn_like(clean)
    steps, states = noising_states(model.schedule, clean, noise, count=10)
    titles = ["x₀", *(f"t = {t + 1}" for t in steps)]
    caption = "The forward chain; the remaining signal at step t is √ᾱ_t x₀ (book fig. 13.4)."
    run.figure("forward process", image_grid(to_pixels(states.flatten(0, 1)), columns=10, titles=titles), caption)

    label = torch.arange(rows, device=run.device)
    denoiser, chain = clip_x0(model.condition_on(label, guidance_scale), model.schedule), len(model.schedule)
    path = list(ddim_path(denoiser, model.schedule, noise, grid=evenly_spaced_steps(chain, min(chain, 45))))
    indices = torch.linspace(0, len(path) - 1, 10).long().tolist()
    images = torch.stack([path[index] for index in indices], 1).flatten(0, 1)
    caption = "Ten states of DDIM sampling, from noise to an image of the requested class."
    titles = ["noise", *[""] * 8, "sample"]
    run.figure(
        "sampling", image_grid(to_pixels(images), columns=10, titles=titles, row_labels=data.classes[:rows]), caption
    )


@torch.no_grad()
def plot_loss_by_step(run: Run, x: Tensor, model: DDPM) -> None:
    steps = torch.linspace(0, len(model.schedule) - 1, 30).long()
    losses = error_by_step(model.denoiser, model.schedule, x, steps)
    figure = curves({"loss": (steps + 1, losses)}, x_label="step t", y_label="E‖ε_θ − ε‖² per pixel", log_y=True)
    run.figure(
        "loss by step", figure, "Loss at each step on test images, unconditional; it is largest at low noise levels."
    )
