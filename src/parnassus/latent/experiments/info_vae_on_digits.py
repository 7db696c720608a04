"""Codes that speak and still look like the prior: MMD-VAE beside VAE on digits (book sec. 6.4)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.optim import Adam

from parnassus.data import Dataset, open_data
from parnassus.latent.aggregate import CodeInformation, code_information
from parnassus.latent.decoders import BernoulliDecoder
from parnassus.latent.dense import flat_decoder, flat_encoder
from parnassus.latent.info_vae import InfoVAE
from parnassus.latent.objectives import NegativeELBO, Objective
from parnassus.latent.vae import VAE, reparametrise
from parnassus.probability import RBF, squared_mmd
from parnassus.report import PALETTE, image_grid, subplots
from parnassus.train import Run, SideBySide, at_least, at_most, descend, reported

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B6.4-1", "B6.4-5", "B6.4-8")
expected = {
    "information_gain": at_least(1.0, "nats that the MMD-VAE's code says of an unseen image beyond the VAE's"),
    "information_vae": reported("I(X, Z) of the VAE, nats"),
    "information_mmd_vae": reported("I(X, Z) of the MMD-VAE; at most the logarithm of the number of images"),
    "information_stuck": at_most(0.1, "I(X, Z) of an MMD-VAE whose codes begin at the prior: it never leaves"),
    "distortion_saved": reported("nats by which the MMD-VAE rebuilds unseen images better"),
    "discrepancy_vae": reported("MMD² of the codes of unseen images from the prior"),
    "discrepancy_mmd_vae": at_most(0.03, "the same for the MMD-VAE"),
    "discrepancy_free": at_least(0.05, "the same for an autoencoder with noise, which nothing draws to the prior"),
    "discrepancy_chance": reported("the same between two samples of the prior"),
    "negative_elbo_gap": reported(
        "nats by which the MMD-VAE's distortion + rate exceeds the VAE's, which is trained on it"
    ),
}
profiles = {
    "smoke": {"steps": 10, "width": 16},
    "gpu": {"data": "mnist", "steps": 15_000, "batch": 512, "width": 1_024, "lr": 5e-4},
}
NAMES = ("β = 0", "VAE", "MMD-VAE", "MMD-VAE, wide start")
NARROW = -4.0  # log σ² with which a narrow start begins


@dataclass(frozen=True)
class Experiment:
    data: str = "digits"  # images: digits, mnist_mini, mnist, fashion_mnist, or a folder of yours
    steps: int = 600  # gradient steps
    batch: int = 256  # images a step; the discrepancy is that of a batch
    latent: int = 2  # numbers in a code; the maps show the first two
    width: int = 128  # hidden units
    lr: float = 3e-3  # Adam's learning rate
    lam: float = 100.0  # weight λ of the discrepancy, with α = 1
    kernel_width: float = 1.0  # h of the Gaussian kernel

    def model(self, shape: Sequence[int]) -> SideBySide[VAE]:
        mmd = InfoVAE(1.0, self.lam, kernel=RBF(self.kernel_width))
        objectives: tuple[tuple[Objective, float], ...] = (
            (NegativeELBO(0.0), NARROW),
            (NegativeELBO(), NARROW),
            (mmd, NARROW),
            (mmd, 0.0),
        )
        models = (self.one(shape, *each) for each in objectives)
        return SideBySide(dict(zip(NAMES, models, strict=True)))

    def one(self, shape: Sequence[int], objective: Objective, log_variance: float) -> VAE:
        """A VAE whose posteriors begin with about this log-variance, whatever the image."""
        encoder = flat_encoder(shape, 2 * self.latent, width=self.width, layers=2)
        nn.init.constant_(encoder.get_parameter("1.2.bias").data[self.latent :], log_variance)
        decoder = BernoulliDecoder(flat_decoder(self.latent, shape, width=self.width, layers=2))
        return VAE(encoder, decoder, self.latent, objective=objective)

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_data(self.data).to(run.device)
        model, optimizer = run.prepare(run.build(self.model, shape=data.shape), partial(Adam, lr=self.lr))
        batches = data.train.batches(self.batch, self.steps).map(torch.bernoulli)
        for step, loss in descend(run, model, optimizer, batches):
            run.log(step, loss=loss)

        unseen = torch.bernoulli(data.test.x[:1_000])
        found = {name: measure(model.one(name), unseen, RBF(self.kernel_width)) for name in NAMES}
        run.figure("codes", draw_codes(model, data), CODES)
        with torch.no_grad():
            z = torch.randn(12, self.latent, device=run.device)
            drawn = torch.cat([model.one(name).decode(z) for name in NAMES])
        run.figure("draws", image_grid(drawn, columns=12, row_labels=NAMES), DRAWS)
        run.table("numbers", [{"": name, **found[name]} for name in NAMES], "Unseen images; in nats but for MMD².")
        vae, mmd = found["VAE"], found["MMD-VAE"]
        chance = torch.stack(
            [squared_mmd(*torch.randn(2, len(unseen), self.latent), kernel=RBF(self.kernel_width)) for _ in range(10)]
        )
        return {
            "information_gain": mmd["I(X, Z)"] - vae["I(X, Z)"],
            "information_vae": vae["I(X, Z)"],
            "information_mmd_vae": mmd["I(X, Z)"],
            "information_stuck": found["MMD-VAE, wide start"]["I(X, Z)"],
            "distortion_saved": vae["distortion"] - mmd["distortion"],
            "discrepancy_vae": vae["MMD²"],
            "discrepancy_mmd_vae": mmd["MMD²"],
            "discrepancy_free": found["β = 0"]["MMD²"],
            "discrepancy_chance": float(chance.mean()),
            "negative_elbo_gap": mmd["distortion"] + mmd["rate"] - vae["distortion"] - vae["rate"],
        }


@dataclass(frozen=True)
class Sample:
    count: int = 64  # how many

    def __call__(self, model: SideBySide[VAE]) -> Tensor:
        vae = model.one("MMD-VAE")
        return vae.decode(vae.prior().sample((self.count,)))


CODES = (
    "One draw of the code of every training image; the rings hold 39 % and 86 % of the prior. Without a price (β = 0) "
    "codes go where they like. The VAE pays for each code, so codes stay blurred and overlap. The MMD-VAE pays only "
    "for the cloud as a whole: every code is sharp, and together they fill the prior. Begun with codes as wide as the "
    "prior it stays there: the cloud fits already, and no code can become sharp without tearing a hole."
)
DRAWS = "Images decoded from the same twelve draws of the prior."


@torch.no_grad()
def measure(vae: VAE, x: Tensor, kernel: RBF) -> dict[str, float]:
    mean, log_variance = vae.moments(x)
    information: CodeInformation = code_information(mean, log_variance, draws=10)
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
def draw_codes(model: SideBySide[VAE], data: Dataset) -> "Figure":
    """Where codes of the training images lie under each objective, with rings of the prior."""
    figure, axes = subplots(2, 2, size=(8.4, 8.4))
    x, labels = data.train.x[:2_000], data.train.y
    circle = torch.linspace(0, 2 * torch.pi, 100)
    for place, name in enumerate(NAMES):
        ax = axes[place // 2, place % 2]
        z = reparametrise(*model.one(name).moments(x))[:, :2].cpu()
        colours = PALETTE[0] if labels is None else [PALETTE[int(each) % len(PALETTE)] for each in labels[: len(z)]]
        ax.scatter(z[:, 0], z[:, 1], s=4, c=colours, linewidths=0, alpha=0.8, rasterized=True)
        for radius in (1, 2):
            ax.plot(radius * circle.cos(), radius * circle.sin(), color="#808890", linestyle="--", linewidth=1.2)
        ax.set(xlabel="z₁", ylabel="z₂")
        ax.set_title(name)
        ax.set_aspect("equal")
        reach = float(z.abs().quantile(0.995))
        ax.set(xlim=(-max(3.0, reach), max(3.0, reach)), ylim=(-max(3.0, reach), max(3.0, reach)))
    return figure
