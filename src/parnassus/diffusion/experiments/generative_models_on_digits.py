"""Sample quality of a flow, a GAN and a diffusion model of digits (book secs. 13.1, 13.2).

All three are trained on the same batches with networks of similar size. Samples are compared with test images in the
features of a classifier of real digits; only the flow has an exact likelihood.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Literal

import torch
from torch import Tensor, nn

from parnassus.adversarial.gan import GAN
from parnassus.data import DataError, Dataset, open_data
from parnassus.diffusion.chain.forward_process import Denoiser
from parnassus.diffusion.chain.schedules import Schedule, cosine_schedule
from parnassus.diffusion.guidance import clip_x0
from parnassus.diffusion.models.ddpm import DDPM
from parnassus.diffusion.networks.mlp_denoisers import ResidualMLP
from parnassus.diffusion.samplers.ddim import ddim
from parnassus.diffusion.samplers.time_steps import evenly_spaced_steps
from parnassus.flows import Chain, Flow, GaussianBase, real_nvp
from parnassus.flows.images.dequantisation import DequantisedFlow, Logit, count_grey_levels, quantise
from parnassus.layers import count_parameters, leaky_relu, mlp
from parnassus.metrics import FeatureNetwork, SampleQuality, sample_quality
from parnassus.optim import Adam
from parnassus.report import bar_chart, image_grid
from parnassus.setting_types import GreyImageData
from parnassus.train import Positive, Run, at_least, at_most, no_band

covers = ("B13.1-15",)
expected = {
    "frechet_flow": no_band("Fréchet distance between the flow's samples and test images, in classifier features"),
    "frechet_gan": no_band("Fréchet distance between the GAN's samples and test images, in classifier features"),
    "frechet_diffusion": no_band(
        "Fréchet distance between the diffusion model's samples and test images, in classifier features"
    ),
    "frechet_real": no_band("Fréchet distance between training and test images: the value of a perfect model"),
    "frechet_ratio": no_band("ratio of the Fréchet distances of flow and diffusion model"),
    "recall_flow": no_band("fraction of test images within the manifold of the flow's samples"),
    "recall_gan": no_band("fraction of test images within the manifold of the GAN's samples"),
    "recall_diffusion": no_band("fraction of test images within the manifold of the diffusion model's samples"),
    "flow_bits": at_most(3.0, "bits per pixel of test images under the flow"),
    "classifier_accuracy": at_least(0.9, "test accuracy of the classifier that computes the features"),
}
profiles = {
    "smoke": {"steps": 5, "width": 16, "num_samples": 60, "classifier_steps": 5, "num_train_timesteps": 20},
    "gpu": {
        "data": "mnist",
        "steps": 20_000,
        "batch_size": 256,
        "width": 1_024,
        "num_samples": 10_000,
        "classifier_steps": 2_000,
    },
}
NAMES = ("flow", "GAN", "diffusion")


class GenerativeModels(nn.Module):
    """A flow, a GAN and a diffusion model, each with its own loss."""

    def __init__(self, flow: DequantisedFlow, gan: GAN, diffusion: DDPM) -> None:
        super().__init__()
        self.flow, self.gan, self.diffusion = flow, gan, diffusion

    @torch.no_grad()
    def sample(self, name: str, count: int) -> Tensor:
        """Images of the model `name`, pixels in [0, 1]."""
        if name == "flow":
            return self.flow.sample(count).reshape(count, *self.diffusion.shape)
        images = self.gan.sample(count) if name == "GAN" else self.diffusion.sample(count, sampler=_sample_ddim)
        return quantise((images + 1) / 2, levels=self.flow.levels)


@dataclass(frozen=True)
class Experiment:
    data: GreyImageData = "digits"  # images by class: name of a data set, or path of a folder
    image_size: Positive[int] | None = None  # resize the images of a folder to squares with sides of this many pixels
    steps: Positive[int] = 1_200  # gradient steps of each model
    batch_size: Positive[int] = 128  # images per gradient step
    width: Positive[int] = 256  # hidden units of every network
    latent_dim: Positive[int] = 32  # dimension of the latent noise of the GAN
    num_train_timesteps: Positive[int] = 200  # number of diffusion steps T
    learning_rate: Positive[float] = 1e-3  # initial learning rate of Adam, decayed linearly to 0
    num_samples: Positive[int] = 1_000  # number of images to evaluate
    classifier_steps: Positive[int] = 400  # gradient steps of the classifier that computes the features

    def model(self, shape: Sequence[int], levels: int) -> GenerativeModels:
        pixels = prod(shape)
        transform = Chain([real_nvp(pixels, num_layers=8, width=self.width), Logit()])
        flow = DequantisedFlow(Flow(transform, GaussianBase((pixels,))), (pixels,), levels=levels)
        generator = nn.Sequential(
            mlp((self.latent_dim, self.width, self.width, pixels), activation=leaky_relu),
            nn.Tanh(),
            nn.Unflatten(1, tuple(shape)),
        )
        discriminator = nn.Sequential(nn.Flatten(), mlp((pixels, self.width, self.width, 1), activation=leaky_relu))
        denoiser = ResidualMLP(tuple(shape), self.width, blocks=3)
        return GenerativeModels(
            flow,
            GAN(generator, discriminator, latent_dim=self.latent_dim),
            DDPM(denoiser, tuple(shape), schedule=cosine_schedule(self.num_train_timesteps)),
        )

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_data(self.data, size=self.image_size).to(run.device)
        if len(data.shape) != 3 or data.train.y is None or data.test.y is None:
            raise DataError(f"data must be images by class; {data.name} has examples of shape {data.shape}")
        model = run.build(self.model, shape=data.shape, levels=count_grey_levels(data.train.x[:1_000]))
        adam = partial(Adam, lr=self.learning_rate)
        gan_adam = partial(adam, betas=(0.5, 0.99))
        model.flow, flow_optimizer = run.prepare(model.flow, adam)
        model.diffusion, diffusion_optimizer = run.prepare(model.diffusion, adam)
        model.gan.generator, generator_optimizer = run.prepare(model.gan.generator, gan_adam)
        model.gan.discriminator, discriminator_optimizer = run.prepare(model.gan.discriminator, gan_adam)
        optimizers = (flow_optimizer, diffusion_optimizer, generator_optimizer, discriminator_optimizer)
        for step, x in run.steps(data.train.batches(self.batch_size, self.steps)):
            for optimizer in optimizers:
                optimizer.param_groups[0]["lr"] = self.learning_rate * (1 - step / self.steps)
            image = 2 * x - 1
            bits = model.flow.loss(x.flatten(1))
            run.update(flow_optimizer, bits)
            error = model.diffusion.loss(image)
            run.update(diffusion_optimizer, error)
            run.update(discriminator_optimizer, model.gan.discriminator_loss(image))
            loss = model.gan.generator_loss(len(image))
            run.update(generator_optimizer, loss)
            run.log(step, **{"bits/flow": bits.detach(), "error/diffusion": error.detach(), "loss/GAN": loss.detach()})
        model.eval()
        run.publish(model)

        network = FeatureNetwork.fit(
            data.train.x,
            data.train.y,
            name=f"a ResNet trained on {data.name}",
            steps=self.classifier_steps,
            seed=run.seed,
        )
        real = network(data.test.x[: self.num_samples])
        samples = {name: model.sample(name, self.num_samples) for name in NAMES}
        quality = {name: sample_quality(real, network(images)) for name, images in samples.items()}
        quality["training images"] = sample_quality(real, network(data.train.x[: self.num_samples]))
        with torch.no_grad():
            flow_bits = float(model.flow.bits(data.test.x[: self.num_samples].flatten(1)).mean())
        self.plot_quality(run, data, samples, quality, model)
        return {
            "frechet_flow": quality["flow"].frechet_distance,
            "frechet_gan": quality["GAN"].frechet_distance,
            "frechet_diffusion": quality["diffusion"].frechet_distance,
            "frechet_real": quality["training images"].frechet_distance,
            "frechet_ratio": quality["flow"].frechet_distance / quality["diffusion"].frechet_distance,
            "recall_flow": quality["flow"].precision_recall.recall,
            "recall_gan": quality["GAN"].precision_recall.recall,
            "recall_diffusion": quality["diffusion"].precision_recall.recall,
            "flow_bits": flow_bits,
            "classifier_accuracy": network.accuracy(data.test.x, data.test.y),
        }

    def plot_quality(
        self,
        run: Run,
        data: Dataset,
        samples: dict[str, Tensor],
        quality: dict[str, SampleQuality],
        model: GenerativeModels,
    ) -> None:
        rows = torch.cat([data.test.x[:12], *(images[:12] for images in samples.values())])
        run.figure(
            "samples",
            image_grid(rows, columns=12, row_labels=["test data", *NAMES]),
            "The first twelve samples of each model. Samples of the flow are noisy, since its density covers the whole "
            "space; samples of a GAN of dense layers are sharp but lack diversity (mode collapse).",
        )
        run.figure(
            "Fréchet distance",
            bar_chart(
                {name: each.frechet_distance for name, each in quality.items()},
                x_label="Fréchet distance to test images",
            ),
            f"Fréchet distance in the features of {quality['flow'].network} (not Inception features).",
        )
        density = {"flow": "exact", "GAN": "none", "diffusion": "lower bound", "training images": ""}
        modules = {"flow": model.flow, "GAN": model.gan.generator, "diffusion": model.diffusion}
        run.table(
            "quality",
            [
                {
                    "images": name,
                    "Fréchet distance": each.frechet_distance,
                    "kernel distance": each.kernel_distance.value,
                    "± standard error": each.kernel_distance.standard_error,
                    "precision": each.precision_recall.precision,
                    "recall": each.precision_recall.recall,
                    "classifier score": each.inception_score,
                    "likelihood": density[name],
                    "parameters for sampling": count_parameters(modules[name]) if name in modules else "",
                }
                for name, each in quality.items()
            ],
            f"{self.num_samples:,} images each, in the features of {quality['flow'].network}.",
        )
        run.note(
            "comparison of flow and GAN",
            "According to the book, flows usually have lower sample quality than GANs. Fréchet distances here: flow "
            f"{quality['flow'].frechet_distance:.3g}, GAN {quality['GAN'].frechet_distance:.3g}, diffusion "
            f"{quality['diffusion'].frechet_distance:.3g}. The result depends on the GAN: this simple one has a recall "
            f"of {quality['GAN'].precision_recall.recall:.0%}, the flow {quality['flow'].precision_recall.recall:.0%}.",
        )


@dataclass(frozen=True)
class Sample:
    model: Literal["flow", "GAN", "diffusion"] = "diffusion"  # model to sample from
    num_samples: Positive[int] = 64  # number of images

    def __call__(self, model: GenerativeModels) -> Tensor:

        return model.sample(self.model, self.num_samples)


def _sample_ddim(denoiser: Denoiser, schedule: Schedule, start: Tensor) -> Tensor:
    return ddim(
        clip_x0(denoiser, schedule), schedule, start, grid=evenly_spaced_steps(len(schedule), min(50, len(schedule)))
    )
