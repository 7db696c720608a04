"""Class-conditional diffusion draws the handwritten digits you ask for (book secs. 13.2, 13.3)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import Literal

import torch
from sklearn.svm import SVC
from torch import Tensor
from torch.optim import Adam
from torch.optim.lr_scheduler import OneCycleLR
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from parnassus.data import DataError, Dataset, Split, open_data
from parnassus.diffusion.ddpm import DDPM
from parnassus.diffusion.denoisers import ResidualMLP
from parnassus.diffusion.drawing import PATHS, draw_images, drowned
from parnassus.diffusion.guidance import clipped
from parnassus.diffusion.objectives import error_by_step
from parnassus.diffusion.samplers import ddim_path, even_grid, last_state
from parnassus.diffusion.schedules import cosine_schedule
from parnassus.report import curves, image_grid
from parnassus.train import Run, at_least, descend, reported

covers = ("B13.2-1", "B13.2.4-6", "B13.2.4-7", "B13.2.4-8", "B13.2.4-9", "B13.2.5-2", "B13.3-2")
expected = {
    "class_accuracy": at_least(
        0.95, "share of the guided samples in which a classifier of real images sees the wished class"
    ),
    "trained_on_samples_accuracy": at_least(
        0.85, "share of real test images named rightly by a classifier that saw samples only"
    ),
    "real_accuracy": reported("the same classifier, trained on real images"),
    "novelty": at_least(
        0.5, "median distance of a sample to the training images, over that of a test image; a copy has 0"
    ),
}
profiles = {
    "smoke": {"steps": 10, "width": 32, "chain": 20, "draws": 5, "count": 60},
    "gpu": {"data": "mnist", "steps": 30_000, "batch": 512, "width": 1_536, "blocks": 6, "chain": 1_000, "lr": 5e-4},
}


@dataclass(frozen=True)
class Experiment:
    data: str = "digits"  # a set of images by class: digits, mnist_mini, mnist, fashion_mnist, or a folder of yours
    steps: int = 1_800  # gradient steps
    batch: int = 128  # images a step
    width: int = 384  # hidden units of the denoiser
    blocks: int = 3  # its residual blocks
    chain: int = 200  # diffusion steps T
    lr: float = 2e-3  # Adam's largest learning rate, reached after a tenth of the steps
    draws: int = 50  # DDIM steps that draw a sample
    guidance: float = 2.0  # 0 ignores the class, 1 is plainly conditional, more is more typical
    count: int = 1_000  # samples that are judged

    def model(self, shape: Sequence[int], classes: int) -> DDPM:
        denoiser = ResidualMLP(tuple(shape), self.width, blocks=self.blocks, classes=classes)
        return DDPM(denoiser, tuple(shape), schedule=cosine_schedule(self.chain), classes=classes)

    def __call__(self, run: Run) -> dict[str, float]:
        data = centred(open_data(self.data)).to(run.device)
        classes = len(data.classes)
        model = run.build(self.model, shape=data.shape, classes=classes)
        trained = learn(run, model, data.train, steps=self.steps, batch=self.batch, lr=self.lr)
        draw = partial(draw_images, trained, steps=min(self.draws, self.chain))

        wished = torch.arange(self.count, device=run.device) % classes
        samples = draw(wished, guidance=self.guidance)
        show_samples(run, data, samples)
        show_chain(run, data, trained, self.guidance)
        show_loss_by_step(run, data.test.x, trained)
        self.show_guidance(run, data, trained)

        judge = classifier(data.train)
        student = classifier(Split(samples, wished))
        return {
            "class_accuracy": accuracy(judge, Split(samples, wished)),
            "trained_on_samples_accuracy": accuracy(student, data.test),
            "real_accuracy": accuracy(judge, data.test),
            "novelty": float(distance(samples, data.train.x) / distance(data.test.x, data.train.x)),
        }

    @torch.no_grad()
    def show_guidance(self, run: Run, data: Dataset, model: DDPM) -> None:
        """How accuracy and diversity answer to the scale, with a third of the samples and half of the steps."""
        judge, wished = classifier(data.train), torch.arange(self.count // 3, device=run.device) % len(data.classes)
        scales = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
        sets = [draw_images(model, wished, guidance=scale, steps=min(25, self.chain)) for scale in scales]
        rows = [
            {
                "scale": scale,
                "class accuracy": accuracy(judge, Split(samples, wished)),
                "diversity": float(variety(samples, wished) / variety(data.train.x, data.train.y)),
            }
            for scale, samples in zip(scales, sets, strict=True)
        ]
        lines = {name: (scales, [row[name] for row in rows]) for name in ("class accuracy", "diversity")}
        caption = (
            "Guidance first buys accuracy with diversity; large scales saturate the pixels, which spreads them again. "
            "Accuracy: a classifier of real images finds the wished class. "
            "Diversity: the spread within a class, as a share of that of real images."
        )
        run.figure("guidance", curves(lines, x_label="guidance scale s", y_label="share"), caption)
        run.table("guidance", rows)
        columns = len(data.classes)
        strips = image_grid(
            visible(torch.cat([samples[:columns] for samples in sets])),
            columns=columns,
            titles=data.classes,
            row_labels=[f"s = {scale:g}" for scale in scales],
        )
        run.figure("by_scale", strips, "One image of each class at each guidance scale; at 0 the class is not heard.")


@dataclass(frozen=True)
class Sample:
    label: int | None = None  # the class to draw, by its number; all in turn unless told
    guidance: float = 2.0  # 0 ignores the class, 1 is plainly conditional, more is more typical
    sampler: Literal["ddim", "ddpm", "heun", "dpm"] = "ddim"  # heun asks the network twice a step, the others once
    steps: int | None = None  # steps of the chain to visit; 50 unless told, or all where there are fewer
    count: int = 100  # how many

    def __call__(self, model: DDPM) -> Tensor:
        return last_state(self.path(model))

    def path(self, model: DDPM) -> Iterator[Tensor]:
        """Every state on the way from noise to the images, pixels in [0, 1]."""
        chain = len(model.schedule)
        steps = min(50, chain) if self.steps is None else self.steps
        self.refuse_nonsense(chain, model.classes)
        every = torch.arange(self.count, device=next(model.parameters()).device) % max(1, model.classes)
        label = every if self.label is None else torch.full_like(every, self.label)
        denoiser = clipped(model.conditioned(label if model.classes else None, self.guidance), model.schedule)
        start = torch.randn(self.count, *model.shape, device=label.device)
        for state in PATHS[self.sampler](denoiser, model.schedule, start, grid=even_grid(chain, steps)):
            yield visible(state)

    def refuse_nonsense(self, chain: int, classes: int) -> None:
        """Say in a sentence what cannot be drawn."""
        if self.label is not None and not classes:
            raise ValueError(f"this model knows no classes, so there is no label {self.label}; leave it out")
        if self.label is not None and not 0 <= self.label < classes:
            raise ValueError(f"there is no label {self.label}; there are {', '.join(map(str, range(classes)))}")
        if not 0 <= self.guidance < inf:
            raise ValueError(f"guidance must be a number from 0 on; got {self.guidance}")
        if self.steps is not None and not 1 <= self.steps <= chain:
            raise ValueError(f"steps must lie between 1 and {chain}, the length of the chain; got {self.steps}")
        if self.count < 1:
            raise ValueError(f"count must be at least 1; got {self.count}")


def learn(run: Run, model: DDPM, split: Split, *, steps: int, batch: int, lr: float) -> DDPM:
    """The moving average of the model over its training, which draws better than where training ends."""
    average = AveragedModel(model, device=run.device, multi_avg_fn=get_ema_multi_avg_fn(0.99))
    model, optimizer = run.prepare(model, partial(Adam, lr=lr))
    warming = OneCycleLR(optimizer, lr, total_steps=steps + 1, pct_start=0.1)
    run.keep("average", average)
    run.keep("warming", warming)
    for step, loss in descend(run, model, optimizer, split.pairs(batch, steps)):
        average.update_parameters(model)
        warming.step()
        run.log(step, loss=loss)
    trained = average.module
    assert isinstance(trained, DDPM)
    run.publish(trained)
    return trained


def centred(data: Dataset) -> Dataset:
    """Images by class, with pixels in [−1, 1], as diffusion wants them."""
    if not data.classes or len(data.shape) != 3:
        raise DataError(f"{data.name} must be images by class; its examples have shape {data.shape}, no classes named.")
    return signed(data)


def signed(data: Dataset) -> Dataset:
    """Pixels from [0, 1] to [−1, 1], of images with classes or without."""
    train, test = (Split(2 * split.x - 1, split.y) for split in (data.train, data.test))
    return replace(data, train=train, test=test)


def visible(images: Tensor) -> Tensor:
    """Pixels back to [0, 1]."""
    return ((images + 1) / 2).clamp(0, 1)


def classifier(split: Split) -> SVC:
    """A support vector machine on raw pixels; 5,000 images teach it enough."""
    few = split.take(5_000)
    assert few.y is not None
    return SVC(C=10.0).fit(few.x.flatten(1).cpu().numpy(), few.y.cpu().numpy())


def accuracy(judge: SVC, split: Split) -> float:
    assert split.y is not None
    return float(judge.score(split.x.flatten(1).cpu().numpy(), split.y.cpu().numpy()))


def variety(images: Tensor, label: Tensor | None) -> Tensor:
    """The standard deviation of a pixel within its class, over all pixels and classes."""
    assert label is not None
    spreads = [images[label == kind].flatten(1).var(0).mean() for kind in label.unique()]
    return torch.stack(spreads).mean().sqrt()


def distance(images: Tensor, real: Tensor) -> Tensor:
    """The median distance to the nearest of the `real` images; a copy has 0."""
    return torch.cdist(images.flatten(1), real.flatten(1)).amin(1).median()


def show_samples(run: Run, data: Dataset, samples: Tensor) -> None:
    columns = len(data.classes) if 2 <= len(data.classes) <= 12 else 10
    by_class = columns == len(data.classes)
    grid = image_grid(visible(samples[: 8 * columns]), columns=columns, titles=data.classes if by_class else None)
    asked = " Each column was asked to be of the class above it." if by_class else ""
    run.figure("samples", grid, f"Drawn from noise.{asked}")
    show_nearest(run, samples[:columns], data.train.x)


def show_nearest(run: Run, drawn: Tensor, known: Tensor) -> None:
    nearest = known[torch.cdist(drawn.flatten(1), known.flatten(1)).argmin(1)]
    pairs = image_grid(visible(torch.cat([drawn, nearest])), columns=len(drawn), row_labels=("drawn", "nearest real"))
    run.figure("nearest", pairs, "Drawn images above the training images most like them: alike, not copied.")


@torch.no_grad()
def show_chain(run: Run, data: Dataset, model: DDPM, guidance: float) -> None:
    """The chain in both directions: data drowned in noise, noise turned into data."""
    rows = min(5, len(data.classes))
    clean = torch.stack([data.test.x[data.test.y == kind][0] for kind in range(rows)])
    noise = torch.randn_like(clean)
    steps, states = drowned(model.schedule, clean, noise, count=10)
    titles = ["x₀", *(f"t = {t + 1}" for t in steps)]
    caption = "The forward chain drowns a digit in noise; what is left of it at step t is √ᾱ_t x₀ (book fig. 13.4)."
    run.figure("noising", image_grid(visible(states.flatten(0, 1)), columns=10, titles=titles), caption)

    label = torch.arange(rows, device=run.device)
    denoiser, chain = clipped(model.conditioned(label, guidance), model.schedule), len(model.schedule)
    path = list(ddim_path(denoiser, model.schedule, noise, grid=even_grid(chain, min(chain, 45))))
    kept = torch.linspace(0, len(path) - 1, 10).long().tolist()
    strip = torch.stack([path[index] for index in kept], 1).flatten(0, 1)
    caption = "The way back, ten states of it: from the same noise to a digit of the class that was asked for."
    titles = ["noise", *[""] * 8, "drawn"]
    run.figure(
        "denoising", image_grid(visible(strip), columns=10, titles=titles, row_labels=data.classes[:rows]), caption
    )


@torch.no_grad()
def show_loss_by_step(run: Run, x: Tensor, model: DDPM) -> None:
    steps = torch.linspace(0, len(model.schedule) - 1, 30).long()
    losses = error_by_step(model.denoiser, model.schedule, x, steps)
    figure = curves({"loss": (steps + 1, losses)}, x_label="step t", y_label="E‖ε_θ − ε‖² a pixel", log_y=True)
    run.figure(
        "loss_by_step", figure, "Noise is hardest to find where there is least of it (test images, no class given)."
    )
