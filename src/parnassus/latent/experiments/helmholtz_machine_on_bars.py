"""Helmholtz machine of bar images, trained by wake-sleep, with exact likelihoods (book sec. 11.1)."""

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.optim import Adam
from torch.optim.lr_scheduler import LambdaLR

from parnassus.data import Split
from parnassus.latent.energy_based.helmholtz_machine import HelmholtzMachine
from parnassus.latent.likelihood_estimation.importance_sampling import importance_likelihood
from parnassus.layers.dropout import all_masks
from parnassus.probability import entropy
from parnassus.report import curves, image_grid
from parnassus.train import Positive, Run, at_least, at_most, between, descend, no_band

covers = ("B11.1-4",)
expected = {
    "kl_divergence": at_most(0.8, "exact KL(data ‖ model) in nats"),
    "initial_kl_divergence": no_band("exact KL(data ‖ model) before training, in nats"),
    "elbo_gap": at_most(0.15, "exact log p(x) minus the ELBO, in nats"),
    "valid_sample_fraction": at_least(0.5, "fraction of samples that are patterns of the data"),
    "importance_error": between(-0.05, 0.05, "importance-sampling estimate minus the exact log p(x), in nats"),
}
profiles = {
    "smoke": {"steps": 20, "num_importance_samples": 50, "hidden_size": 4, "top_size": 2},
    "gpu": {"steps": 40_000},
}
SIDE = 4


@dataclass(frozen=True)
class Experiment:
    hidden_size: Positive[int] = 8  # units of the lower hidden layer
    top_size: Positive[int] = 4  # units of the upper hidden layer
    steps: Positive[int] = 4_000  # gradient steps, each with a wake and a sleep phase
    batch_size: Positive[int] = 100  # data images, and samples of the model, per gradient step
    learning_rate: Positive[float] = 0.05  # initial learning rate of Adam, decayed linearly to 0
    num_importance_samples: Positive[int] = 1_000  # importance samples per image

    def model(self, visible: int) -> HelmholtzMachine:
        return HelmholtzMachine((visible, self.hidden_size, self.top_size))

    def __call__(self, run: Run) -> dict[str, float]:
        data = Split(bars_and_stripes().to(run.device))
        patterns, counts = data.x.unique(dim=0, return_counts=True)
        frequencies = counts / len(data)
        data_entropy = entropy(frequencies)  # the minimum of the negative log-likelihood

        machine = run.build(self.model, visible=SIDE**2)
        machine, optimizer, scheduler = run.prepare(
            machine,
            partial(Adam, lr=self.learning_rate),
            partial(LambdaLR, lr_lambda=lambda step: 1 - step / (self.steps + 1)),
        )
        with torch.no_grad():
            at_start = -frequencies @ machine.log_prob(patterns) - data_entropy
        every = max(1, self.steps // 40)
        rows = Split(data.x.repeat(self.batch_size, 1))  # an epoch covers many batches
        for step, _ in descend(run, machine, optimizer, rows.batches(self.batch_size, self.steps)):
            scheduler.step()
            if step % every == 0 or step == self.steps - 1:
                with torch.no_grad():
                    evidence, bound = (
                        frequencies @ machine.log_prob(patterns),
                        frequencies @ machine.exact_bound(patterns),
                    )
                    run.record(step, **{"log_likelihood/exact": evidence, "log_likelihood/elbo": bound})

        with torch.no_grad():
            self.plot_results(run, machine, patterns, float(data_entropy))
            exact, bound = machine.log_prob(patterns), machine.exact_bound(patterns)
            samples = machine.sample(2_000)
            estimate = importance_likelihood(machine, patterns, samples=self.num_importance_samples)
        valid = (samples[:, None] == patterns).all(-1).any(1).float().mean()
        return {
            "kl_divergence": float(-frequencies @ exact - data_entropy),
            "initial_kl_divergence": float(at_start),
            "elbo_gap": float(frequencies @ (exact - bound)),
            "valid_sample_fraction": float(valid),
            "importance_error": float(frequencies @ (estimate.log_evidence - exact)),
        }

    def plot_results(self, run: Run, machine: HelmholtzMachine, patterns: Tensor, data_entropy: float) -> None:
        steps, log_likelihood = run.curve("log_likelihood/exact")
        lines = {
            "log p(x)": (steps, log_likelihood),
            "ELBO": run.curve("log_likelihood/elbo"),
            "−H(data)": (steps, [-data_entropy] * len(steps)),
        }
        run.figure(
            "log_likelihood",
            curves(lines, x_label="step", y_label="nats per image"),
            "Exact log p(x) and ELBO during training, averaged over the data. Their difference is the KL divergence "
            "of the recognition network from the posterior; the maximum is the negative entropy of the data.",
        )
        states = machine.sample_states(15)
        shown = torch.cat([patterns[:: len(patterns) // 15][:15], states[0]])
        run.figure(
            "samples",
            image_grid(as_images(shown), columns=15, row_labels=["data", "samples"]),
            "Images of the data and samples of the model.",
        )
        states = machine.recognise(patterns[:: len(patterns) // 15][:15])
        reconstructions = machine.down[0](states[1]).sigmoid()
        run.figure(
            "reconstructions",
            image_grid(as_images(torch.cat([states[0], reconstructions])), columns=15, row_labels=["data", "p(x|z)"]),
            "Images, and the pixel probabilities given hidden states sampled by the recognition network.",
        )
        lowest = machine.down[0]
        assert isinstance(lowest, nn.Linear)
        weights = lowest.weight.mT
        fields = 0.5 + 0.5 * weights / weights.abs().max()
        run.figure(
            "generative_weights",
            image_grid(as_images(fields), columns=len(fields)),
            "Contribution of each unit of the lower hidden layer to the log-odds of the pixels (light: positive). Most "
            "units represent a row or a column.",
        )
        run.note(
            "wake-sleep",
            "In the wake phase the recognition network samples hidden states for a data image, and the generative "
            "network is trained to produce the image from them. In the sleep phase the generative network samples "
            "hidden states and an image, and the recognition network is trained to infer the states. No gradient "
            "passes through discrete samples.",
        )


@dataclass(frozen=True)
class Sample:
    num_samples: Positive[int] = 100  # number of samples

    def __call__(self, model: HelmholtzMachine) -> Tensor:
        return as_images(model.sample(self.num_samples))


def bars_and_stripes() -> Tensor:
    """All 2 · 2⁴ images of 4×4 pixels with constant columns or constant rows."""
    lines = all_masks(SIDE)
    columns = lines[:, None, :].expand(-1, SIDE, -1)
    return torch.cat([columns, columns.mT]).flatten(1)


def as_images(x: Tensor) -> Tensor:
    """Images in greys that contrast with white and black pages."""
    return 0.22 + 0.6 * x.view(-1, 1, SIDE, SIDE)
