"""Diffusion of images with a U-Net or a transformer, evaluated by Fréchet distance (book secs. 13.2, 13.3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, cast

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import OneCycleLR
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from parnassus.data import Batches, Dataset, Split, open_images
from parnassus.data.preparation.signed_pixels import signed_pixels
from parnassus.diffusion.chain.forward_process import noising_states
from parnassus.diffusion.chain.objectives import error_by_step
from parnassus.diffusion.chain.schedules import cosine_schedule
from parnassus.diffusion.commands.sample_images import ImageSample
from parnassus.diffusion.figures import plot_columns, plot_image_chain, plot_nearest, plot_samples
from parnassus.diffusion.guidance import clip_x0, record_x0
from parnassus.diffusion.models.ddpm import DDPM
from parnassus.diffusion.networks.diffusion_transformer import DiffusionTransformer
from parnassus.diffusion.networks.unet import UNet
from parnassus.diffusion.samplers.ddim import ddim_path
from parnassus.diffusion.samplers.image_sampling import ddim_images, to_pixels
from parnassus.diffusion.samplers.time_steps import evenly_spaced_steps
from parnassus.metrics.feature_network import FeatureNetwork, Features
from parnassus.metrics.pixel_metrics import nearest_distance
from parnassus.metrics.sample_quality import sample_quality
from parnassus.optim import Adam
from parnassus.report import curves, image_grid
from parnassus.setting_types import ImageData
from parnassus.train import NonNegative, Positive, Run, UnitInterval, at_least, at_most, descend, no_band

covers = ("B13.2-1", "B13.2.4-6", "B13.2.4-7", "B13.2.4-8", "B13.2.4-9", "B13.2.5-2", "B13.3-2")
expected = {
    "class_accuracy": at_least(0.83, "fraction of samples that the feature network assigns to the requested class"),
    "classifier_accuracy": no_band("test accuracy of the feature network on real images"),
    "frechet_distance": at_most(3.0, "Fréchet distance between samples and test images, in the network's features"),
    "frechet_of_real": no_band("Fréchet distance between training and test images: the value of a perfect model"),
    "kernel_distance": no_band("kernel distance between samples and test images, in the network's features"),
    "precision": no_band("fraction of samples within the manifold of real images"),
    "recall": no_band("fraction of real images within the manifold of samples"),
    "test_loss": at_most(0.18, "squared error of the noise prediction per pixel on test images, mean over all steps"),
    "novelty": at_least(
        0.8, "median distance of a sample to the training images relative to that of a test image; 0 for copies"
    ),
}
profiles = {
    "smoke": {
        "steps": 4, "width": 8, "num_train_timesteps": 20, "num_inference_steps": 3, "num_samples": 30,
        "classifier_steps": 4, "images_per_row": 5,
    },
    "gpu": {
        "data": "mnist", "steps": 2_800, "batch_size": 1_024, "width": 64, "channel_multipliers": (1, 2, 2),
        "num_blocks": 2, "attention_levels": (2,), "num_train_timesteps": 1_000, "learning_rate": 1e-3,
        "ema_decay": 0.999, "num_inference_steps": 50, "num_samples": 5_000, "classifier_steps": 2_000,
    },
}  # fmt: skip
# CIFAR-10 in 8 minutes on an H200:
# --profile gpu --data cifar10 --steps 6000 --batch-size 512 --width 96 --attention-levels 1 --dropout 0.1


@dataclass(frozen=True)
class Experiment:
    data: ImageData = "digits"  # images: name of a data set, or path of a folder
    image_size: Positive[int] | None = None  # height and width to which images of a folder are resized
    network: Literal["unet", "transformer"] = "unet"  # architecture of the denoiser
    steps: Positive[int] = 600  # gradient steps
    batch_size: Positive[int] = 64  # images per gradient step
    width: Positive[int] = 16  # channels of the U-Net at full resolution, or token width of the transformer
    channel_multipliers: tuple[Positive[int], ...] = (1, 2)  # channels per resolution, in units of width
    num_blocks: Positive[int] = 1  # residual blocks per resolution of the U-Net; the transformer has 3 times as many
    attention_levels: tuple[NonNegative[int], ...] = (1,)  # resolutions of the U-Net with self-attention, from 0
    patch_size: Positive[int] = 2  # height and width of a patch of the transformer
    dropout: UnitInterval = 0.0  # dropout probability in the U-Net
    num_train_timesteps: Positive[int] = 200  # number of diffusion steps T
    learning_rate: Positive[float] = 2e-3  # peak learning rate of Adam, reached after 10 % of the steps
    ema_decay: UnitInterval = 0.99  # decay of the exponential moving average of the weights
    num_inference_steps: Positive[int] = 20  # DDIM steps per sample
    guidance_scale: NonNegative[float] = 1.5  # 0 ignores the class, 1 is the conditional model, larger amplifies it
    num_samples: Positive[int] = 200  # number of samples to evaluate
    classifier_steps: Positive[int] = 200  # gradient steps of the feature network
    images_per_row: Positive[int] = 9  # states of the chain per row of a figure

    def model(self, shape: Sequence[int], classes: int) -> DDPM:
        channels, height, width = shape
        size = (channels, height, width)
        denoiser: nn.Module
        if self.network == "unet":
            denoiser = UNet(
                size,
                self.width,
                multipliers=self.channel_multipliers,
                blocks=self.num_blocks,
                attention=self.attention_levels,
                classes=classes,
                dropout=self.dropout,
            )
        else:
            denoiser = DiffusionTransformer(
                size, self.width, patch=self.patch_size, blocks=3 * self.num_blocks, classes=classes
            )
        return DDPM(denoiser, size, schedule=cosine_schedule(self.num_train_timesteps), classes=classes)

    def __call__(self, run: Run) -> dict[str, float]:
        data = signed_pixels(open_images(self.data, self.image_size)).to(run.device)
        model = run.build(self.model, shape=data.shape, classes=len(data.classes))
        if run.device.type == "cuda":
            model.schedule = model.schedule.to(run.device)  # no copy from the host at each step
            model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # faster convolutions on CUDA
        average = AveragedModel(model, device=run.device, multi_avg_fn=get_ema_multi_avg_fn(self.ema_decay))
        model, optimizer, scheduler = run.prepare(
            model,
            partial(Adam, lr=self.learning_rate),
            partial(
                OneCycleLR, max_lr=self.learning_rate, total_steps=self.steps + 1, pct_start=0.1, cycle_momentum=False
            ),
        )
        run.keep("average", average)

        for step, loss in descend(run, model, optimizer, batches(data, self.batch_size, self.steps)):
            average.update_parameters(model)
            scheduler.step()
            run.log(step, loss=loss)

        trained = cast("DDPM", average.module).eval()
        run.publish(trained)
        plot_forward_and_reverse(run, data, trained, count=self.images_per_row)
        test_loss = plot_loss_by_step(run, data, trained)
        return {**self.evaluate(run, data, trained), "test_loss": test_loss}

    def evaluate(self, run: Run, data: Dataset, model: DDPM) -> dict[str, float]:
        """Compare samples with real images in the features of a network trained on real images."""
        images, classes = classification_examples(data.train)
        network = FeatureNetwork.fit(
            to_pixels(images), classes, name=f"a ResNet trained on {data.name}", steps=self.classifier_steps
        )
        real = network(to_pixels(data.test.x[: self.num_samples]))
        label = torch.arange(self.num_samples, device=run.device) % max(1, len(data.classes))

        def sample(steps: int) -> Tensor:
            with run.autocast():
                return ddim_images(model, label, guidance_scale=self.guidance_scale, steps=steps).float()

        grid = sorted(
            {
                min(steps, self.num_train_timesteps)
                for steps in (
                    max(1, self.num_inference_steps // 10),
                    self.num_inference_steps // 4,
                    self.num_inference_steps // 2,
                )
            }
        )
        by_steps = {steps: network(to_pixels(sample(steps))) for steps in grid if 0 < steps < self.num_inference_steps}
        samples = sample(min(self.num_inference_steps, self.num_train_timesteps))
        generated = network(to_pixels(samples))
        run.figure(
            "samples", plot_samples(samples, data.classes), "Samples; columns are the classes they are conditioned on."
        )
        nearest = plot_nearest(samples[:10], data.train.x)
        run.figure("nearest training images", nearest, "Samples (above) and their nearest training images (below).")
        plot_quality_by_steps(run, real, {**by_steps, self.num_inference_steps: generated}, label)
        quality = sample_quality(real, generated)
        run.table(
            "quality",
            quality.table(),
            f"{quality.num_samples:,} samples and {quality.num_real:,} test images: {quality.network}.",
        )
        training = network(to_pixels(data.train.x[: self.num_samples]))
        test_images, classes = images_and_labels(data.test)
        return {
            "class_accuracy": class_accuracy(generated, label),
            "classifier_accuracy": class_accuracy(network(to_pixels(test_images)), classes),
            "frechet_distance": quality.frechet_distance,
            "frechet_of_real": sample_quality(real, training).frechet_distance,
            "kernel_distance": quality.kernel_distance.value,
            "precision": quality.precision_recall.precision,
            "recall": quality.precision_recall.recall,
            "novelty": float(
                nearest_distance(samples[:500], data.train.x) / nearest_distance(data.test.x[:500], data.train.x)
            ),
        }


@dataclass(frozen=True)
class Sample(ImageSample):
    guidance_scale: NonNegative[float] = 1.5  # 0 ignores the class, 1 is the conditional model, larger amplifies it
    num_samples: Positive[int] = 64  # number of images


def plot_quality_by_steps(run: Run, real: Features, by_steps: dict[int, Features], label: Tensor) -> None:
    """Sample quality against the number of DDIM steps."""
    qualities = {steps: sample_quality(real, features) for steps, features in by_steps.items()}
    rows = [
        {
            "DDIM steps": steps,
            "Fréchet distance": quality.frechet_distance,
            "kernel distance": quality.kernel_distance.value,
            "precision": quality.precision_recall.precision,
            "recall": quality.precision_recall.recall,
            "class accuracy": class_accuracy(by_steps[steps], label),
        }
        for steps, quality in qualities.items()
    ]
    panels = {
        "accuracy, precision, recall": ("class accuracy", "precision", "recall"),
        "Fréchet distance": ("Fréchet distance",),
        "kernel distance": ("kernel distance",),
    }
    run.figure(
        "quality by number of steps",
        plot_columns(rows, panels, over="DDIM steps"),
        f"Sample quality against the number of DDIM steps, in the features of {real.network} (not Inception features). "
        f"Fractions of {len(label):,} samples have a standard error of at most {0.5 / len(label) ** 0.5:.2f}.",
    )
    run.table("quality by number of steps", rows)


def batches(data: Dataset, size: int, steps: int) -> Batches[Tensor] | Batches[tuple[Tensor, Tensor]]:
    """Batches of images with their classes, if any; colour images are flipped horizontally at random."""
    colour = data.shape[0] == 3
    if not data.classes:
        return data.train.batches(size, steps).map(random_flip) if colour else data.train.batches(size, steps)
    pairs = data.train.pairs(size, steps)
    return pairs.map(lambda pair: (random_flip(pair[0]), pair[1])) if colour else pairs


def random_flip(x: Tensor) -> Tensor:
    """Each image is flipped horizontally with probability ½."""
    return torch.where(torch.rand(len(x), 1, 1, 1, device=x.device) < 0.5, x.flip(-1), x)


def images_and_labels(split: Split) -> tuple[Tensor, Tensor]:
    """Images and their classes; without classes, all have class 0 (upright)."""
    return split.x, torch.zeros(len(split.x), dtype=torch.int64, device=split.x.device) if split.y is None else split.y


def classification_examples(split: Split) -> tuple[Tensor, Tensor]:
    """Training data of the feature network: images by class or, without classes, upright and flipped images."""
    x, y = images_and_labels(split)
    return (x, y) if split.y is not None else (torch.cat([x, x.flip(-2)]), torch.cat([y, y + 1]))


def class_accuracy(features: Features, label: Tensor) -> float:
    """The fraction of images that the feature network assigns to their label."""
    return float((features.log_probs.argmax(1) == label).double().mean())


@torch.no_grad()
def plot_forward_and_reverse(run: Run, data: Dataset, model: DDPM, *, count: int) -> None:
    """The chain as a diagram, and the forward and reverse processes in images (book fig. 13.4)."""
    clean = data.test.x[:4]
    noise = torch.randn_like(clean)
    steps, states = noising_states(model.schedule, clean, noise, count=count)
    chosen = [0, count // 3, count // 2, 3 * count // 4, count - 1]
    figure = plot_image_chain(
        to_pixels(states[0, chosen]),
        names=["x_0", *(f"x_{{{steps[index - 1] + 1}}}" for index in chosen[1:])],
        forward="forward process, fixed: q(x_t | x_{t−1}) adds noise",
        backward="reverse process, learned: p_θ(x_{t−1} | x_t) removes noise",
    )
    run.figure("diffusion model", figure, "The forward and reverse processes of a diffusion model (book fig. 13.4).")
    titles = ["x₀", *(f"t = {t + 1}" for t in steps)]
    figure = image_grid(to_pixels(states.flatten(0, 1)), columns=count, titles=titles)
    run.figure(
        "forward process", figure, "The forward chain; the remaining signal at step t is √ᾱ_t x₀ (book fig. 13.4)."
    )

    label = torch.arange(4, device=run.device) % model.classes if model.classes else None
    denoiser, predictions = record_x0(clip_x0(model.condition_on(label), model.schedule), model.schedule)
    chain = len(model.schedule)
    path = list(ddim_path(denoiser, model.schedule, noise, grid=evenly_spaced_steps(chain, min(chain, 40))))
    indices = torch.linspace(0, len(predictions) - 1, count).long().tolist()
    pair = (path[1:], predictions)
    rows = torch.stack([torch.stack([states[index][:2] for index in indices], 1) for states in pair], 1)
    names = ["state x_t", "prediction of x₀"] * 2
    figure = image_grid(to_pixels(rows.flatten(0, 2)), columns=count, row_labels=names)
    caption = "DDIM sampling of two images: the state of the chain and the prediction of the clean image."
    run.figure("sampling", figure, caption)


@torch.no_grad()
def plot_loss_by_step(run: Run, data: Dataset, model: DDPM) -> float:
    """The loss at each step on training and test images; returns the mean over test images."""
    steps = torch.linspace(0, len(model.schedule) - 1, 25).long()
    lines: dict[str, tuple[object, object]] = {}
    for name, split in (("test images", data.test), ("training images", data.train)):
        x = split.x[:500]
        denoiser = model.condition_on(split.y[:500] if split.y is not None and model.classes else None)
        lines[name] = (steps + 1, error_by_step(denoiser, model.schedule, x, steps))
    figure = curves(lines, x_label="step t", y_label="E‖ε_θ − ε‖² per pixel", log_y=True)
    caption = "The loss is largest at low noise levels. A gap between the lines indicates memorisation."
    run.figure("loss by step", figure, caption)
    return float(torch.as_tensor(lines["test images"][1]).mean())
