"""Several codes an image tighten the bound: a VAE trained on the importance-weighted ELBO (Diehl sec. 6).

Two models of one architecture learn the same images for as many steps, one by the ELBO and one by the bound of K codes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.optim.lr_scheduler import OneCycleLR

from parnassus.data import open_images
from parnassus.latent.decoders import BernoulliDecoder
from parnassus.latent.experiments import vae
from parnassus.latent.likelihood import importance_likelihood
from parnassus.latent.objectives import ImportanceWeighted, NegativeELBO, Objective
from parnassus.latent.vae import VAE
from parnassus.optim import Adam
from parnassus.report import curves, image_grid
from parnassus.train import Run, at_least, at_most, descend, reported

covers = ("D6.0.12",)
expected = {
    "nll_iwae": at_most(111.0, "−log p(x) of an unseen image in nats, trained on the bound of K codes"),
    "nll_vae": reported("the same, trained on the ELBO"),
    "nll_error_iwae": reported("standard error of the first from the finite number of codes drawn"),
    "gain": at_least(0.1, "nats an image that the tighter bound gained"),
    "active_units_iwae": reported("coordinates of the code in use, trained on the bound of K codes"),
    "active_units_vae": reported("the same, trained on the ELBO"),
}
profiles = {
    "smoke": {"steps": 8, "width": 16, "examples": 100, "draws": 10, "codes": 3},
    "gpu": {
        "data": "mnist", "codes": 8, "steps": 10_000, "batch": 256, "width": 32, "blocks": 2, "latent": 40, "lr": 1e-3,
        "examples": 60_000, "draws": 1_000,
    },
}  # fmt: skip


@dataclass(frozen=True)
class Experiment:
    data: str = "mnist_mini"  # images: mnist_mini, digits, mnist, fashion_mnist, or a folder of yours
    codes: int = 5  # K, the codes drawn for each image at each step
    steps: int = 1_500  # gradient steps of each of the two models
    batch: int = 100  # images a step
    latent: int = 16  # numbers in a code
    width: int = 400  # hidden units; of a convolutional network the channels at first, doubled at each halving
    blocks: int = 0  # residual blocks at each size of a convolutional network; 0: dense layers
    lr: float = 2e-3  # Adam's largest learning rate, reached after a tenth of the steps
    examples: int = 10_000  # images used at most
    draws: int = 200  # codes drawn for each image to estimate its likelihood

    def model(self, shape: Sequence[int]) -> VAE:
        """The one trained on the tighter bound: what `parnassus sample` opens."""
        return self.with_objective(shape, ImportanceWeighted(self.codes))

    def with_objective(self, shape: Sequence[int], objective: Objective) -> VAE:
        encoder, network = vae.networks(shape, self.latent, width=self.width, blocks=self.blocks)
        return VAE(encoder, BernoulliDecoder(network), self.latent, objective=objective)

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_images(self.data, None).to(run.device)
        unseen = torch.bernoulli(data.test.x[: self.examples])
        batches = data.train.take(self.examples).batches(self.batch, self.steps).map(torch.bernoulli)
        models = {
            "iwae": run.build(self.model, shape=data.shape),
            "vae": self.with_objective(data.shape, NegativeELBO()),
        }

        nll, error, active, bounds = {}, {}, {}, {}
        for name, built in models.items():
            model, optimizer = run.prepare(built, partial(Adam, lr=self.lr))
            warming = OneCycleLR(optimizer, self.lr, total_steps=self.steps + 1, pct_start=0.1, cycle_momentum=False)
            run.keep(f"warming {name}", warming)
            for step, loss in descend(run, model, optimizer, batches):
                warming.step()
                run.log(step, **{f"loss/{name}": loss})
            models[name] = model
            likelihood = importance_likelihood(model, unseen, samples=self.draws)
            nll[name], error[name] = likelihood.nll, likelihood.nll_error
            active[name] = float((vae.mean_rates(model, unseen) > vae.ACTIVE).sum())
            bounds[name] = bound_by_codes(model, unseen[:500], most=self.draws)

        figure = curves(bounds, x_label="codes K", y_label="−bound (nats)", log_x=True)
        run.figure("bounds", figure, "The bound of K codes on unseen images: it falls towards −log p(x) as K grows.")
        with torch.no_grad():
            run.figure(
                "samples", image_grid(models["iwae"].decode(models["iwae"].prior().sample((64,)))), "New images."
            )
        run.note(
            "why more codes help",
            "The ELBO punishes an encoder for every code it draws that does not explain the image, so the model keeps "
            "posteriors that a diagonal Gaussian can meet. The bound of K codes asks only that one of K explains it: "
            "the posterior may take other shapes, and more coordinates of the code stay in use.",
        )
        return {
            "nll_iwae": nll["iwae"],
            "nll_vae": nll["vae"],
            "nll_error_iwae": error["iwae"],
            "gain": nll["vae"] - nll["iwae"],
            "active_units_iwae": active["iwae"],
            "active_units_vae": active["vae"],
        }


@dataclass(frozen=True)
class Sample(vae.Sample):
    """As from a plain VAE."""


def bound_by_codes(model: VAE, x: Tensor, *, most: int) -> tuple[list[int], list[float]]:
    """The mean negative bound for K = 1, 2, 5, 10 … codes an image."""
    sizes = [size for size in (2, 5, 10, 20, 50, 100, 200, 500, 1_000) if size <= most]
    return sizes, [importance_likelihood(model, x, samples=size).nll for size in sizes]
