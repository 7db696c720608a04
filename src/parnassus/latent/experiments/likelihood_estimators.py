"""Likelihood estimators: importance sampling and annealed importance sampling (Diehl sec. 6).

For probabilistic PCA the estimates are compared with the exact likelihood; for a VAE, whose likelihood is intractable,
with each other.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import prod

import torch
from torch import Tensor, nn
from torch.distributions import Distribution, Independent, Normal
from torch.optim import Adam

from parnassus.data import open_grey_images
from parnassus.latent.likelihood_estimation.annealed_importance_sampling import ais_log_evidence
from parnassus.latent.likelihood_estimation.importance_sampling import importance_likelihood
from parnassus.latent.linear.probabilistic_pca import PPCA
from parnassus.latent.variational.decoders import BernoulliDecoder
from parnassus.latent.variational.vae import VAE
from parnassus.probability.inference.importance_sampling import LogDensity, evidence_from_weights
from parnassus.report import curves
from parnassus.setting_types import GreyImageData
from parnassus.train import Positive, Run, at_most, between, descend, no_band

covers = ("D6.0.9", "D6.0.11", "D6.0.12", "D6.0.13", "B6.2-1")
expected = {
    "exact_log_likelihood": no_band("exact mean log-likelihood of test images under probabilistic PCA, nats"),
    "importance_gap": between(
        -0.05, 0.5, "exact − importance sampling from a posterior with doubled standard deviation, nats"
    ),
    "annealed_gap": between(-0.05, 0.5, "exact − annealed importance sampling from the prior, nats"),
    "prior_gap": no_band("exact − Monte Carlo estimate with as many samples of the prior, nats"),
    "elbo_gap": no_band("exact − ELBO of the posterior with doubled standard deviation, nats"),
    "vae_importance": no_band("mean log-likelihood of test images under the VAE by importance sampling, nats"),
    "vae_annealed": no_band("mean log-likelihood of test images under the VAE by annealed importance sampling, nats"),
    "vae_estimator_difference": at_most(
        0.5, "mean absolute difference between the two VAE estimates over images, nats"
    ),
    "vae_effective_sample_size": no_band("median effective sample size of importance sampling for the VAE"),
}
profiles = {
    "smoke": {"steps": 10, "num_test": 5, "num_importance_samples": 100, "num_temperatures": 5},
    "gpu": {
        "data": "mnist",
        "steps": 10_000,
        "num_test": 200,
        "num_importance_samples": 5_000,
        "num_temperatures": 500,
    },
}

STD_FACTOR = 2.0
"""Factor on the standard deviation of the exact posterior in the proposal."""


@dataclass(frozen=True)
class Experiment:
    data: GreyImageData = "digits"  # images: name of a data set, or path of a folder
    image_size: Positive[int] | None = None  # resize the images of a folder to squares with sides of this many pixels
    latent_dim: Positive[int] = 8  # dimension of the code of both models
    steps: Positive[int] = 1_500  # gradient steps of the VAE
    num_test: Positive[int] = 60  # test images whose likelihood is estimated
    num_importance_samples: Positive[int] = 3_000  # importance samples per image
    num_chains: Positive[int] = 16  # chains of annealed importance sampling
    num_temperatures: Positive[int] = 60  # temperatures of annealed importance sampling
    width: Positive[int] = 128  # hidden units of the VAE

    def model(self, shape: Sequence[int]) -> VAE:
        size = prod(shape)
        encoder = nn.Sequential(
            nn.Flatten(), nn.Linear(size, self.width), nn.SiLU(), nn.Linear(self.width, 2 * self.latent_dim)
        )
        network = nn.Sequential(
            nn.Linear(self.latent_dim, self.width),
            nn.SiLU(),
            nn.Linear(self.width, size),
            nn.Unflatten(1, tuple(shape)),
        )
        return VAE(encoder, BernoulliDecoder(network), self.latent_dim)

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_grey_images(self.data, self.image_size).to(run.device)
        exact = self.compare_with_exact(run, data.train.x.flatten(1), data.test.x[: self.num_test].flatten(1))

        model = run.build(self.model, shape=data.shape)
        model, optimizer = run.prepare(model, partial(Adam, lr=2e-3))
        batches = data.train.batches(100, self.steps).map(torch.bernoulli)
        for step, loss in descend(run, model, optimizer, batches):
            run.log(step, loss=loss)
        return {**exact, **self.compare_estimators(run, model, torch.bernoulli(data.test.x[: self.num_test]))}

    @torch.no_grad()
    def compare_with_exact(self, run: Run, train: Tensor, x: Tensor) -> dict[str, float]:
        """Four estimates under probabilistic PCA minus its exact log-likelihood."""
        ppca = PPCA.fit(train.double(), self.latent_dim)
        x = x.double()
        exact = ppca.log_prob(x)
        posterior = ppca.posterior(x)
        zero = torch.zeros_like(posterior.mean)
        prior = Independent(Normal(zero, zero + 1), 1)
        wide = Independent(Normal(posterior.mean, STD_FACTOR * posterior.stddev), 1)

        def log_joint(z: Tensor) -> Tensor:
            log_likelihood = Normal(ppca.inverse_transform(z), ppca.variance.sqrt()).log_prob(x).sum(-1)
            log_prior: Tensor = prior.log_prob(z)
            total: Tensor = log_likelihood + log_prior
            return total

        weights = {
            "prior": log_weights(log_joint, prior, self.num_importance_samples),
            "wide": log_weights(log_joint, wide, self.num_importance_samples),
        }
        sizes = [size for size in (2, 5, 10, 30, 100, 300, 1_000, 3_000, 10_000) if size <= self.num_importance_samples]
        lines = {
            name: (sizes, [float(evidence_from_weights(w[..., :size]).log_evidence.mean()) for size in sizes])
            for name, w in (
                ("samples of the prior", weights["prior"]),
                ("posterior, 2 × standard deviation", weights["wide"]),
            )
        }
        annealed = ais_log_evidence(
            log_joint, prior, num_chains=self.num_chains, num_temperatures=self.num_temperatures
        ).estimate
        lines["annealed importance sampling"] = (sizes, [float(annealed.mean())] * len(sizes))
        lines["exact"] = (sizes, [float(exact.mean())] * len(sizes))
        run.figure(
            "ppca",
            curves(lines, x_label="samples", y_label="log p(x) (nats)", log_x=True),
            "Estimates of log p(x) under probabilistic PCA: each approaches the exact value from below as the number "
            "of samples grows.",
        )
        estimate = evidence_from_weights(weights["wide"])
        return {
            "exact_log_likelihood": float(exact.mean()),
            "importance_gap": float((exact - estimate.log_evidence).mean()),
            "annealed_gap": float((exact - annealed).mean()),
            "prior_gap": float((exact - evidence_from_weights(weights["prior"]).log_evidence).mean()),
            "elbo_gap": float((exact - weights["wide"].mean(-1)).mean()),
        }

    @torch.no_grad()
    def compare_estimators(self, run: Run, model: VAE, x: Tensor) -> dict[str, float]:
        """Importance sampling from the encoder against annealed importance sampling from the prior."""
        importance = importance_likelihood(model, x, samples=self.num_importance_samples)
        zero = model.encode(x) * 0
        prior = Independent(Normal(zero, zero + 1), 1)
        annealed = ais_log_evidence(
            partial(model.log_joint, x), prior, num_chains=self.num_chains, num_temperatures=self.num_temperatures
        )
        rows: list[dict[str, str | float]] = [
            {
                "image": str(row + 1),
                "importance sampling": float(importance.log_evidence[row]),
                "standard error (IS)": float(importance.relative_standard_error[row]),
                "effective samples": float(importance.effective_sample_size[row]),
                "annealed importance sampling": float(annealed.estimate[row]),
                "standard error (AIS)": float(annealed.standard_error[row]),
            }
            for row in range(min(8, len(x)))
        ]
        run.table("vae", rows, "Estimates of log p(x) of test images under the VAE, in nats.")
        difference = float((importance.log_evidence - annealed.estimate).abs().mean())
        run.note(
            "interpretation",
            "Both estimates are below log p(x) in expectation, so the larger one is the better one, and agreement "
            "indicates a small bias. With few effective samples the standard error is underestimated, because regions "
            "that no sample has reached do not contribute.",
        )
        return {
            "vae_importance": float(importance.log_evidence.mean()),
            "vae_annealed": float(annealed.estimate.mean()),
            "vae_estimator_difference": difference,
            "vae_effective_sample_size": float(importance.effective_sample_size.median()),
        }


@dataclass(frozen=True)
class Sample:
    num_samples: Positive[int] = 64  # number of images

    def __call__(self, model: VAE) -> Tensor:
        return model.decode(model.prior().sample((self.num_samples,)))


def log_weights(log_joint: LogDensity, proposal: Distribution, draws: int) -> Tensor:
    """The logarithms of p(x, z) / q(z) for each row and sample."""
    z = proposal.sample((draws,))
    return (log_joint(z) - proposal.log_prob(z)).movedim(0, -1)
