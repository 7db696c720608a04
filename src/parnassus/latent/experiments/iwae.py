"""Importance-weighted autoencoder (IWAE) of digits, compared with a VAE (Diehl sec. 6).

Two models with the same architecture, data and number of steps: one is trained on the ELBO, the other on the
importance-weighted ELBO of K samples.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.optim.lr_scheduler import OneCycleLR

from parnassus.data import open_grey_images
from parnassus.latent.autoencoders.convolutional_networks import image_networks
from parnassus.latent.commands.evaluate_vae import VAEEvaluate
from parnassus.latent.commands.sample_vae import VAESample
from parnassus.latent.likelihood_estimation.importance_sampling import importance_likelihood
from parnassus.latent.variational.aggregated_posterior import ACTIVE_RATE, model_rate_per_unit
from parnassus.latent.variational.decoders import BernoulliDecoder
from parnassus.latent.variational.elbo import NegativeELBO, Objective
from parnassus.latent.variational.iwae import ImportanceWeightedELBO
from parnassus.latent.variational.vae import VAE
from parnassus.optim import Adam
from parnassus.report import curves, image_grid
from parnassus.setting_types import GreyImageData
from parnassus.train import NonNegative, Positive, Run, at_least, at_most, descend, no_band

covers = ("D6.0.12",)
expected = {
    "nll_iwae": at_most(111.0, "−log p(x) of a test image in nats, trained on the importance-weighted ELBO"),
    "nll_vae": no_band("−log p(x) of a test image in nats, trained on the ELBO"),
    "nll_error_iwae": no_band("standard error of `nll_iwae` due to the finite number of importance samples"),
    "gain": at_least(0.1, "−log p(x) of the VAE minus that of the IWAE, nats per image"),
    "active_units_iwae": no_band("active coordinates of the code, trained on the importance-weighted ELBO"),
    "active_units_vae": no_band("active coordinates of the code, trained on the ELBO"),
}
profiles = {
    "smoke": {
        "num_train_importance_samples": 3, "steps": 8, "width": 16, "num_examples": 100, "num_importance_samples": 10,
    },
    "gpu": {
        "data": "mnist", "num_train_importance_samples": 8, "steps": 10_000, "batch_size": 256, "width": 32,
        "num_blocks": 2, "latent_dim": 40, "learning_rate": 1e-3, "num_examples": 60_000,
        "num_importance_samples": 1_000,
    },
}  # fmt: skip


@dataclass(frozen=True)
class Experiment:
    data: GreyImageData = "mnist_mini"  # images: name of a data set, or path of a folder
    image_size: Positive[int] | None = None  # resize the images of a folder to squares with sides of this many pixels
    num_train_importance_samples: Positive[int] = 5  # K, importance samples per image in the training bound
    steps: Positive[int] = 1_500  # gradient steps per model
    batch_size: Positive[int] = 100  # images per gradient step
    latent_dim: Positive[int] = 16  # dimension of the code
    width: Positive[int] = 400  # hidden units, or channels of a convolutional network, doubled per downsampling
    num_blocks: NonNegative[int] = 0  # residual blocks per resolution of a convolutional network; 0: dense layers
    learning_rate: Positive[float] = 2e-3  # peak learning rate of Adam, reached after 10 % of the steps
    num_examples: Positive[int] = 10_000  # maximum number of training images, and of test images
    num_importance_samples: Positive[int] = 200  # importance samples per image in the estimate of its likelihood

    def model(self, shape: Sequence[int]) -> VAE:
        """The model trained on the importance-weighted ELBO, which `parnassus sample` uses."""
        return self.build_vae(shape, ImportanceWeightedELBO(self.num_train_importance_samples))

    def build_vae(self, shape: Sequence[int], objective: Objective) -> VAE:
        encoder, network = image_networks(shape, self.latent_dim, width=self.width, blocks=self.num_blocks)
        return VAE(encoder, BernoulliDecoder(network), self.latent_dim, objective=objective)

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_grey_images(self.data, self.image_size).to(run.device)
        test = torch.bernoulli(data.test.x[: self.num_examples])
        batches = data.train.take(self.num_examples).batches(self.batch_size, self.steps).map(torch.bernoulli)
        models = {
            "iwae": run.build(self.model, shape=data.shape),
            "vae": self.build_vae(data.shape, NegativeELBO()),
        }

        nll, error, active, bounds = {}, {}, {}, {}
        for name, built in models.items():
            model, optimizer, scheduler = run.prepare(
                built,
                partial(Adam, lr=self.learning_rate),
                partial(
                    OneCycleLR,
                    max_lr=self.learning_rate,
                    total_steps=self.steps + 1,
                    pct_start=0.1,
                    cycle_momentum=False,
                ),
            )
            for step, loss in descend(run, model, optimizer, batches):
                scheduler.step()
                run.log(step, **{f"loss/{name}": loss})
            models[name] = model
            likelihood = importance_likelihood(model, test, samples=self.num_importance_samples)
            nll[name], error[name] = likelihood.nll, likelihood.nll_error
            active[name] = float((model_rate_per_unit(model, test) > ACTIVE_RATE).sum())
            bounds[name] = bound_by_samples(model, test[:500], max_samples=self.num_importance_samples)

        figure = curves(bounds, x_label="samples K", y_label="negative bound (nats)", log_x=True)
        run.figure(
            "bounds",
            figure,
            "Negative importance-weighted ELBO of K samples on test images; it converges to −log p(x) as K grows.",
        )
        with torch.no_grad():
            samples = models["iwae"].decode(models["iwae"].prior().sample((64,)))
            run.figure("samples", image_grid(samples), "Means decoded from 64 samples of the prior.")
        run.note(
            "importance weighting",
            "The ELBO penalises every posterior sample with a low likelihood, so training favours true posteriors that "
            "a diagonal Gaussian approximates well. The importance-weighted ELBO is dominated by the best of K "
            "samples: the posterior may have other shapes, and more coordinates of the code stay active.",
        )
        return {
            "nll_iwae": nll["iwae"],
            "nll_vae": nll["vae"],
            "nll_error_iwae": error["iwae"],
            "gain": nll["vae"] - nll["iwae"],
            "active_units_iwae": active["iwae"],
            "active_units_vae": active["vae"],
        }


class Sample(VAESample):
    """Samples, interpolations, traversals or reconstructions."""


class Evaluate(VAEEvaluate):
    """Log-likelihood, rate and distortion of the test images of a data set."""


def bound_by_samples(model: VAE, x: Tensor, *, max_samples: int) -> tuple[list[int], list[float]]:
    """The mean negative bound for K = 2, 5, 10 … samples per image."""
    sizes = [size for size in (2, 5, 10, 20, 50, 100, 200, 500, 1_000) if size <= max_samples]
    return sizes, [importance_likelihood(model, x, samples=size).nll for size in sizes]
