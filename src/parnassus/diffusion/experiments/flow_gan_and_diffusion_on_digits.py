"""Do flows draw worse than GANs? A flow, a GAN and a diffusion model on the same digits (book secs. 13.1, 13.2).

All three see the same batches and have networks of like size. A judge that learned to read real digits compares their
samples with unseen ones; only the flow also knows how likely an image is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import prod

import torch
from torch import Tensor, nn

from parnassus.adversarial.gan import GAN
from parnassus.convolution import FeatureNetwork, SampleQuality, sample_quality
from parnassus.data import DataError, Dataset, open_data
from parnassus.diffusion.ddpm import DDPM
from parnassus.diffusion.denoisers import ResidualMLP
from parnassus.diffusion.guidance import clipped
from parnassus.diffusion.process import Denoiser
from parnassus.diffusion.samplers import ddim, even_grid
from parnassus.diffusion.schedules import Schedule, cosine_schedule
from parnassus.flows import Chain, Flow, GaussianBase, real_nvp
from parnassus.flows.dequantisation import Dequantised, Logit, grey_levels, quantise
from parnassus.layers import leaky_relu, mlp, parameter_count
from parnassus.optim import Adam
from parnassus.report import bars, image_grid
from parnassus.train import Run, at_least, at_most, reported

covers = ("B13.1-15",)
expected = {
    "frechet_flow": reported("Fréchet distance of the flow's samples to unseen images, in the judge's features"),
    "frechet_gan": reported("the same for the GAN's"),
    "frechet_diffusion": reported("the same for the diffusion model's"),
    "frechet_real": reported("the same for training images: what sampling alone leaves"),
    "flow_over_diffusion": reported("Fréchet distance of the flow over that of the diffusion model"),
    "recall_flow": reported("share of unseen images that lie among the flow's samples"),
    "recall_gan": reported("the same for the GAN"),
    "recall_diffusion": reported("the same for the diffusion model"),
    "flow_bits": at_most(3.0, "bits a pixel that the flow needs for an unseen image; a density only the flow has"),
    "judge_accuracy": at_least(0.9, "share of unseen images that the judge reads right"),
}
profiles = {
    "smoke": {"steps": 5, "width": 16, "count": 60, "judge_steps": 5, "chain": 20},
    "gpu": {"data": "mnist", "steps": 20_000, "batch": 256, "width": 1_024, "count": 10_000, "judge_steps": 2_000},
}
NAMES = ("flow", "GAN", "diffusion")


class Rivals(nn.Module):
    """The three models; each has its own loss."""

    def __init__(self, flow: Dequantised, gan: GAN, diffusion: DDPM) -> None:
        super().__init__()
        self.flow, self.gan, self.diffusion = flow, gan, diffusion

    @torch.no_grad()
    def sample(self, name: str, count: int) -> Tensor:
        """Images by one of the three, pixels in [0, 1]."""
        if name == "flow":
            return self.flow.sample(count).reshape(count, *self.diffusion.shape)
        drawn = self.gan.sample(count) if name == "GAN" else self.diffusion.sample(count, sampler=_few_steps)
        return quantise((drawn + 1) / 2, levels=self.flow.levels)  # as an image file would hold it


@dataclass(frozen=True)
class Experiment:
    data: str = "digits"  # images by class: digits, mnist_mini, mnist, fashion_mnist, or a folder of yours
    steps: int = 1_200  # gradient steps of each model
    batch: int = 128  # images a step
    width: int = 256  # hidden units of every network
    noise: int = 32  # numbers from which the GAN makes an image
    chain: int = 200  # steps of the diffusion chain
    lr: float = 1e-3  # Adam's learning rate at first; it falls to 0 along a line
    count: int = 1_000  # images that are judged
    judge_steps: int = 400  # gradient steps of the judge

    def model(self, shape: Sequence[int], levels: int) -> Rivals:
        pixels = prod(shape)
        cube = Chain([real_nvp(pixels, layers=8, width=self.width), Logit()])
        flow = Dequantised(Flow(cube, GaussianBase((pixels,))), (pixels,), levels=levels)
        forger = nn.Sequential(
            mlp((self.noise, self.width, self.width, pixels), activation=leaky_relu),
            nn.Tanh(),
            nn.Unflatten(1, tuple(shape)),
        )
        critic = nn.Sequential(nn.Flatten(), mlp((pixels, self.width, self.width, 1), activation=leaky_relu))
        denoiser = ResidualMLP(tuple(shape), self.width, blocks=3)
        return Rivals(
            flow,
            GAN(forger, critic, noise=self.noise),
            DDPM(denoiser, tuple(shape), schedule=cosine_schedule(self.chain)),
        )

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_data(self.data).to(run.device)
        if len(data.shape) != 3 or data.train.y is None or data.test.y is None:
            raise DataError(f"{data.name} must be images by class; its examples have shape {data.shape}.")
        model = run.build(self.model, shape=data.shape, levels=grey_levels(data.train.x[:1_000]))
        adam = partial(Adam, lr=self.lr)
        model.flow, flow = run.prepare(model.flow, adam)
        model.diffusion, diffusion = run.prepare(model.diffusion, adam)
        model.gan.generator, forger = run.prepare(model.gan.generator, partial(adam, betas=(0.5, 0.99)))
        model.gan.discriminator, critic = run.prepare(model.gan.discriminator, partial(adam, betas=(0.5, 0.99)))
        for step, x in run.steps(data.train.batches(self.batch, self.steps)):
            for optimizer in (flow, diffusion, forger, critic):
                optimizer.param_groups[0]["lr"] = self.lr * (1 - step / self.steps)
            image = 2 * x - 1
            bits = model.flow.loss(x.flatten(1))
            run.update(flow, bits)
            error = model.diffusion.loss(image)
            run.update(diffusion, error)
            run.update(critic, model.gan.discriminator_loss(image))
            forged = model.gan.generator_loss(len(image))
            run.update(forger, forged)
            run.log(
                step, **{"bits/flow": bits.detach(), "error/diffusion": error.detach(), "loss/GAN": forged.detach()}
            )
        model.eval()
        run.publish(model)

        judge = FeatureNetwork.fit(
            data.train.x, data.train.y, name=f"a ResNet trained on {data.name}", steps=self.judge_steps, seed=run.seed
        )
        real = judge(data.test.x[: self.count])
        sets = {name: model.sample(name, self.count) for name in NAMES}
        found = {name: sample_quality(real, judge(images)) for name, images in sets.items()}
        found["real"] = sample_quality(real, judge(data.train.x[: self.count]))
        with torch.no_grad():
            flow_bits = float(model.flow.bits(data.test.x[: self.count].flatten(1)).mean())
        self.show(run, data, sets, found, model)
        return {
            "frechet_flow": found["flow"].frechet,
            "frechet_gan": found["GAN"].frechet,
            "frechet_diffusion": found["diffusion"].frechet,
            "frechet_real": found["real"].frechet,
            "flow_over_diffusion": found["flow"].frechet / found["diffusion"].frechet,
            "recall_flow": found["flow"].coverage.recall,
            "recall_gan": found["GAN"].coverage.recall,
            "recall_diffusion": found["diffusion"].coverage.recall,
            "flow_bits": flow_bits,
            "judge_accuracy": judge.accuracy(data.test.x, data.test.y),
        }

    def show(
        self, run: Run, data: Dataset, sets: dict[str, Tensor], found: dict[str, SampleQuality], model: Rivals
    ) -> None:
        rows = torch.cat([data.test.x[:12], *(images[:12] for images in sets.values())])
        run.figure(
            "samples",
            image_grid(rows, columns=12, row_labels=["unseen", *NAMES]),
            "The first twelve of each, not chosen. The flow must spread its density over the whole space, so its "
            "images have a grain. A plain GAN of dense networks draws clean strokes, and soon a few images only: look "
            "for twins.",
        )
        run.figure(
            "distance",
            bars({name: each.frechet for name, each in found.items()}, x_label="Fréchet distance to unseen images"),
            f"Smaller is nearer, in the features of {found['real'].judge}; these are no Inception features.",
        )
        what = {"flow": "exact", "GAN": "none", "diffusion": "a bound", "real": ""}
        numbers = {"flow": model.flow, "GAN": model.gan.generator, "diffusion": model.diffusion}
        run.table(
            "quality",
            [
                {
                    "images": name,
                    "Fréchet": each.frechet,
                    "kernel": each.kernel.value,
                    "± kernel": each.kernel.error,
                    "precision": each.coverage.precision,
                    "recall": each.coverage.recall,
                    "classifier score": each.score,
                    "density": what[name],
                    "parameters that draw": parameter_count(numbers[name]) if name in numbers else "",
                }
                for name, each in found.items()
            ],
            f"{self.count:,} images each, judged by {found['real'].judge}.",
        )
        run.note(
            "is it so?",
            "The book says that flows usually draw worse than GANs, and diffusion models well. Distances here: flow "
            f"{found['flow'].frechet:.3g}, GAN {found['GAN'].frechet:.3g}, diffusion {found['diffusion'].frechet:.3g}. "
            "How a GAN fares against a flow depends on the GAN: a plain one like this forgets. Of the unseen images "
            f"{found['GAN'].coverage.recall:.0%} lie among its own, {found['flow'].coverage.recall:.0%} among those of "
            "the flow.",
        )


@dataclass(frozen=True)
class Sample:
    model: str = "diffusion"  # flow, GAN or diffusion
    count: int = 64  # how many

    def __call__(self, model: Rivals) -> Tensor:
        if self.model not in NAMES:
            raise DataError(f"there is no model {self.model!r} here; choose among {', '.join(NAMES)}")
        return model.sample(self.model, self.count)


def _few_steps(denoiser: Denoiser, schedule: Schedule, start: Tensor) -> Tensor:
    return ddim(clipped(denoiser, schedule), schedule, start, grid=even_grid(len(schedule), min(50, len(schedule))))
