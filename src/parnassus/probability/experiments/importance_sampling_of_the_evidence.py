"""Most draws of the prior miss: the evidence by plain and by importance sampling (Diehl ex. 6.5)."""

from dataclasses import dataclass
from math import log, pi
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.distributions import Categorical, Independent, Normal

from parnassus.probability import (
    EvidenceEstimate,
    GaussianMixture,
    evidence_by_importance,
    evidence_by_prior,
    evidence_from_weights,
    log_mean_exp,
    share_of_hits,
)
from parnassus.report import FAINT, INK, PALETTE, curves, subplots
from parnassus.train import Run, at_most, between

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

covers = ("D6.0.6", "D6.0.9", "D6.0.10", "D6.0.11")
expected = {
    "share_of_hits": between(0.1, 0.15, "share of prior draws that are the component of x, for eight equal ones"),
    "exact_spread": at_most(1e-12, "relative spread of the weights with the posterior as proposal"),
    "prior_effective_share": at_most(2e-3, "effective share of draws from the prior, code of 10 numbers"),
    "proposal_effective_share": between(0.2, 0.3, "the same with a rough guess of the posterior"),
    "prior_bias": between(-3.0, -0.8, "mean of log p̂(x) − log p(x), 1000 prior draws, code of 10 numbers"),
    "proposal_bias": between(-0.02, 0.02, "the same with the rough guess"),
    "blind_error": between(-0.8, -0.6, "log p̂(x) − log p(x) with a proposal that leaves half of the posterior out"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"repeats": 30, "draws": 2_000}, "gpu": {}}

NOISE = 0.5
DIMS = (1, 2, 4, 6, 8, 10, 14, 20)


@dataclass(frozen=True)
class Experiment:
    components: int = 8  # bells of the mixture, on a circle
    draws: int = 20_000  # draws for each effective sample size
    repeats: int = 300  # repetitions of every estimate
    stretch: float = 1.4  # standard deviation of the rough guess, times that of the posterior

    def __call__(self, run: Run) -> dict[str, float]:
        if self.components < 2:
            raise ValueError(f"a prior draw can miss only with two components or more; got {self.components}")
        mixture = circle_of_bells(self.components)
        cause = torch.tensor([0])
        x = mixture.sample_given(cause)
        run.figure("prior draws that miss", misses_figure(mixture, x, draws=60), MISSES)
        hits = torch.multinomial(mixture.weights, 2 * self.draws, replacement=True).view(2, -1)
        share = float((hits[0] == hits[1]).double().mean())
        log_joint = mixture.log_joint(x)[0]
        exact = evidence_by_importance(lambda z: log_joint[z], Categorical(logits=log_joint), 100)

        run.figure("where the draws fall", line_figure(self.stretch), LINE)
        effective = {
            "draws of the prior": [self.by_prior(dim).effective / self.draws for dim in DIMS],
            "draws of a rough guess": [self.by_guess(dim).effective / self.draws for dim in DIMS],
        }
        theory = [1 / (1 + relative_variance(typical(dim))) for dim in DIMS]
        run.figure("effective share of the draws", effective_figure(effective, theory), EFFECTIVE)

        counts = (10, 30, 100, 300, 1_000)
        ten = typical(10)
        errors = {
            "prior": torch.stack([self.estimates(ten, prior(10), count) for count in counts]),
            "rough guess": torch.stack([self.estimates(ten, guess(ten, self.stretch), count) for count in counts]),
        }
        run.figure("estimates against draws", estimates_figure(counts, errors), ESTIMATES)

        half = Categorical(logits=torch.tensor([0.0, -torch.inf]))  # two causes explain x equally well, one is left out
        blind = evidence_by_importance(lambda z: torch.full(z.shape, log(0.5)), half, 100)
        rows = [self.row(name, estimate) for name, estimate in self.compared(ten).items()]
        run.table(
            "a code of 10 numbers", rows, f"log p(x) is {float(log_evidence(ten)):.3f}; {self.draws:,} draws each."
        )
        run.note(
            "what to see",
            f"Of prior draws {share:.1%} are the component that made x; Σ φ_i² says "
            f"{float(share_of_hits(mixture.weights)):.1%}. With a continuous code the share of useful draws shrinks by "
            "the same factor with every coordinate. A guess of the posterior that is a little too wide keeps "
            f"{float(effective['draws of a rough guess'][DIMS.index(10)]):.0%} of them at ten coordinates, the "
            "posterior itself all: then every weight is p(x).\n\n"
            f"A proposal that leaves out half of what explains x is off by {float(blind.log_evidence):.2f}, and its "
            f"weights show nothing of it: their spread is {float(blind.spread):.0f}.",
        )
        bias = {name: float(error[-1].mean()) for name, error in errors.items()}
        return {
            "share_of_hits": share,
            "exact_spread": float(exact.spread),
            "prior_effective_share": float(effective["draws of the prior"][DIMS.index(10)]),
            "proposal_effective_share": float(effective["draws of a rough guess"][DIMS.index(10)]),
            "prior_bias": bias["prior"],
            "proposal_bias": bias["rough guess"],
            "blind_error": float(blind.log_evidence),
        }

    def by_prior(self, dim: int) -> EvidenceEstimate:
        return evidence_by_prior(lambda z: log_likelihood(typical(dim), z), prior(dim), self.draws)

    def by_guess(self, dim: int) -> EvidenceEstimate:
        x = typical(dim)
        return evidence_by_importance(
            lambda z: prior(dim).log_prob(z) + log_likelihood(x, z), guess(x, self.stretch), self.draws
        )

    def estimates(self, x: Tensor, proposal: "Independent[Normal]", count: int) -> Tensor:
        """The error log p̂(x) − log p(x) of every repetition."""
        z = proposal.sample(torch.Size([self.repeats, count]))
        log_weights = prior(len(x)).log_prob(z) + log_likelihood(x, z) - proposal.log_prob(z)
        return log_mean_exp(log_weights) - log_evidence(x)

    def compared(self, x: Tensor) -> dict[str, EvidenceEstimate]:
        exact = guess(x, 1.0)
        z = exact.sample(torch.Size([self.draws]))
        weights = prior(len(x)).log_prob(z) + log_likelihood(x, z) - exact.log_prob(z)
        return {
            "prior": self.by_prior(len(x)),
            "rough guess": self.by_guess(len(x)),
            "posterior": evidence_from_weights(weights),
        }

    def row(self, name: str, estimate: EvidenceEstimate) -> dict[str, str | float]:
        return {
            "draws from the": name,
            "log p̂(x)": f"{float(estimate.log_evidence):.3f}",
            "relative spread": f"{float(estimate.spread):.2g}",
            "effective draws": f"{float(estimate.effective):,.0f}",
            "caution": estimate.caution.split(",")[0] or "none",
        }


MISSES = (
    "A mixture of bells, an observation x (the star) and 60 draws of the hidden component, each shown as a point of "
    "its bell. Left, from the prior: nearly all draws are components that cannot have made x, and add nothing to the "
    "mean of p(x|Z). Right, from the posterior: all of them count."
)
LINE = (
    "A code of one number: prior, posterior and a rough guess of it, somewhat too wide. Below, 80 draws of the prior "
    "and of the guess; a draw is as strong as its weight."
)
EFFECTIVE = (
    "Effective sample size as a share of the draws, for codes of more and more numbers; the dashed line is the exact "
    "law of the prior. Every coordinate of the code costs the same factor, until no draw hits and the measured share "
    "stops at one draw: then it is too hopeful."
)
ESTIMATES = (
    "Error of log p̂(x) for a code of 10 numbers: mean and the middle 80 % of repeated estimates. The estimate of p(x) "
    "is right on average, but its logarithm is too low, the more so the fewer draws count."
)


def circle_of_bells(components: int) -> GaussianMixture:
    angle = 2 * pi * torch.arange(components, dtype=torch.float64) / components
    means = 4 * torch.stack([angle.cos(), angle.sin()], -1)
    round_bell = 0.16 * torch.eye(2, dtype=torch.float64)
    weights = torch.full((components,), 1 / components, dtype=torch.float64)
    return GaussianMixture(weights, means, round_bell.expand(components, 2, 2))


def prior(dim: int) -> "Independent[Normal]":
    return Independent(Normal(torch.zeros(dim, dtype=torch.float64), torch.ones(dim, dtype=torch.float64)), 1)


def typical(dim: int) -> Tensor:
    """An observation one standard deviation from 0 in every coordinate."""
    return torch.full((dim,), (1 + NOISE**2) ** 0.5, dtype=torch.float64)


def log_likelihood(x: Tensor, z: Tensor) -> Tensor:
    """X is z with noise in every coordinate."""
    each: Tensor = Normal(z, NOISE).log_prob(x)
    return each.sum(-1)


def log_evidence(x: Tensor) -> Tensor:
    each: Tensor = Normal(torch.zeros_like(x), (1 + NOISE**2) ** 0.5).log_prob(x)
    return each.sum(-1)


def guess(x: Tensor, stretch: float) -> "Independent[Normal]":
    """The posterior N(x / (1 + s²), s² / (1 + s²)) with its standard deviation stretched."""
    shrink = 1 / (1 + NOISE**2)
    return Independent(Normal(shrink * x, torch.full_like(x, stretch * (1 - shrink) ** 0.5)), 1)


def relative_variance(x: Tensor) -> float:
    """Var p(x|Z) / p(x)² for draws of the prior: N(x; z, s²)² = N(x; z, s²/2) / √(4πs²)."""
    wider: Tensor = Normal(torch.zeros_like(x), (1 + NOISE**2 / 2) ** 0.5).log_prob(x)
    square = (wider - log(4 * pi * NOISE**2) / 2).sum()
    return float((square - 2 * log_evidence(x)).expm1())


def misses_figure(mixture: GaussianMixture, x: Tensor, *, draws: int) -> "Figure":
    figure, axes = subplots(1, 2, size=(9.6, 5.4))
    proposals = {"prior": mixture.weights, "posterior": mixture.responsibilities(x)[0]}
    for ax, (name, chances) in zip(axes[0], proposals.items(), strict=True):
        z = torch.multinomial(chances, draws, replacement=True)
        points = mixture.sample_given(z)
        counts = mixture.log_joint(x)[0][z] - mixture.weights.log()[z] > mixture.log_prob(x) - 10
        for outline in mixture.outlines(2.5):
            ax.plot(outline[:, 0], outline[:, 1], color=FAINT, linewidth=1)
        ax.scatter(points[~counts, 0], points[~counts, 1], s=16, color=FAINT, linewidths=0)
        ax.scatter(points[counts, 0], points[counts, 1], s=20, color=PALETTE[0], linewidths=0)
        ax.scatter(x[:, 0], x[:, 1], s=170, marker="*", color=PALETTE[1], zorder=4)
        ax.set_aspect("equal")
        ax.set(xlabel="x₁", ylabel="x₂", title=f"{int(counts.sum())} of {draws} draws of the {name} count")
    return figure


def line_figure(stretch: float) -> "Figure":
    figure, axes = subplots(2, 1, size=(7.2, 4.6))
    x = 1.6 * typical(1)
    z = torch.linspace(-3.5, 3.5, 500, dtype=torch.float64)
    laws = {"prior": prior(1), "posterior": guess(x, 1.0), "rough guess": guess(x, stretch)}
    for (name, law), colour in zip(laws.items(), (FAINT, INK, PALETTE[0]), strict=True):
        axes[0, 0].plot(z, law.log_prob(z[:, None]).exp(), color=colour, label=name)
    axes[0, 0].set(ylabel="density of z", xlim=(-3.5, 3.5))
    axes[0, 0].legend(loc="upper left")
    rug(axes[1, 0], {"prior": laws["prior"], "rough guess": laws["rough guess"]}, x)
    return figure


def rug(ax: "Axes", proposals: "dict[str, Independent[Normal]]", x: Tensor) -> None:
    """80 draws of each proposal as strokes, as strong as their weights."""
    for height, (_, law) in enumerate(proposals.items()):
        z = law.sample(torch.Size([80]))
        log_weights = prior(1).log_prob(z) + log_likelihood(x, z) - law.log_prob(z)
        shade = (log_weights - log_weights.max()).exp()
        ax.vlines(z[:, 0], height - 0.35, height + 0.35, color=FAINT, linewidth=0.8, alpha=0.5)
        strokes = [(PALETTE[1], alpha) for alpha in shade.tolist()]
        ax.vlines(z[:, 0], height - 0.35, height + 0.35, colors=strokes, linewidth=2)
    ax.set(xlabel="z", yticks=range(len(proposals)), yticklabels=list(proposals), xlim=(-3.5, 3.5))
    ax.grid(visible=False)


def effective_figure(effective: dict[str, list[Tensor]], theory: list[float]) -> "Figure":
    lines = {name: (DIMS, torch.stack(shares)) for name, shares in effective.items()}
    figure = curves(lines, x_label="size of the code", y_label="effective share of the draws", log_y=True)
    ax = figure.axes[0]
    ax.plot(DIMS, theory, color=INK, linestyle="--", linewidth=1, label="prior, exactly")
    ax.set_ylim(max(1e-6, theory[-1]), 2)
    ax.legend()
    return figure


def estimates_figure(counts: tuple[int, ...], errors: dict[str, Tensor]) -> "Figure":
    lines = {name: (counts, error.mean(1)) for name, error in errors.items()}
    bands = {name: (error.quantile(0.1, 1), error.quantile(0.9, 1)) for name, error in errors.items()}
    figure = curves(lines, x_label="draws", y_label="log p̂(x) − log p(x)", log_x=True, bands=bands)
    figure.axes[0].axhline(0, color=INK, linewidth=1, linestyle="--")
    return figure
