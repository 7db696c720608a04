"""Diffusion learns images, with a U-Net or a transformer: yours, digits, photographs (book secs. 13.2, 13.3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, cast

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import OneCycleLR
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from parnassus.convolution.feature_network import FeatureNetwork, Features, sample_quality
from parnassus.data import Batches, Dataset, Split, open_images
from parnassus.diffusion.ddpm import DDPM
from parnassus.diffusion.drawing import draw_images, drowned
from parnassus.diffusion.experiments.diffusion_on_digits import Sample as DigitsSample
from parnassus.diffusion.experiments.diffusion_on_digits import distance, show_samples, signed, visible
from parnassus.diffusion.guidance import clipped, watched
from parnassus.diffusion.objectives import error_by_step
from parnassus.diffusion.samplers import ddim_path, even_grid
from parnassus.diffusion.schedules import cosine_schedule
from parnassus.diffusion.transformer import DiffusionTransformer
from parnassus.diffusion.unet import UNet
from parnassus.optim import Adam
from parnassus.report import curves, image_grid
from parnassus.report.chains import chain_of_images
from parnassus.report.panels import panels_of_columns
from parnassus.train import Run, at_least, at_most, descend, reported

covers = ("B13.2-1", "B13.2.4-6", "B13.2.4-7", "B13.2.4-8", "B13.2.4-9", "B13.2.5-2", "B13.3-2")
expected = {
    "class_accuracy": at_least(0.83, "share of the samples in which a network trained on real images sees the class"),
    "judge_accuracy": reported("share of real test images that this network names rightly"),
    "frechet_distance": at_most(3.0, "Fréchet distance of samples and test images, in this network's features"),
    "frechet_of_real": reported("the same between training and test images, where a perfect model would come out"),
    "kernel_distance": reported("kernel distance of samples and test images, in the same features"),
    "precision": reported("share of the samples that lie among real images"),
    "recall": reported("share of the real images that lie among samples"),
    "test_loss": at_most(0.18, "squared error a pixel of the noise found in unseen images, all steps alike"),
    "novelty": at_least(0.8, "median distance of a sample to the training images over a test image's; a copy has 0"),
}
profiles = {
    "smoke": {"steps": 4, "width": 8, "chain": 20, "draws": 3, "count": 30, "judge_steps": 4, "strip": 5},
    "gpu": {
        "data": "mnist", "steps": 2_800, "batch": 1_024, "width": 64, "multipliers": (1, 2, 2), "blocks": 2,
        "attention": (2,), "chain": 1_000, "lr": 1e-3, "decay": 0.999, "draws": 50, "count": 5_000,
        "judge_steps": 2_000,
    },
}  # fmt: skip
# CIFAR-10 in 8 minutes: --profile gpu --data cifar10 --steps 6000 --batch 512 --width 96 --attention 1 --dropout 0.1


@dataclass(frozen=True)
class Experiment:
    data: str = "digits"  # images: digits, mnist_mini, mnist, fashion_mnist, cifar10, or a folder of yours
    size: int | None = None  # resize the pictures of a folder to this height and width
    network: Literal["unet", "transformer"] = "unet"  # what finds the noise
    steps: int = 600  # gradient steps
    batch: int = 64  # images a step
    width: int = 16  # channels of the U-Net at full size; of the transformer a token's width
    multipliers: tuple[int, ...] = (1, 2)  # of the width, at each halving of the U-Net
    blocks: int = 1  # residual blocks at each size of the U-Net; of the transformer three times as many in all
    attention: tuple[int, ...] = (1,)  # sizes of the U-Net, counted from 0, at which pixels attend to each other
    patch: int = 2  # pixels along the side of a transformer's patch
    dropout: float = 0.0  # share of a U-Net's features silenced in training
    chain: int = 200  # diffusion steps T
    lr: float = 2e-3  # Adam's largest learning rate, reached after a tenth of the steps
    decay: float = 0.99  # of the moving average of the weights, which draws
    draws: int = 20  # DDIM steps that draw a sample
    guidance: float = 1.5  # 0 ignores the class, 1 is plainly conditional, more is more typical
    count: int = 200  # samples that are judged
    judge_steps: int = 200  # gradient steps of the network that judges
    strip: int = 9  # pictures in a strip

    def model(self, shape: Sequence[int], classes: int) -> DDPM:
        channels, height, across = shape
        size = (channels, height, across)
        denoiser: nn.Module
        if self.network == "unet":
            denoiser = UNet(
                size,
                self.width,
                multipliers=self.multipliers,
                blocks=self.blocks,
                attention=self.attention,
                classes=classes,
                dropout=self.dropout,
            )
        else:
            denoiser = DiffusionTransformer(size, self.width, patch=self.patch, blocks=3 * self.blocks, classes=classes)
        return DDPM(denoiser, size, schedule=cosine_schedule(self.chain), classes=classes)

    def __call__(self, run: Run) -> dict[str, float]:
        data = signed(open_images(self.data, self.size)).to(run.device)
        model = run.build(self.model, shape=data.shape, classes=len(data.classes))
        if run.device.type == "cuda":
            model.schedule = model.schedule.to(run.device)  # no copy from the host at each step
            model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # what convolutions like there
        average = AveragedModel(model, device=run.device, multi_avg_fn=get_ema_multi_avg_fn(self.decay))
        model, optimizer = run.prepare(model, partial(Adam, lr=self.lr))
        warming = OneCycleLR(optimizer, self.lr, total_steps=self.steps + 1, pct_start=0.1, cycle_momentum=False)
        run.keep("average", average)
        run.keep("warming", warming)

        for step, loss in descend(run, model, optimizer, batches(data, self.batch, self.steps)):
            average.update_parameters(model)
            warming.step()
            run.log(step, loss=loss)

        trained = cast("DDPM", average.module).eval()
        run.publish(trained)
        show_chain(run, data, trained, count=self.strip)
        test_loss = show_loss_by_step(run, data, trained)
        return {**self.judge(run, data, trained), "test_loss": test_loss}

    def judge(self, run: Run, data: Dataset, model: DDPM) -> dict[str, float]:
        """Draw, and compare with real images in the features of a network that has seen real ones only."""
        images, names = judged(data.train)
        judge = FeatureNetwork.fit(
            visible(images), names, name=f"a ResNet trained on {data.name}", steps=self.judge_steps
        )
        truth = judge(visible(data.test.x[: self.count]))
        wished = torch.arange(self.count, device=run.device) % max(1, len(data.classes))

        def draw(steps: int) -> Tensor:
            with run.autocast():
                return draw_images(model, wished, guidance=self.guidance, steps=steps).float()

        grid = sorted(
            {min(steps, self.chain) for steps in (max(1, self.draws // 10), self.draws // 4, self.draws // 2)}
        )
        fewer = {steps: judge(visible(draw(steps))) for steps in grid if 0 < steps < self.draws}
        samples = draw(min(self.draws, self.chain))
        drawn = judge(visible(samples))
        show_samples(run, data, samples)
        self.show_quality(run, truth, {**fewer, self.draws: drawn}, wished)
        quality = sample_quality(truth, drawn)
        run.table(
            "quality", quality.table(), f"{quality.drawn:,} samples and {quality.real:,} test images: {quality.judge}."
        )
        own = judge(visible(data.train.x[: self.count]))
        unseen, names = upright(data.test)
        return {
            "class_accuracy": named(drawn, wished),
            "judge_accuracy": named(judge(visible(unseen)), names),
            "frechet_distance": quality.frechet,
            "frechet_of_real": sample_quality(truth, own).frechet,
            "kernel_distance": quality.kernel.value,
            "precision": quality.coverage.precision,
            "recall": quality.coverage.recall,
            "novelty": float(distance(samples[:500], data.train.x) / distance(data.test.x[:500], data.train.x)),
        }

    def show_quality(self, run: Run, truth: Features, drawn: dict[int, Features], wished: Tensor) -> None:
        """How quality answers to the number of DDIM steps."""
        found = {steps: sample_quality(truth, features) for steps, features in drawn.items()}
        rows = [
            {
                "DDIM steps": steps,
                "Fréchet distance": quality.frechet,
                "kernel distance": quality.kernel.value,
                "precision": quality.coverage.precision,
                "recall": quality.coverage.recall,
                "class accuracy": named(drawn[steps], wished),
            }
            for steps, quality in found.items()
        ]
        shown = {
            "shares": ("class accuracy", "precision", "recall"),
            "Fréchet distance": ("Fréchet distance",),
            "kernel distance": ("kernel distance",),
        }
        figure = panels_of_columns(rows, shown, over="DDIM steps")
        run.figure(
            "few_steps",
            figure,
            f"How few steps will do, by the eyes of {truth.judge}: the wished class seen, samples among real images, "
            f"real images among samples ({len(wished):,} tell a share to ± {0.5 / len(wished) ** 0.5:.2f}); and "
            "how far the features of samples lie from those of unseen images. None of these is Inception's.",
        )
        run.table("few_steps", rows)


@dataclass(frozen=True)
class Sample(DigitsSample):
    guidance: float = 1.5  # 0 ignores the class, 1 is plainly conditional, more is more typical
    count: int = 64  # how many


def batches(data: Dataset, size: int, steps: int) -> Batches[Tensor] | Batches[tuple[Tensor, Tensor]]:
    """Batches of images with their classes where there are any; photographs are mirrored at random."""
    colour = data.shape[0] == 3
    if not data.classes:
        return data.train.batches(size, steps).map(mirrored) if colour else data.train.batches(size, steps)
    pairs = data.train.pairs(size, steps)
    return pairs.map(lambda pair: (mirrored(pair[0]), pair[1])) if colour else pairs


def mirrored(x: Tensor) -> Tensor:
    """Half of the images with left and right exchanged."""
    return torch.where(torch.rand(len(x), 1, 1, 1, device=x.device) < 0.5, x.flip(-1), x)


def upright(split: Split) -> tuple[Tensor, Tensor]:
    """Images and their classes; where there are none, all are of the class "upright"."""
    return split.x, torch.zeros(len(split.x), dtype=torch.int64, device=split.x.device) if split.y is None else split.y


def judged(split: Split) -> tuple[Tensor, Tensor]:
    """What a judge learns from: images by class or, where there are no classes, images upright and upside down."""
    x, y = upright(split)
    return (x, y) if split.y is not None else (torch.cat([x, x.flip(-2)]), torch.cat([y, y + 1]))


def named(features: Features, wished: Tensor) -> float:
    """The share of images in which the judge sees the wished class."""
    return float((features.log_probs.argmax(1) == wished).double().mean())


@torch.no_grad()
def show_chain(run: Run, data: Dataset, model: DDPM, *, count: int) -> None:
    """The chain as the book draws it, and both ways through it in pictures (book fig. 13.4)."""
    clean = data.test.x[:4]
    noise = torch.randn_like(clean)
    steps, states = drowned(model.schedule, clean, noise, count=count)
    chosen = [0, count // 3, count // 2, 3 * count // 4, count - 1]
    figure = chain_of_images(
        visible(states[0, chosen]),
        names=["x_0", *(f"x_{{{steps[index - 1] + 1}}}" for index in chosen[1:])],
        forward="forward, fixed: q(x_t | x_{t−1}) adds a little noise",
        backward="backward, learned: p_θ(x_{t−1} | x_t) takes a little away",
    )
    run.figure(
        "diffusion_model", figure, "A diffusion model: a chain from data to noise, and the way back (book fig. 13.4)."
    )
    titles = ["x₀", *(f"t = {t + 1}" for t in steps)]
    strip = image_grid(visible(states.flatten(0, 1)), columns=count, titles=titles)
    run.figure("noising", strip, "Images drowned in noise; what is left of one at step t is √ᾱ_t x₀ (book fig. 13.4).")

    label = torch.arange(4, device=run.device) % model.classes if model.classes else None
    denoiser, guesses = watched(clipped(model.conditioned(label), model.schedule), model.schedule)
    chain = len(model.schedule)
    path = list(ddim_path(denoiser, model.schedule, noise, grid=even_grid(chain, min(chain, 40))))
    kept = torch.linspace(0, len(guesses) - 1, count).long().tolist()
    rows = torch.stack([torch.stack([states[index][:2] for index in kept], 1) for states in (path[1:], guesses)], 1)
    names = ["state x_t", "guess of x₀"] * 2
    figure = image_grid(visible(rows.flatten(0, 2)), columns=count, row_labels=names)
    caption = "The way back, from noise to two images: the state of the chain, and what the model expects to come out."
    run.figure("denoising", figure, caption)


@torch.no_grad()
def show_loss_by_step(run: Run, data: Dataset, model: DDPM) -> float:
    """The loss at each step on images seen and unseen; the mean over unseen ones is returned."""
    steps = torch.linspace(0, len(model.schedule) - 1, 25).long()
    lines: dict[str, tuple[object, object]] = {}
    for name, split in (("unseen images", data.test), ("training images", data.train)):
        x = split.x[:500]
        denoiser = model.conditioned(split.y[:500] if split.y is not None and model.classes else None)
        lines[name] = (steps + 1, error_by_step(denoiser, model.schedule, x, steps))
    figure = curves(lines, x_label="step t", y_label="E‖ε_θ − ε‖² a pixel", log_y=True)
    caption = "Noise is hardest to find where there is least of it. A gap between the lines would be learning by heart."
    run.figure("loss_by_step", figure, caption)
    return float(torch.as_tensor(lines["unseen images"][1]).mean())
