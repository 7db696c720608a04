"""A network of scores at many noise levels draws handwritten digits by annealed Langevin steps (book sec. 13.2.7)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.optim.lr_scheduler import OneCycleLR
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from parnassus.data import DataError, Dataset, Split, open_data
from parnassus.diffusion.annealed_langevin import annealed_langevin_path
from parnassus.diffusion.denoisers import ResidualMLP
from parnassus.diffusion.experiments.diffusion_on_digits import accuracy, classifier, distance, show_nearest, visible
from parnassus.diffusion.noise_levels import geometric_levels
from parnassus.diffusion.score_matching import matching_at_levels
from parnassus.diffusion.score_model import ScoreModel
from parnassus.optim import Adam
from parnassus.report import curves, image_grid
from parnassus.train import Run, at_least, between, descend, reported

covers = ("B13.2.7-3", "B13.2.7-4")
expected = {
    "student_accuracy": at_least(
        0.75,
        "share of real test images named rightly by a classifier that saw samples only, named by one of real images",
    ),
    "real_accuracy": reported("the same of the classifier of real images"),
    "novelty": between(
        0.6, 1.6, "median distance of a sample to the training images, over that of a test image; a copy has 0"
    ),
    "loss": reported("λ-weighted denoising loss on unseen images, a pixel"),
}
profiles = {
    "smoke": {"steps": 10, "width": 32, "blocks": 1, "levels": 4, "walk": 2, "count": 60},
    "gpu": {"data": "mnist", "steps": 30_000, "batch": 512, "width": 1_536, "blocks": 6, "levels": 60, "largest": 30.0},
}


@dataclass(frozen=True)
class Experiment:
    data: str = "digits"  # images: digits, mnist_mini, mnist, fashion_mnist, or a folder of yours, by class
    steps: int = 1_200  # gradient steps
    batch: int = 128  # images a step
    width: int = 256  # hidden units of the network
    blocks: int = 2  # its residual blocks
    lr: float = 2e-3  # Adam's largest learning rate, reached after a tenth of the steps
    levels: int = 16  # noise levels T
    smallest: float = 0.05  # the last blur σ_1, for pixels in [−1, 1]
    largest: float = 6.0  # the first blur σ_T: of the size of the distance between two images
    walk: int = 20  # Langevin steps at each level
    factor: float = 0.15  # step c_t over σ_t²
    count: int = 400  # samples that are judged

    def model(self, shape: Sequence[int]) -> ScoreModel:
        network = ResidualMLP(tuple(shape), self.width, blocks=self.blocks)
        return ScoreModel(network, tuple(shape), geometric_levels(self.levels, self.smallest, self.largest))

    def __call__(self, run: Run) -> dict[str, float]:
        data = self.opened().to(run.device)
        model = run.build(self.model, shape=data.shape)
        average = AveragedModel(model, device=run.device, multi_avg_fn=get_ema_multi_avg_fn(0.99))
        model, optimizer = run.prepare(model, partial(Adam, lr=self.lr))
        warming = OneCycleLR(optimizer, self.lr, total_steps=self.steps + 1, pct_start=0.1, cycle_momentum=False)
        run.keep("average", average)
        run.keep("warming", warming)
        batches = data.train.batches(self.batch, self.steps).map(centred)
        for step, loss in descend(run, model, optimizer, batches):
            average.update_parameters(model)
            warming.step()
            run.log(step, loss=loss)

        trained = average.module
        assert isinstance(trained, ScoreModel)
        run.publish(trained)
        unseen, known = centred(data.test.x[:2_000]), centred(data.train.x)
        with torch.no_grad():
            samples = trained.sample(self.count, steps=self.walk, factor=self.factor)
            self.show_samples(run, samples, known)
            self.show_annealing(run, trained)
            losses = show_levels(run, trained, unseen)
        judge, named = classifier(data.train), visible(samples)
        student = classifier(Split(named, torch.from_numpy(judge.predict(named.flatten(1).cpu().numpy()))))
        return {
            "student_accuracy": accuracy(student, data.test),
            "real_accuracy": accuracy(judge, data.test),
            "novelty": float(distance(samples, known) / distance(unseen, known)),
            "loss": float(losses.mean()),
        }

    def opened(self) -> Dataset:
        data = open_data(self.data)
        if len(data.shape) != 3 or not data.classes:
            raise DataError(f"{self.data} must be images by class; its examples have shape {data.shape}.")
        return data

    def show_samples(self, run: Run, samples: Tensor, known: Tensor) -> None:
        run.figure("samples", image_grid(visible(samples[:64]), columns=16), "Drawn from noise by annealed steps.")
        show_nearest(run, samples[:12], known)

    def show_annealing(self, run: Run, model: ScoreModel) -> None:
        """Six samples at some of the levels, each divided by what makes the blurred images have unit variance."""
        start = model.levels[-1] * torch.randn(6, *model.shape, device=model.levels.device)
        path = list(annealed_langevin_path(model.score, model.levels, start, steps=self.walk, factor=self.factor))
        kept = sorted({int(index) for index in torch.linspace(0, self.levels, 10)})
        sigmas = [float(model.levels[-1]), *model.levels.flip(0).tolist()]
        strip = torch.stack([path[index] / (1 + sigmas[index] ** 2) ** 0.5 for index in kept], 1).flatten(0, 1)
        titles = ["noise", *(f"σ = {sigmas[index]:.2g}" for index in kept[1:])]
        run.figure(
            "annealing", image_grid(visible(strip), columns=len(kept), titles=titles),
            "Six samples at the end of ten of the levels: broad strokes come first, edges last.",
        )  # fmt: skip


@dataclass(frozen=True)
class Sample:
    steps: int = 20  # Langevin steps at each level
    factor: float = 0.15  # step over σ²
    count: int = 64  # how many images

    def __call__(self, model: ScoreModel) -> Tensor:
        return visible(model.sample(self.count, steps=self.steps, factor=self.factor))


def centred(x: Tensor) -> Tensor:
    """Pixels from [0, 1] to [−1, 1]."""
    return 2 * x - 1


def show_levels(run: Run, model: ScoreModel, unseen: Tensor) -> Tensor:
    """The loss at each level, and what the network makes of an image under some of them."""
    losses = []
    for number in range(len(model.levels)):
        t = torch.full((len(unseen),), number, device=unseen.device)
        per_example = matching_at_levels(model.score, model.levels, unseen, t, torch.randn_like(unseen))
        losses.append(per_example.mean() / unseen[0].numel())
    together = torch.stack(losses)
    figure = curves({"": (model.levels, together)}, x_label="noise σ", y_label="σ² ‖s − target‖² a pixel", log_x=True)
    run.figure(
        "loss_by_level", figure, "With λ = σ² the loss is the share of the noise that cannot be told from the image: "
        "little under a wide blur, where noise is all there is to see, nearly all of it under a narrow one.",
    )  # fmt: skip
    shown = sorted({int(index) for index in torch.linspace(0, len(model.levels) - 1, 6)})
    x, rows = unseen[:10], []
    for number in shown:
        sigma = model.levels[number]
        noisy = x + sigma * torch.randn_like(x)
        t = torch.full((len(x),), number, device=x.device)
        rows += [noisy / (1 + sigma.square()).sqrt(), noisy + sigma.square() * model.score(noisy, t)]
    names = [name for number in shown for name in (f"σ = {float(model.levels[number]):.2g}", "x + σ² s")]
    run.figure(
        "denoised", image_grid(visible(torch.cat(rows)), columns=10, row_labels=names),
        "Unseen images under six blurs (scaled to be seen), and below each the step along the score that Tweedie's "
        "formula takes to the mean of what the clean image may be.",
    )  # fmt: skip
    return together
