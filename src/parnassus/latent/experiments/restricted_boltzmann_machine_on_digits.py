"""Restricted Boltzmann machines of binary digits, evaluated by exact likelihoods (book secs. 6.1, 11.1)."""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.optim import Adam
from torch.optim.lr_scheduler import LambdaLR

from parnassus.data import Split, load_digits
from parnassus.latent.energy_based.helmholtz_machine import bernoulli_log_prob
from parnassus.latent.energy_based.restricted_boltzmann_machine import (
    RBM,
    ContrastiveDivergence,
    PersistentContrastiveDivergence,
)
from parnassus.latent.likelihood_estimation.annealed_importance_sampling import ais_log_partition
from parnassus.report import FAINT, PALETTE, curves, image_grid, subplots
from parnassus.train import Positive, Run, at_most, between, descend, no_band

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B6.1-10", "B11.1-2", "B11.1-3")
expected = {
    "nll": at_most(18.6, "exact −log p of a test digit in nats, trained by persistent contrastive divergence"),
    "nll_cd1": no_band("exact −log p of a test digit in nats, trained by contrastive divergence with one step (CD-1)"),
    "nll_independent_pixels": no_band("exact −log p of a test digit in nats, independent pixels without hidden units"),
    "cd1_minus_persistent": between(
        -0.7, 0.7, "difference between CD-1 and persistent chains in nats; about 0 at this size"
    ),
    "ais_error": at_most(0.2, "absolute error of log Z estimated by annealed importance sampling"),
}
profiles = {
    "smoke": {"hidden_size": 6, "steps": 30, "num_chains": 20, "gibbs_steps": 20, "num_temperatures": 100},
    "gpu": {"hidden_size": 20, "steps": 30_000, "num_chains": 1_000, "learning_rate": 5e-3},
}
SIDE = 8


@dataclass(frozen=True)
class Experiment:
    hidden_size: Positive[int] = 16  # hidden units; all their states are enumerated, so at most 20
    steps: Positive[int] = 3_000  # gradient steps per machine
    batch_size: Positive[int] = 128  # images per gradient step
    learning_rate: Positive[float] = 0.02  # initial learning rate of Adam, decayed linearly to 0
    num_chains: Positive[int] = 200  # persistent chains, and chains of annealed importance sampling
    gibbs_steps: Positive[int] = 2_000  # Gibbs steps per sample
    num_temperatures: Positive[int] = 1_000  # maximum number of temperatures of annealed importance sampling

    def model(self, visible: int) -> RBM:
        return RBM(
            visible, self.hidden_size, negative_sampler=PersistentContrastiveDivergence(self.num_chains, visible)
        )

    def __call__(self, run: Run) -> dict[str, float]:
        digits = load_digits().to(run.device)
        train, test = (Split(split.x.flatten(1).gt(0.4).float()) for split in (digits.train, digits.test))

        persistent = self.train(run, run.build(self.model, visible=SIDE**2), train, test, "persistent")
        one_step = RBM(SIDE**2, self.hidden_size, negative_sampler=ContrastiveDivergence(1))
        one_step = self.train(run, one_step, train, test, "CD-1")
        run.publish(persistent)

        machines = {"CD-1": one_step, "persistent": persistent}
        with torch.no_grad():
            nll = {name: float(-machine.log_prob(test.x).mean()) for name, machine in machines.items()}
            independent = -float(bernoulli_log_prob(test.x, log_odds(train.x)).mean())
            rows: list[dict[str, str | float]] = [
                {
                    "": name,
                    "training": float(-machine.log_prob(train.x).mean()),
                    "test": nll[name],
                    "log Z": float(machine.log_partition()),
                }
                for name, machine in machines.items()
            ]
        run.table(
            "negative log-likelihood", rows, "Exact −log p of a digit in nats; log Z is summed over all hidden states."
        )
        self.plot_likelihood(run)
        self.plot_samples(run, machines, test.x)
        error = self.compare_annealing(run, persistent)
        run.note("comparison", describe_comparison(nll, independent, self.hidden_size))
        return {
            "nll": nll["persistent"],
            "nll_cd1": nll["CD-1"],
            "nll_independent_pixels": independent,
            "cd1_minus_persistent": nll["CD-1"] - nll["persistent"],
            "ais_error": error,
        }

    def train(self, run: Run, machine: RBM, training: Split, test: Split, name: str) -> RBM:
        """Train with the visible biases initialised to the log-odds of the pixels, recording the exact likelihood."""
        with torch.no_grad():
            machine.visible_bias.copy_(log_odds(training.x))
        machine, optimizer, scheduler = run.prepare(
            machine,
            partial(Adam, lr=self.learning_rate, betas=(0.5, 0.999)),
            partial(LambdaLR, lr_lambda=lambda step: 1 - step / (self.steps + 1)),
        )
        every = max(1, self.steps // 30)
        for step, _ in descend(run, machine, optimizer, training.batches(self.batch_size, self.steps)):
            scheduler.step()
            if step % every == 0:
                with torch.no_grad():
                    run.record(step, **{f"nll/{name}": -machine.log_prob(test.x).mean()})
        return machine

    def plot_likelihood(self, run: Run) -> None:
        lines = {name: run.curve(f"nll/{name}") for name in ("CD-1", "persistent")}
        run.figure(
            "nll",
            curves(lines, x_label="step", y_label="nats per test digit"),
            "Exact −log p(v) during training. Both gradients are biased: the chains replace samples of the model, and "
            "start at the data (CD-1) or at their last states (persistent).",
        )

    @torch.no_grad()
    def plot_samples(self, run: Run, machines: dict[str, RBM], test: Tensor) -> None:
        rows = {"test": test[:12]}
        for name, machine in machines.items():
            rows[f"{name}, exact"] = machine.exact_sample(12)
            rows[f"{name}, chain"] = machine.sample(12, steps=self.gibbs_steps)
        run.figure(
            "samples",
            image_grid(as_images(torch.cat(list(rows.values()))), columns=12, row_labels=list(rows)),
            "Test digits, exact samples (hidden states from their enumerated probabilities), and final states of "
            f"chains of {self.gibbs_steps:,} Gibbs steps from noise.",
        )
        weights = torch.cat([machine.weight for machine in machines.values()])
        figure = image_grid(
            as_images(0.5 + 0.5 * weights / weights.abs().amax(1, keepdim=True)),
            columns=self.hidden_size,
            row_labels=list(machines),
        )
        run.figure("weights", figure, "Weights of each hidden unit: positive white, negative black.")

    @torch.no_grad()
    def compare_annealing(self, run: Run, machine: RBM) -> float:
        """Errors of log Z estimated with increasing numbers of temperatures; returns the last."""
        exact = machine.log_partition()
        counts = sorted({max(1, self.num_temperatures // factor) for factor in (1_000, 300, 100, 30, 10, 3, 1)})
        estimates = [ais_log_partition(machine, num_chains=self.num_chains, num_temperatures=count) for count in counts]
        run.figure(
            "annealing",
            plot_annealing_errors(
                counts,
                [float(each.estimate - exact) for each in estimates],
                [float(each.standard_error) for each in estimates],
            ),
            f"Error of annealed importance sampling with {self.num_chains} chains; error bars: four standard errors. "
            "Too few temperatures give estimates that are too low, with large standard errors.",
        )
        return abs(float(estimates[-1].estimate - exact))


@dataclass(frozen=True)
class Sample:
    gibbs_steps: Positive[int] = 500  # Gibbs steps from noise
    num_samples: Positive[int] = 100  # number of samples

    def __call__(self, model: RBM) -> Tensor:
        return as_images(model.sample(self.num_samples, steps=self.gibbs_steps))


def log_odds(x: Tensor) -> Tensor:
    """Log-odds of each pixel, with add-one smoothing so that constant pixels have finite values."""
    return ((x.sum(0) + 1) / (len(x) + 2)).logit()


def as_images(v: Tensor) -> Tensor:
    return v.view(-1, 1, SIDE, SIDE)


def describe_comparison(nll: dict[str, float], independent: float, hidden_size: int) -> str:
    gap = nll["CD-1"] - nll["persistent"]
    comparison = (
        "hardly differ" if abs(gap) < 0.3 else f"differ by {abs(gap):.1f} in favour of {min(nll, key=nll.__getitem__)}"
    )
    return (
        f"−log p of a test digit is {independent:.1f} nats for independent pixels and {min(nll.values()):.1f} with "
        f"{hidden_size} hidden units. CD-1 and persistent chains {comparison}: a machine of this size mixes within a "
        "few steps, so the bias of CD-1 matters less than the step size. For a large machine log Z cannot be computed "
        "exactly; annealed importance sampling, which agrees with the exact value here, then estimates it."
    )


def plot_annealing_errors(counts: list[int], errors: list[float], standard_errors: list[float]) -> "Figure":
    figure, axes = subplots()
    ax = axes[0, 0]
    ax.axhline(0, color=FAINT)
    ax.errorbar(counts, errors, yerr=[4 * each for each in standard_errors], color=PALETTE[0], marker="o", capsize=3)
    ax.set(xscale="log", xlabel="number of temperatures", ylabel="log Ẑ − log Z (nats)")
    return figure
