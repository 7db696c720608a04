"""InfoVAE (MMD-VAE) compared with the VAE on digits: mutual information and prior match (book sec. 6.4)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.optim import Adam

from parnassus.data import Dataset, open_grey_images
from parnassus.latent.autoencoders.dense_networks import mlp_decoder, mlp_encoder
from parnassus.latent.variational.aggregated_posterior import CodeInformation, code_information
from parnassus.latent.variational.decoders import BernoulliDecoder
from parnassus.latent.variational.elbo import NegativeELBO, Objective
from parnassus.latent.variational.info_vae import InfoVAE
from parnassus.latent.variational.reparametrisation import reparametrise
from parnassus.latent.variational.vae import VAE
from parnassus.probability import PairwiseKernel, rbf_kernel, squared_mmd
from parnassus.report import PALETTE, image_grid, subplots
from parnassus.setting_types import GreyImageData
from parnassus.train import ModelCollection, NonNegative, Positive, Run, at_least, at_most, descend, no_band

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B6.4-1", "B6.4-5", "B6.4-8")
expected = {
    "information_gain": at_least(1.0, "I(X, Z) of the MMD-VAE minus that of the VAE on test images, nats"),
    "information_vae": no_band("I(X, Z) of the VAE, nats"),
    "information_mmd_vae": no_band("I(X, Z) of the MMD-VAE; at most the logarithm of the number of images"),
    "information_wide_start": at_most(0.1, "I(X, Z) of an MMD-VAE whose posteriors are initialised at the prior"),
    "distortion_gain": no_band("distortion of the VAE minus that of the MMD-VAE on test images, nats"),
    "discrepancy_vae": no_band("MMD² between the codes of test images and the prior, VAE"),
    "discrepancy_mmd_vae": at_most(0.03, "MMD² between the codes of test images and the prior, MMD-VAE"),
    "discrepancy_beta_0": at_least(0.05, "MMD² between the codes of test images and the prior, β = 0 (no prior term)"),
    "discrepancy_chance": no_band("MMD² between two samples of the prior"),
    "negative_elbo_gap": no_band("negative ELBO of the MMD-VAE minus that of the VAE, nats"),
}
profiles = {
    "smoke": {"steps": 10, "width": 16},
    "gpu": {"data": "mnist", "steps": 15_000, "batch_size": 512, "width": 1_024, "learning_rate": 5e-4},
}
NAMES = ("β = 0", "VAE", "MMD-VAE", "MMD-VAE, wide start")
NARROW = -4.0  # initial log σ² of narrow posteriors


@dataclass(frozen=True)
class Experiment:
    data: GreyImageData = "digits"  # images: name of a data set, or path of a folder
    image_size: Positive[int] | None = None  # resize the images of a folder to squares with sides of this many pixels
    steps: Positive[int] = 600  # gradient steps
    batch_size: Positive[int] = 256  # images per gradient step, and codes per estimate of the MMD
    latent_dim: Positive[int] = 2  # dimension of the code; the figures show the first two coordinates
    width: Positive[int] = 128  # hidden units
    learning_rate: Positive[float] = 3e-3  # Adam's learning rate
    mmd_weight: NonNegative[float] = 100.0  # weight λ of the MMD, with α = 1
    kernel_bandwidth: Positive[float] = 1.0  # bandwidth h of the Gaussian kernel

    def model(self, shape: Sequence[int]) -> ModelCollection[VAE]:
        mmd = InfoVAE(1.0, self.mmd_weight, kernel=self.kernel())
        objectives: tuple[tuple[Objective, float], ...] = (
            (NegativeELBO(0.0), NARROW),
            (NegativeELBO(), NARROW),
            (mmd, NARROW),
            (mmd, 0.0),
        )
        models = (self.build_vae(shape, *each) for each in objectives)
        return ModelCollection(dict(zip(NAMES, models, strict=True)))

    def kernel(self) -> PairwiseKernel:
        return partial(rbf_kernel, length_scale=self.kernel_bandwidth)

    def build_vae(self, shape: Sequence[int], objective: Objective, log_variance: float) -> VAE:
        """A VAE whose posteriors initially have about this log-variance for every image."""
        encoder = mlp_encoder(shape, 2 * self.latent_dim, width=self.width, num_layers=2)
        nn.init.constant_(encoder.get_parameter("1.2.bias").data[self.latent_dim :], log_variance)
        decoder = BernoulliDecoder(mlp_decoder(self.latent_dim, shape, width=self.width, num_layers=2))
        return VAE(encoder, decoder, self.latent_dim, objective=objective)

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_grey_images(self.data, self.image_size).to(run.device)
        model, optimizer = run.prepare(run.build(self.model, shape=data.shape), partial(Adam, lr=self.learning_rate))
        batches = data.train.batches(self.batch_size, self.steps).map(torch.bernoulli)
        for step, loss in descend(run, model, optimizer, batches):
            run.log(step, loss=loss)

        x = torch.bernoulli(data.test.x[:1_000])
        metrics = {name: evaluate_vae(model.model(name), x, self.kernel()) for name in NAMES}
        run.figure("codes", plot_codes(model, data), CODES)
        with torch.no_grad():
            z = torch.randn(12, self.latent_dim, device=run.device)
            samples = torch.cat([model.model(name).decode(z) for name in NAMES])
        run.figure("samples", image_grid(samples, columns=12, row_labels=NAMES), SAMPLES)
        run.table("metrics", [{"": name, **metrics[name]} for name in NAMES], "Test images; all but MMD² in nats.")
        vae, mmd = metrics["VAE"], metrics["MMD-VAE"]
        chance = torch.stack(
            [squared_mmd(*torch.randn(2, len(x), self.latent_dim), kernel=self.kernel()) for _ in range(10)]
        )
        return {
            "information_gain": mmd["I(X, Z)"] - vae["I(X, Z)"],
            "information_vae": vae["I(X, Z)"],
            "information_mmd_vae": mmd["I(X, Z)"],
            "information_wide_start": metrics["MMD-VAE, wide start"]["I(X, Z)"],
            "distortion_gain": vae["distortion"] - mmd["distortion"],
            "discrepancy_vae": vae["MMD²"],
            "discrepancy_mmd_vae": mmd["MMD²"],
            "discrepancy_beta_0": metrics["β = 0"]["MMD²"],
            "discrepancy_chance": float(chance.mean()),
            "negative_elbo_gap": mmd["distortion"] + mmd["rate"] - vae["distortion"] - vae["rate"],
        }


@dataclass(frozen=True)
class Sample:
    num_samples: Positive[int] = 64  # number of samples

    def __call__(self, model: ModelCollection[VAE]) -> Tensor:
        vae = model.model("MMD-VAE")
        return vae.decode(vae.prior().sample((self.num_samples,)))


CODES = (
    "One sample of the code of each training image; the circles contain 39 % and 86 % of the prior. Without a prior "
    "term (β = 0) the codes are unconstrained. The VAE penalises the KL divergence of each posterior, so posteriors "
    "are wide and overlap. The MMD-VAE penalises only the aggregated posterior: each posterior is narrow, and together "
    "they match the prior. With posteriors initialised at the prior it does not learn: the MMD is already minimal, "
    "and narrowing a single posterior increases it."
)
SAMPLES = "Images decoded from the same twelve samples of the prior."


@torch.no_grad()
def evaluate_vae(vae: VAE, x: Tensor, kernel: PairwiseKernel) -> dict[str, float]:
    mean, log_variance = vae.posterior_parameters(x)
    information: CodeInformation = code_information(mean, log_variance, num_draws=10)
    z = reparametrise(mean, log_variance)
    distortion = torch.stack([vae.terms(x).distortion for _ in range(10)]).mean()
    return {
        "distortion": float(distortion),
        "rate": information.rate,
        "I(X, Z)": information.information,
        "KL(q(z), p(z))": information.prior_gap,
        "MMD²": float(squared_mmd(z, torch.randn_like(z), kernel=kernel)),
    }


@torch.no_grad()
def plot_codes(model: ModelCollection[VAE], data: Dataset) -> "Figure":
    """Codes of the training images under each objective, with circles of the prior."""
    figure, axes = subplots(2, 2, size=(8.4, 8.4))
    x, labels = data.train.x[:2_000], data.train.y
    circle = torch.linspace(0, 2 * torch.pi, 100)
    for index, name in enumerate(NAMES):
        ax = axes[index // 2, index % 2]
        z = reparametrise(*model.model(name).posterior_parameters(x))[:, :2].cpu()
        colours = PALETTE[0] if labels is None else [PALETTE[int(each) % len(PALETTE)] for each in labels[: len(z)]]
        ax.scatter(z[:, 0], z[:, 1], s=4, c=colours, linewidths=0, alpha=0.8, rasterized=True)
        for radius in (1, 2):
            ax.plot(radius * circle.cos(), radius * circle.sin(), color="#808890", linestyle="--", linewidth=1.2)
        ax.set(xlabel="z₁", ylabel="z₂")
        ax.set_title(name)
        ax.set_aspect("equal")
        limit = max(3.0, float(z.abs().quantile(0.995)))
        ax.set(xlim=(-limit, limit), ylim=(-limit, limit))
    return figure
