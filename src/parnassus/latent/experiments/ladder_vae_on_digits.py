"""Ladder VAE compared with a plain hierarchical VAE on digits: use of the upper level (book sec. 6.3).

The decoder maps the lower code to the image by one linear layer, so nonlinear structure requires the upper code.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import prod

import torch
from torch import Tensor, nn
from torch.optim import Adam

from parnassus.data import open_grey_images
from parnassus.latent.autoencoders.dense_networks import mlp_decoder
from parnassus.latent.likelihood_estimation.importance_sampling import importance_likelihood
from parnassus.latent.variational.decoders import BernoulliDecoder
from parnassus.latent.variational.ladder_vae import (
    LadderVAE,
    PosteriorRule,
    encoder_only_posterior,
    precision_weighted_posterior,
)
from parnassus.latent.variational.posterior_collapse import linear_kl_annealing
from parnassus.layers import mlp
from parnassus.report import curves, image_grid
from parnassus.setting_types import GreyImageData
from parnassus.train import ModelCollection, Positive, Run, at_least, at_most, no_band

covers = ("B6.4-3", "B6.4-4", "B6.3-5")
expected = {
    "top_rate_ladder": at_least(1.0, "rate of the upper level of the ladder VAE on test images, nats"),
    "top_rate_plain": no_band(
        "rate of the upper level of the plain hierarchy, whose posteriors do not depend on the level above"
    ),
    "top_fraction_ladder": at_least(0.25, "fraction of the ladder VAE's rate in its upper level"),
    "top_fraction_plain": at_most(0.25, "fraction of the plain hierarchy's rate in its upper level"),
    "bottom_rate_ladder": no_band("rate of the lower level of the ladder VAE, nats"),
    "bottom_rate_plain": no_band("rate of the lower level of the plain hierarchy, nats"),
    "nll_ladder": at_most(24.0, "−log p(x) of a test image under the ladder VAE by importance sampling, nats"),
    "nll_plain": no_band("−log p(x) of a test image under the plain hierarchy by importance sampling, nats"),
    "nll_gain": at_least(0.0, "−log p(x) of the plain hierarchy minus that of the ladder VAE, nats"),
    "nll_error": no_band("standard error of `nll_ladder` due to the finite number of importance samples"),
}
profiles = {
    "smoke": {"steps": 10, "width": 16, "num_importance_samples": 5},
    "gpu": {
        "data": "mnist", "steps": 20_000, "batch_size": 256, "width": 512, "bottom_dim": 32, "top_dim": 16,
        "learning_rate": 5e-4, "num_importance_samples": 500,
    },
}  # fmt: skip

NARROW = -4.0  # initial log σ² of the inference heads


@dataclass(frozen=True)
class Experiment:
    data: GreyImageData = "digits"  # images: name of a data set, or path of a folder
    image_size: Positive[int] | None = None  # resize the images of a folder to squares with sides of this many pixels
    steps: Positive[int] = 1_400  # gradient steps; the weight of the rates is annealed over the first half
    batch_size: Positive[int] = 128  # images per gradient step
    bottom_dim: Positive[int] = 16  # dimension of the lower code
    top_dim: Positive[int] = 4  # dimension of the upper code
    width: Positive[int] = 128  # hidden units of every network
    learning_rate: Positive[float] = 2e-3  # Adam's learning rate
    num_importance_samples: Positive[int] = 100  # importance samples per image in the estimate of its likelihood

    def model(self, shape: Sequence[int]) -> ModelCollection[LadderVAE]:
        return ModelCollection(
            {
                "ladder": self.build_hierarchy(shape, precision_weighted_posterior),
                "plain": self.build_hierarchy(shape, encoder_only_posterior),
            }
        )

    def build_hierarchy(self, shape: Sequence[int], posterior_rule: PosteriorRule) -> LadderVAE:
        first = nn.Sequential(nn.Flatten(), mlp((prod(shape), self.width), output=torch.relu))
        second = mlp((self.width, self.width), output=torch.relu)
        heads = [nn.Linear(self.width, 2 * self.bottom_dim), nn.Linear(self.width, 2 * self.top_dim)]
        for head in heads:  # with wide initial posteriors the prior dominates and the heads are not trained
            nn.init.constant_(head.bias.data[len(head.bias) // 2 :], NARROW)
        prior_head = mlp((self.top_dim, self.width, 2 * self.bottom_dim))
        decoder = BernoulliDecoder(mlp_decoder(self.bottom_dim, shape, num_layers=0))
        return LadderVAE([first, second], heads, [prior_head], decoder, self.top_dim, posterior_rule=posterior_rule)

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_grey_images(self.data, self.image_size).to(run.device)
        train, test = (torch.bernoulli(split.x[:1_000]) for split in (data.train, data.test))
        model, optimizer = run.prepare(run.build(self.model, shape=data.shape), partial(Adam, lr=self.learning_rate))
        batches = data.train.batches(self.batch_size, self.steps).map(torch.bernoulli)
        for step, x in run.steps(batches):
            with run.autocast():
                loss = model.loss(x, torch.tensor(linear_kl_annealing(step, max(1, self.steps // 2))))
            run.update(optimizer, loss)
            run.log(step, loss=loss)
            if step % max(1, self.steps // 40) == 0:
                run.record(
                    step, **{f"upper_rate/{name}": mean_rates(one, train)[1] for name, one in model.named_models()}
                )

        self.plot_results(run, model, test)
        final = {name: mean_rates(one, test) for name, one in model.named_models()}
        likelihood = {
            name: importance_likelihood(one, test, samples=self.num_importance_samples)
            for name, one in model.named_models()
        }
        rows: list[dict[str, str | float]] = [
            {
                "": name,
                "upper rate": final[name][1],
                "lower rate": final[name][0],
                "distortion": mean_distortion(one, test),
                "−log p(x)": likelihood[name].nll,
            }
            for name, one in model.named_models()
        ]
        run.table("levels", rows, "Test images, in nats; −ELBO is the sum of distortion and both rates.")
        return {
            "top_rate_ladder": final["ladder"][1],
            "top_rate_plain": final["plain"][1],
            "top_fraction_ladder": final["ladder"][1] / sum(final["ladder"]),
            "top_fraction_plain": final["plain"][1] / sum(final["plain"]),
            "bottom_rate_ladder": final["ladder"][0],
            "bottom_rate_plain": final["plain"][0],
            "nll_ladder": likelihood["ladder"].nll,
            "nll_plain": likelihood["plain"].nll,
            "nll_gain": likelihood["plain"].nll - likelihood["ladder"].nll,
            "nll_error": likelihood["ladder"].nll_error,
        }

    @torch.no_grad()
    def plot_results(self, run: Run, model: ModelCollection[LadderVAE], test: Tensor) -> None:
        lines = {name: run.curve(f"upper_rate/{name}") for name, _ in model.named_models()}
        run.figure("upper_rate", curves(lines, x_label="step", y_label="upper rate (nats)"), UPPER)
        x, ladder = test[:10], model.model("ladder")
        levels = torch.cat([x, *(ladder.reconstruct(x, num_levels=number) for number in (0, 1, 2))])
        names = ["image", "no code", "upper code", "both codes"]
        run.figure("levels", image_grid(levels, columns=10, row_labels=names), LEVELS)
        samples = []
        for _ in range(5):  # one upper code per row, several lower ones
            top_codes = torch.randn(1, self.top_dim, device=x.device).expand(10, -1)
            samples.append(sample_given_top(ladder, top_codes))
        run.figure("samples", image_grid(torch.cat(samples), columns=10), SAMPLES)


@dataclass(frozen=True)
class Sample:
    num_samples: Positive[int] = 64  # number of samples

    def __call__(self, model: ModelCollection[LadderVAE]) -> Tensor:
        return model.model("ladder").sample(self.num_samples)


UPPER = (
    "Rate of the upper level on training images; the weight of the rates increases over the first half of training. "
    "In the plain hierarchy the posterior of the lower code depends on the image alone, and the rate of the upper "
    "level decreases as the weight increases. In the ladder VAE that posterior depends on the upper code, too, whose "
    "rate stays high."
)
LEVELS = (
    "Test images reconstructed from no code, from the upper code and from both; the upper code sets the coarse shape."
)
SAMPLES = "Samples: one upper code per row, with ten samples of the lower code."


@torch.no_grad()
def mean_rates(model: LadderVAE, x: Tensor) -> list[float]:
    """The mean rate of each level, lowest first, over ten samples per image."""
    means: list[float] = torch.stack([model.terms(x).rates.mean(1) for _ in range(10)]).mean(0).tolist()
    return means


@torch.no_grad()
def mean_distortion(model: LadderVAE, x: Tensor) -> float:
    return float(torch.stack([model.terms(x).distortion for _ in range(10)]).mean())


@torch.no_grad()
def sample_given_top(model: LadderVAE, top_codes: Tensor) -> Tensor:
    """Mean images for upper codes, with lower codes sampled from their prior."""
    mean, log_variance = model.prior_heads[0](top_codes).chunk(2, dim=-1)
    z = mean + (log_variance / 2).exp() * torch.randn_like(mean)
    images: Tensor = model.decoder(z).mean
    return images
