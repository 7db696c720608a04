"""Noise-conditional score network of digits, sampled by annealed Langevin dynamics (book sec. 13.2.7)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.optim.lr_scheduler import OneCycleLR
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from parnassus.data import open_labelled_images
from parnassus.diffusion.figures import plot_nearest
from parnassus.diffusion.models.score_model import ScoreModel
from parnassus.diffusion.networks.mlp_denoisers import ResidualMLP
from parnassus.diffusion.samplers.annealed_langevin import annealed_langevin_path
from parnassus.diffusion.samplers.image_sampling import to_pixels
from parnassus.diffusion.scores.noise_levels import geometric_levels
from parnassus.diffusion.scores.score_matching import multiscale_score_matching
from parnassus.layers.pixel_classifier import classifier_accuracy, fit_classifier
from parnassus.metrics.pixel_metrics import nearest_distance
from parnassus.optim import Adam
from parnassus.report import curves, image_grid
from parnassus.setting_types import GreyImageData
from parnassus.train import Positive, Run, at_least, between, descend, no_band

covers = ("B13.2.7-3", "B13.2.7-4")
expected = {
    "trained_on_samples_accuracy": at_least(
        0.75, "test accuracy of a classifier trained on samples, labelled by a classifier of real images"
    ),
    "real_accuracy": no_band("test accuracy of the classifier of real images"),
    "novelty": between(
        0.6, 1.6, "median distance of a sample to the training images relative to that of a test image; 0 for copies"
    ),
    "loss": no_band("λ-weighted denoising loss per pixel on test images"),
}
profiles = {
    "smoke": {"steps": 10, "width": 32, "num_blocks": 1, "num_levels": 4, "steps_per_level": 2, "num_samples": 60},
    "gpu": {
        "data": "mnist",
        "steps": 30_000,
        "batch_size": 512,
        "width": 1_536,
        "num_blocks": 6,
        "num_levels": 60,
        "sigma_max": 30.0,
    },
}


@dataclass(frozen=True)
class Experiment:
    data: GreyImageData = "digits"  # images by class: name of a data set, or path of a folder
    image_size: Positive[int] | None = None  # resize the images of a folder to squares with sides of this many pixels
    steps: Positive[int] = 1_200  # gradient steps
    batch_size: Positive[int] = 128  # images per gradient step
    width: Positive[int] = 256  # hidden units of the network
    num_blocks: Positive[int] = 2  # residual blocks of the network
    learning_rate: Positive[float] = 2e-3  # peak learning rate of Adam, reached after 10 % of the steps
    num_levels: Positive[int] = 16  # number of noise levels T
    sigma_min: Positive[float] = 0.05  # smallest noise level σ_1, for pixels in [−1, 1]
    sigma_max: Positive[float] = 6.0  # largest noise level σ_T, comparable to the distance between two images
    steps_per_level: Positive[int] = 20  # Langevin steps at each noise level
    step_factor: Positive[float] = 0.15  # step size c_t divided by σ_t²
    num_samples: Positive[int] = 400  # number of samples to evaluate

    def model(self, shape: Sequence[int]) -> ScoreModel:
        network = ResidualMLP(tuple(shape), self.width, blocks=self.num_blocks)
        return ScoreModel(network, tuple(shape), geometric_levels(self.num_levels, self.sigma_min, self.sigma_max))

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_labelled_images(self.data, self.image_size).to(run.device)
        model = run.build(self.model, shape=data.shape)
        average = AveragedModel(model, device=run.device, multi_avg_fn=get_ema_multi_avg_fn(0.99))
        model, optimizer, scheduler = run.prepare(
            model,
            partial(Adam, lr=self.learning_rate),
            partial(
                OneCycleLR, max_lr=self.learning_rate, total_steps=self.steps + 1, pct_start=0.1, cycle_momentum=False
            ),
        )
        run.keep("average", average)
        batches = data.train.batches(self.batch_size, self.steps).map(to_signed)
        for step, loss in descend(run, model, optimizer, batches):
            average.update_parameters(model)
            scheduler.step()
            run.log(step, loss=loss)

        trained = average.module
        assert isinstance(trained, ScoreModel)
        run.publish(trained)
        test, train = to_signed(data.test.x[:2_000]), to_signed(data.train.x)
        with torch.no_grad():
            samples = trained.sample(self.num_samples, steps=self.steps_per_level, factor=self.step_factor)
            self.plot_samples(run, samples, train)
            self.plot_annealing(run, trained)
            losses = plot_levels(run, trained, test)
        classifier, images = fit_classifier(data.train.x, data.train.y), to_pixels(samples)
        labels = torch.from_numpy(classifier.predict(images.flatten(1).cpu().numpy()))
        trained_on_samples = fit_classifier(images, labels)
        return {
            "trained_on_samples_accuracy": classifier_accuracy(trained_on_samples, data.test.x, data.test.y),
            "real_accuracy": classifier_accuracy(classifier, data.test.x, data.test.y),
            "novelty": float(nearest_distance(samples, train) / nearest_distance(test, train)),
            "loss": float(losses.mean()),
        }

    def plot_samples(self, run: Run, samples: Tensor, train: Tensor) -> None:
        figure = image_grid(to_pixels(samples[:64]), columns=16)
        run.figure("samples", figure, "Samples by annealed Langevin dynamics.")
        nearest = plot_nearest(samples[:12], train)
        run.figure("nearest training images", nearest, "Samples (above) and their nearest training images (below).")

    def plot_annealing(self, run: Run, model: ScoreModel) -> None:
        """Six samples at ten of the noise levels, divided by √(1 + σ²)."""
        start = model.levels[-1] * torch.randn(6, *model.shape, device=model.levels.device)
        path = list(
            annealed_langevin_path(
                model.score, model.levels, start, steps=self.steps_per_level, factor=self.step_factor
            )
        )
        indices = sorted({int(index) for index in torch.linspace(0, self.num_levels, 10)})
        sigmas = [float(model.levels[-1]), *model.levels.flip(0).tolist()]
        states = torch.stack([path[index] / (1 + sigmas[index] ** 2) ** 0.5 for index in indices], 1).flatten(0, 1)
        titles = ["noise", *(f"σ = {sigmas[index]:.2g}" for index in indices[1:])]
        run.figure(
            "annealing", image_grid(to_pixels(states), columns=len(indices), titles=titles),
            "Six samples at the end of ten of the noise levels: coarse structure appears first, edges last.",
        )  # fmt: skip


@dataclass(frozen=True)
class Sample:
    steps_per_level: Positive[int] = 20  # Langevin steps at each noise level
    step_factor: Positive[float] = 0.15  # step size divided by σ²
    num_samples: Positive[int] = 64  # number of images

    def __call__(self, model: ScoreModel) -> Tensor:
        return to_pixels(model.sample(self.num_samples, steps=self.steps_per_level, factor=self.step_factor))


def to_signed(x: Tensor) -> Tensor:
    """Pixels in [0, 1] mapped to [−1, 1]."""
    return 2 * x - 1


def plot_levels(run: Run, model: ScoreModel, test: Tensor) -> Tensor:
    """The loss at each noise level, and denoised images at some of them."""
    losses = []
    for level in range(len(model.levels)):
        t = torch.full((len(test),), level, device=test.device)
        per_example = multiscale_score_matching(model.score, model.levels, test, t, torch.randn_like(test))
        losses.append(per_example.mean() / test[0].numel())
    loss_by_level = torch.stack(losses)
    figure = curves(
        {"": (model.levels, loss_by_level)}, x_label="noise σ", y_label="σ² ‖s − target‖² per pixel", log_x=True
    )
    run.figure(
        "loss by noise level", figure, "With λ = σ² the loss is the fraction of the noise variance that the network "
        "cannot predict: small at high noise levels and close to 1 at low ones.",
    )  # fmt: skip
    levels = sorted({int(index) for index in torch.linspace(0, len(model.levels) - 1, 6)})
    x, rows = test[:10], []
    for level in levels:
        sigma = model.levels[level]
        noisy = x + sigma * torch.randn_like(x)
        t = torch.full((len(x),), level, device=x.device)
        rows += [noisy / (1 + sigma.square()).sqrt(), noisy + sigma.square() * model.score(noisy, t)]
    names = [name for level in levels for name in (f"σ = {float(model.levels[level]):.2g}", "x + σ² s")]
    run.figure(
        "denoised images", image_grid(to_pixels(torch.cat(rows)), columns=10, row_labels=names),
        "Test images at six noise levels (rescaled), and below each the posterior mean of the clean image by Tweedie's "
        "formula.",
    )  # fmt: skip
    return loss_by_level
