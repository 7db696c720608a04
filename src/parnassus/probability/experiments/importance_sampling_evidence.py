"""Estimating the evidence by prior sampling and by importance sampling (Diehl ex. 6.5)."""

from dataclasses import dataclass
from math import log, pi
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.distributions import Categorical, Independent, Normal

from parnassus.probability import (
    EvidenceEstimate,
    GaussianMixture,
    collision_probability,
    evidence_by_importance_sampling,
    evidence_by_prior_sampling,
    evidence_from_weights,
    log_mean_exp,
)
from parnassus.probability.textbook.noisy_observation import (
    log_evidence,
    log_joint,
    log_likelihood,
    posterior,
    prior,
    relative_variance,
    typical_observation,
)
from parnassus.report import FAINT, INK, PALETTE, curves, subplots
from parnassus.train import Positive, Run, at_most, between

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

covers = ("D6.0.6", "D6.0.9", "D6.0.10", "D6.0.11")
expected = {
    "hit_fraction": between(
        0.1, 0.15, "fraction of prior samples equal to the component of x, for eight equal weights"
    ),
    "posterior_relative_error": at_most(
        1e-12, "relative standard error of the estimate with the posterior as proposal"
    ),
    "prior_ess_fraction": at_most(2e-3, "ratio of effective to actual sample size, prior sampling in 10 dimensions"),
    "proposal_ess_fraction": between(
        0.2, 0.3, "ratio of effective to actual sample size, overdispersed posterior as proposal, 10 dimensions"
    ),
    "prior_bias": between(-3.0, -0.8, "mean of log p̂(x) − log p(x), 1,000 prior samples in 10 dimensions"),
    "proposal_bias": between(
        -0.02, 0.02, "mean of log p̂(x) − log p(x), 1,000 samples of the overdispersed posterior in 10 dimensions"
    ),
    "incomplete_proposal_error": between(
        -0.8, -0.6, "log p̂(x) − log p(x) with a proposal that omits half of the posterior"
    ),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"num_repeats": 30, "num_samples": 2_000}, "gpu": {}}

DIMS = (1, 2, 4, 6, 8, 10, 14, 20)


@dataclass(frozen=True)
class Experiment:
    num_components: Positive[int] = 8  # Gaussian components of the mixture, on a circle
    num_samples: Positive[int] = 20_000  # samples per estimate of the effective sample size
    num_repeats: Positive[int] = 300  # repetitions of each estimate
    std_scale: Positive[float] = 1.4  # ratio of the standard deviations of proposal and posterior

    def __call__(self, run: Run) -> dict[str, float]:
        if self.num_components < 2:
            raise ValueError(f"num_components must be at least 2; got num_components={self.num_components}")
        mixture = circle_mixture(self.num_components)
        component = torch.tensor([0])
        x = mixture.sample_given(component)
        run.figure("prior and posterior samples", plot_samples(mixture, x, draws=60), SAMPLES)
        pairs = torch.multinomial(mixture.weights, 2 * self.num_samples, replacement=True).view(2, -1)
        fraction = float((pairs[0] == pairs[1]).double().mean())
        joint = mixture.log_joint(x)[0]
        exact = evidence_by_importance_sampling(lambda z: joint[z], Categorical(logits=joint), 100)

        run.figure("proposals in one dimension", plot_line(self.std_scale), LINE)
        effective = {
            "prior": [self.estimate_from_prior(dim).effective_sample_size / self.num_samples for dim in DIMS],
            "overdispersed posterior": [
                self.estimate_from_proposal(dim).effective_sample_size / self.num_samples for dim in DIMS
            ],
        }
        theory = [1 / (1 + float(relative_variance(typical_observation(dim)))) for dim in DIMS]
        run.figure("effective sample size", plot_effective(effective, theory), EFFECTIVE)

        counts = (10, 30, 100, 300, 1_000)
        ten = typical_observation(10)
        errors = {
            "prior": torch.stack([self.log_evidence_errors(ten, prior(10), count) for count in counts]),
            "overdispersed posterior": torch.stack(
                [self.log_evidence_errors(ten, posterior(ten, std_scale=self.std_scale), count) for count in counts]
            ),
        }
        run.figure("estimation error", plot_estimates(counts, errors), ESTIMATES)

        half = Categorical(logits=torch.tensor([0.0, -torch.inf]))  # omits one of two equally likely latent states
        incomplete = evidence_by_importance_sampling(lambda z: torch.full(z.shape, log(0.5)), half, 100)
        rows = [self.row(name, estimate) for name, estimate in self.compare_proposals(ten).items()]
        run.table(
            "evidence in 10 dimensions",
            rows,
            f"log p(x) is {float(log_evidence(ten)):.3f}; {self.num_samples:,} samples each.",
        )
        run.note(
            "results",
            f"A fraction {fraction:.1%} of the prior samples are the component that generated x; Σ φ_i² is "
            f"{float(collision_probability(mixture.weights)):.1%}. With a continuous z the effective sample size "
            "decreases by a constant factor per dimension. A slightly overdispersed posterior keeps "
            f"{float(effective['overdispersed posterior'][DIMS.index(10)]):.0%} of the samples effective in ten "
            "dimensions; with the posterior itself every weight equals p(x).\n\n"
            f"A proposal that omits half of the posterior has an error of {float(incomplete.log_evidence):.2f}, which "
            f"the weights do not indicate: their relative standard error is "
            f"{float(incomplete.relative_standard_error):.0f}.",
        )
        bias = {name: float(error[-1].mean()) for name, error in errors.items()}
        return {
            "hit_fraction": fraction,
            "posterior_relative_error": float(exact.relative_standard_error),
            "prior_ess_fraction": float(effective["prior"][DIMS.index(10)]),
            "proposal_ess_fraction": float(effective["overdispersed posterior"][DIMS.index(10)]),
            "prior_bias": bias["prior"],
            "proposal_bias": bias["overdispersed posterior"],
            "incomplete_proposal_error": float(incomplete.log_evidence),
        }

    def estimate_from_prior(self, dim: int) -> EvidenceEstimate:
        return evidence_by_prior_sampling(
            lambda z: log_likelihood(typical_observation(dim), z), prior(dim), self.num_samples
        )

    def estimate_from_proposal(self, dim: int) -> EvidenceEstimate:
        x = typical_observation(dim)
        return evidence_by_importance_sampling(
            lambda z: log_joint(x, z),
            posterior(x, std_scale=self.std_scale),
            self.num_samples,
        )

    def log_evidence_errors(self, x: Tensor, proposal: "Independent[Normal]", count: int) -> Tensor:
        """The error log p̂(x) − log p(x) of every repetition."""
        z = proposal.sample(torch.Size([self.num_repeats, count]))
        log_weights = log_joint(x, z) - proposal.log_prob(z)
        return log_mean_exp(log_weights) - log_evidence(x)

    def compare_proposals(self, x: Tensor) -> dict[str, EvidenceEstimate]:
        exact = posterior(x)
        z = exact.sample(torch.Size([self.num_samples]))
        weights = log_joint(x, z) - exact.log_prob(z)
        return {
            "prior": self.estimate_from_prior(len(x)),
            "overdispersed posterior": self.estimate_from_proposal(len(x)),
            "posterior": evidence_from_weights(weights),
        }

    def row(self, name: str, estimate: EvidenceEstimate) -> dict[str, str | float]:
        return {
            "proposal": name,
            "log p̂(x)": f"{float(estimate.log_evidence):.3f}",
            "relative standard error": f"{float(estimate.relative_standard_error):.2g}",
            "effective sample size": f"{float(estimate.effective_sample_size):,.0f}",
            "warning": estimate.warning.split(",")[0] or "none",
        }


SAMPLES = (
    "A Gaussian mixture, an observation x (star) and 60 samples of the component z, each shown as a point of that "
    "component. Left, from the prior: most samples have p(x|z) ≈ 0 and do not contribute to the mean. Right, from the "
    "posterior: all samples contribute."
)
LINE = (
    "Prior, posterior and overdispersed posterior of a one-dimensional z. Below: 80 samples of the prior and of the "
    "overdispersed posterior, with opacity proportional to their weights."
)
EFFECTIVE = (
    "Effective sample size divided by the number of samples, against the dimension of z; dashed: the exact value for "
    "the prior. It decreases by a constant factor per dimension. Once no sample is near the posterior the estimate "
    "saturates at one sample, which is too optimistic."
)
ESTIMATES = (
    "Error of log p̂(x) in 10 dimensions: mean and central 80 % of repeated estimates. The estimate of p(x) is "
    "unbiased, but its logarithm is biased downwards, more strongly for a smaller effective sample size."
)


def circle_mixture(components: int) -> GaussianMixture:
    angle = 2 * pi * torch.arange(components, dtype=torch.float64) / components
    means = 4 * torch.stack([angle.cos(), angle.sin()], -1)
    covariance = 0.16 * torch.eye(2, dtype=torch.float64)
    weights = torch.full((components,), 1 / components, dtype=torch.float64)
    return GaussianMixture(weights, means, covariance.expand(components, 2, 2))


def plot_samples(mixture: GaussianMixture, x: Tensor, *, draws: int) -> "Figure":
    figure, axes = subplots(1, 2, size=(9.6, 5.4))
    proposals = {"prior": mixture.weights, "posterior": mixture.responsibilities(x)[0]}
    for ax, (name, weights) in zip(axes[0], proposals.items(), strict=True):
        z = torch.multinomial(weights, draws, replacement=True)
        points = mixture.sample_given(z)
        contributes = mixture.log_joint(x)[0][z] - mixture.weights.log()[z] > mixture.log_prob(x) - 10
        for outline in mixture.ellipses(2.5):
            ax.plot(outline[:, 0], outline[:, 1], color=FAINT, linewidth=1)
        ax.scatter(points[~contributes, 0], points[~contributes, 1], s=16, color=FAINT, linewidths=0)
        ax.scatter(points[contributes, 0], points[contributes, 1], s=20, color=PALETTE[0], linewidths=0)
        ax.scatter(x[:, 0], x[:, 1], s=170, marker="*", color=PALETTE[1], zorder=4)
        ax.set_aspect("equal")
        ax.set(xlabel="x₁", ylabel="x₂", title=f"{int(contributes.sum())} of {draws} {name} samples contribute")
    return figure


def plot_line(std_scale: float) -> "Figure":
    figure, axes = subplots(2, 1, size=(7.2, 4.6))
    x = 1.6 * typical_observation(1)
    z = torch.linspace(-3.5, 3.5, 500, dtype=torch.float64)
    densities = {
        "prior": prior(1),
        "posterior": posterior(x),
        "overdispersed posterior": posterior(x, std_scale=std_scale),
    }
    for (name, density), colour in zip(densities.items(), (FAINT, INK, PALETTE[0]), strict=True):
        axes[0, 0].plot(z, density.log_prob(z[:, None]).exp(), color=colour, label=name)
    axes[0, 0].set(ylabel="density of z", xlim=(-3.5, 3.5))
    axes[0, 0].legend(loc="upper left")
    plot_rug(
        axes[1, 0], {"prior": densities["prior"], "overdispersed posterior": densities["overdispersed posterior"]}, x
    )
    return figure


def plot_rug(ax: "Axes", proposals: "dict[str, Independent[Normal]]", x: Tensor) -> None:
    """80 samples of each proposal, with opacity proportional to their weights."""
    for height, (_, proposal) in enumerate(proposals.items()):
        z = proposal.sample(torch.Size([80]))
        log_weights = log_joint(x, z) - proposal.log_prob(z)
        shade = (log_weights - log_weights.max()).exp()
        ax.vlines(z[:, 0], height - 0.35, height + 0.35, color=FAINT, linewidth=0.8, alpha=0.5)
        strokes = [(PALETTE[1], alpha) for alpha in shade.tolist()]
        ax.vlines(z[:, 0], height - 0.35, height + 0.35, colors=strokes, linewidth=2)
    ax.set(xlabel="z", yticks=range(len(proposals)), yticklabels=list(proposals), xlim=(-3.5, 3.5))
    ax.grid(visible=False)


def plot_effective(effective: dict[str, list[Tensor]], theory: list[float]) -> "Figure":
    lines = {name: (DIMS, torch.stack(fractions)) for name, fractions in effective.items()}
    figure = curves(lines, x_label="dimension of z", y_label="effective sample size / samples", log_y=True)
    ax = figure.axes[0]
    ax.plot(DIMS, theory, color=INK, linestyle="--", linewidth=1, label="prior, exact")
    ax.set_ylim(max(1e-6, theory[-1]), 2)
    ax.legend()
    return figure


def plot_estimates(counts: tuple[int, ...], errors: dict[str, Tensor]) -> "Figure":
    lines = {name: (counts, error.mean(1)) for name, error in errors.items()}
    bands = {name: (error.quantile(0.1, 1), error.quantile(0.9, 1)) for name, error in errors.items()}
    figure = curves(lines, x_label="samples", y_label="log p̂(x) − log p(x)", log_x=True, bands=bands)
    figure.axes[0].axhline(0, color=INK, linewidth=1, linestyle="--")
    return figure
