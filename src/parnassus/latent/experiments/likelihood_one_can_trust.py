"""How likely is an image? Importance sampling, annealing and the exact answer side by side (Diehl sec. 6).

First a linear model of the digits, whose likelihood is known: every estimate can be held against the truth. Then a
variational autoencoder, where nobody knows it: two estimates that share nothing but the model have to agree.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import prod

import torch
from torch import Tensor, nn
from torch.distributions import Distribution, Independent, Normal
from torch.optim import Adam

from parnassus.data import open_data
from parnassus.latent.ais import annealed_evidence
from parnassus.latent.decoders import BernoulliDecoder
from parnassus.latent.likelihood import importance_likelihood
from parnassus.latent.ppca import PPCA
from parnassus.latent.vae import VAE
from parnassus.probability.importance import LogDensity, evidence_from_weights
from parnassus.report import curves
from parnassus.train import Run, at_most, between, descend, reported

covers = ("D6.0.9", "D6.0.11", "D6.0.12", "D6.0.13", "B6.2-1")
expected = {
    "exact": reported("mean log-likelihood of unseen digits under the linear model, in nats, exactly"),
    "importance_gap": between(-0.05, 0.5, "exact − importance sampling from a posterior twice too wide, most draws"),
    "annealed_gap": between(-0.05, 0.5, "exact − annealing from the prior"),
    "prior_gap": reported("exact − naive Monte Carlo with as many draws of the prior"),
    "elbo_gap": reported("exact − ELBO of the posterior twice too wide"),
    "vae_importance": reported("mean log-likelihood of unseen digits under the VAE, by importance sampling"),
    "vae_annealed": reported("the same by annealing"),
    "vae_disagreement": at_most(0.5, "nats between the two, as a mean over images"),
    "vae_effective": reported("median effective number of draws behind the first"),
}
profiles = {
    "smoke": {"steps": 10, "images": 5, "draws": 100, "times": 5},
    "gpu": {"data": "mnist", "steps": 10_000, "images": 200, "draws": 5_000, "times": 500},
}

WIDER = 2.0
"""How many times too wide the spoilt posterior is."""


@dataclass(frozen=True)
class Experiment:
    data: str = "digits"  # images: digits, mnist_mini, mnist, fashion_mnist, or a folder of yours
    latent: int = 8  # numbers in a code, of both models
    steps: int = 1_500  # gradient steps of the VAE
    images: int = 60  # unseen images whose likelihood is estimated
    draws: int = 3_000  # draws of importance sampling at most
    chains: int = 16  # chains of the annealing
    times: int = 60  # its temperatures
    width: int = 128  # hidden units of the VAE

    def model(self, shape: Sequence[int]) -> VAE:
        size = prod(shape)
        encoder = nn.Sequential(
            nn.Flatten(), nn.Linear(size, self.width), nn.SiLU(), nn.Linear(self.width, 2 * self.latent)
        )
        network = nn.Sequential(
            nn.Linear(self.latent, self.width), nn.SiLU(), nn.Linear(self.width, size), nn.Unflatten(1, tuple(shape))
        )
        return VAE(encoder, BernoulliDecoder(network), self.latent)

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_data(self.data).to(run.device)
        known = self.where_it_is_known(run, data.train.x.flatten(1), data.test.x[: self.images].flatten(1))

        model = run.build(self.model, shape=data.shape)
        model, optimizer = run.prepare(model, partial(Adam, lr=2e-3))
        batches = data.train.batches(100, self.steps).map(torch.bernoulli)
        for step, loss in descend(run, model, optimizer, batches):
            run.log(step, loss=loss)
        return {**known, **self.where_nobody_knows(run, model, torch.bernoulli(data.test.x[: self.images]))}

    @torch.no_grad()
    def where_it_is_known(self, run: Run, train: Tensor, x: Tensor) -> dict[str, float]:
        """Four estimates under probabilistic PCA against its exact likelihood."""
        ppca = PPCA.fit(train.double(), self.latent)
        x = x.double()
        exact = ppca.log_prob(x)
        posterior = ppca.posterior(x)
        zero = torch.zeros_like(posterior.mean)
        prior = Independent(Normal(zero, zero + 1), 1)
        wide = Independent(Normal(posterior.mean, WIDER * posterior.stddev), 1)

        def log_joint(z: Tensor) -> Tensor:
            log_likelihood = Normal(ppca.inverse(z), ppca.variance.sqrt()).log_prob(x).sum(-1)
            log_prior: Tensor = prior.log_prob(z)
            total: Tensor = log_likelihood + log_prior
            return total

        weights = {"prior": log_weights(log_joint, prior, self.draws), "wide": log_weights(log_joint, wide, self.draws)}
        sizes = [size for size in (2, 5, 10, 30, 100, 300, 1_000, 3_000, 10_000) if size <= self.draws]
        lines = {
            name: (sizes, [float(evidence_from_weights(w[..., :size]).log_evidence.mean()) for size in sizes])
            for name, w in (
                ("draws of the prior", weights["prior"]),
                ("a posterior twice too wide", weights["wide"]),
            )
        }
        annealed = annealed_evidence(log_joint, prior, chains=self.chains, times=self.times).estimate
        lines["annealing from the prior"] = (sizes, [float(annealed.mean())] * len(sizes))
        lines["exact"] = (sizes, [float(exact.mean())] * len(sizes))
        run.figure(
            "known",
            curves(lines, x_label="draws", y_label="log p(x) (nats)", log_x=True),
            "A linear model of the digits, whose likelihood is known: each estimate climbs towards it from below. "
            "The ELBO of the spoilt posterior does not: more draws make it no tighter.",
        )
        estimate = evidence_from_weights(weights["wide"])
        return {
            "exact": float(exact.mean()),
            "importance_gap": float((exact - estimate.log_evidence).mean()),
            "annealed_gap": float((exact - annealed).mean()),
            "prior_gap": float((exact - evidence_from_weights(weights["prior"]).log_evidence).mean()),
            "elbo_gap": float((exact - weights["wide"].mean(-1)).mean()),
        }

    @torch.no_grad()
    def where_nobody_knows(self, run: Run, model: VAE, x: Tensor) -> dict[str, float]:
        """Importance sampling from the encoder against annealing from the prior, image by image."""
        weighed = importance_likelihood(model, x, samples=self.draws)
        zero = model.encode(x) * 0
        prior = Independent(Normal(zero, zero + 1), 1)
        annealed = annealed_evidence(partial(model.log_joint, x), prior, chains=self.chains, times=self.times)
        rows: list[dict[str, str | float]] = [
            {
                "image": str(row + 1),
                "importance sampling": float(weighed.log_evidence[row]),
                "its spread": float(weighed.spread[row]),
                "effective draws": float(weighed.effective[row]),
                "annealing": float(annealed.estimate[row]),
                "its spread ": float(annealed.spread[row]),
            }
            for row in range(min(8, len(x)))
        ]
        run.table("two opinions", rows, "log p(x) of unseen images under the VAE, in nats.")
        difference = float((weighed.log_evidence - annealed.estimate).abs().mean())
        run.note(
            "whom to trust",
            "Both numbers lie below log p(x) on average, so of two the larger is the better one, and where they agree "
            "there is little left to find. A spread says how much an estimate would move with other draws; with few "
            "effective draws it says too little, because what no draw has met it cannot count.",
        )
        return {
            "vae_importance": float(weighed.log_evidence.mean()),
            "vae_annealed": float(annealed.estimate.mean()),
            "vae_disagreement": difference,
            "vae_effective": float(weighed.effective.median()),
        }


@dataclass(frozen=True)
class Sample:
    count: int = 64  # how many images

    def __call__(self, model: VAE) -> Tensor:
        return model.decode(model.prior().sample((self.count,)))


def log_weights(log_joint: LogDensity, proposal: Distribution, draws: int) -> Tensor:
    """The logarithms of p(x, z) / q(z) for each row and draw."""
    z = proposal.sample((draws,))
    return (log_joint(z) - proposal.log_prob(z)).movedim(0, -1)
