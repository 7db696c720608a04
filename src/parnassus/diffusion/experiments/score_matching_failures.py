"""Score matching on manifolds, in low-density regions and of mode weights: failures and remedy (book sec. 13.2.7)."""

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from parnassus.atlas import exponent
from parnassus.diffusion.figures import plot_score_field
from parnassus.diffusion.networks.score_networks import mlp_score
from parnassus.diffusion.samplers.annealed_langevin import annealed_langevin_path
from parnassus.diffusion.samplers.langevin import langevin_path
from parnassus.diffusion.scores.gaussian_mixture import IsotropicMixture, upper_mode_fraction
from parnassus.diffusion.scores.noise_levels import geometric_levels
from parnassus.diffusion.scores.score_matching import (
    ScoreFunction,
    ScoreMatching,
    denoising_score_matching,
    implicit_score_matching,
)
from parnassus.optim import Adam
from parnassus.report import FAINT, INK, PALETTE, curves, subplots
from parnassus.train import ModelCollection, Positive, Run, UnitInterval, at_least, at_most, between, no_band

covers = ("B13.2.7-2", "B13.2.7-4")
expected = {
    "circle_exponent": between(-2.2, -1.8, "exponent of σ in the minimum denoising loss for data on a circle"),
    "circle_implicit_loss": at_most(-10.0, "implicit loss for data on a circle without noise, unbounded below"),
    "error_high_density": at_most(0.3, "median relative error of the score where 90 % of the data lie"),
    "error_low_density": at_least(
        0.5, "median relative error of the score in the low-density region between the two modes"
    ),
    "mode_fraction_plain": between(0.44, 0.56, "fraction of plain Langevin samples in the mode of weight 0.8"),
    "mode_fraction_annealed": between(0.70, 0.84, "fraction of annealed Langevin samples in the mode of weight 0.8"),
    "mode_fraction_true": no_band("weight of the larger mode in the data"),
}
profiles = {"smoke": {"steps": 10, "width": 16, "num_samples": 50, "langevin_steps": 5}}
SIGMAS = (0.4, 0.2, 0.1, 0.05)
LIMIT = 9.0  # half the side of the plots


@dataclass(frozen=True)
class Experiment:
    steps: Positive[int] = 1_200  # gradient steps of each network
    batch_size: Positive[int] = 256  # points per gradient step
    width: Positive[int] = 64  # hidden units in each of two layers
    learning_rate: Positive[float] = 2e-3  # learning rate of Adam
    mode_weight: UnitInterval = 0.8  # weight of the larger mode
    num_samples: Positive[int] = 2_000  # number of samples per sampler
    langevin_steps: Positive[int] = 300  # steps of plain Langevin dynamics

    def __call__(self, run: Run) -> dict[str, float]:
        result = self.match_on_circle(run)
        means = torch.tensor([[-5.0, -5.0], [5.0, 5.0]], device=run.device)
        mixture = IsotropicMixture.from_components(
            means, means.new_ones(2), means.new_tensor([1 - self.mode_weight, self.mode_weight])
        )
        result |= self.match_between_modes(run, mixture)
        result |= self.sample_modes(run, mixture)
        run.note(
            "effect of noise",
            "Noise at several levels remedies all three failures: noisy data on a curve have a density and a score "
            "everywhere; noisy points cover the low-density region between the modes and provide training data there; "
            "at high noise the modes overlap, so samples reach the correct mode weights before the noise is reduced.",
        )
        return result

    def match_on_circle(self, run: Run) -> dict[str, float]:
        """Data on a circle: the minimum loss grows as 1/σ², and without noise the loss is unbounded below."""
        networks = {
            f"σ = {sigma:g}": ScoreMatching(ScaledScore(self.width, sigma), DenoisingLoss(sigma)) for sigma in SIGMAS
        }
        networks["no noise"] = ScoreMatching(mlp_score(2, self.width), implicit_score_matching)
        models, optimizer = run.prepare(
            ModelCollection[ScoreMatching]({str(index): model for index, model in enumerate(networks.values())}),
            partial(Adam, lr=self.learning_rate),
        )
        for step, _ in run.steps(self.steps):
            x = sample_circle(self.batch_size, run.device)
            losses = {name: models.model(str(index)).loss(x) for index, name in enumerate(networks)}
            run.update(optimizer, torch.stack([*losses.values()]).sum())
            run.log(step, **{f"circle/{name}": loss for name, loss in losses.items()})
        with torch.no_grad():
            x = sample_circle(20_000, run.device)
            final = [float(models.model(str(index)).loss(x)) for index in range(len(SIGMAS))]
        lines = {"learned": (SIGMAS, final), "1/σ²": (SIGMAS, [sigma**-2 for sigma in SIGMAS])}
        figure = curves(lines, x_label="noise σ", y_label="denoising loss", log_x=True, log_y=True)
        run.figure(
            "denoising loss on a circle", figure,
            "Denoising loss for data on a circle. The tangential component of the noise cannot be predicted, which "
            "alone contributes 1/σ²; without noise the score does not exist.",
        )  # fmt: skip
        steps, implicit_losses = run.curve("circle/no noise")
        figure = curves({"": (steps, implicit_losses)}, x_label="step", y_label="implicit loss", smooth=True)
        run.figure(
            "implicit loss on a circle", figure,
            "Implicit score matching on the circle without noise: the normal component of the field can grow without "
            "bound, and the loss decreases without limit.",
        )  # fmt: skip
        ends = (SIGMAS[0], SIGMAS[-1]), (final[0], final[-1])
        return {"circle_exponent": exponent(*ends), "circle_implicit_loss": min(implicit_losses)}

    def match_between_modes(self, run: Run, mixture: IsotropicMixture) -> dict[str, float]:
        """A score learned from data with two distant modes, and its error between them."""
        model, optimizer = run.prepare(
            ScoreMatching(ScaledInput(mlp_score(2, self.width), 5.0), implicit_score_matching),
            partial(Adam, lr=self.learning_rate),
        )
        for step, _ in run.steps(self.steps):
            optimizer.param_groups[0]["lr"] = self.learning_rate * (1 - step / self.steps)
            x, _ = mixture.sample(self.batch_size)
            loss = model.loss(x)
            run.update(optimizer, loss)
            run.log(step, **{"two modes": loss.detach()})
        line = torch.linspace(-LIMIT, LIMIT, 81)
        grid = torch.cartesian_prod(line, line).flip(1).to(run.device)
        with torch.no_grad():
            truth = mixture.score(grid)
            error = (model.score(grid) - truth).norm(dim=1) / truth.norm(dim=1).clamp(min=0.5)
        figure, axes = subplots(1, 2, size=(10.5, 4.6))
        plot_score_field(axes[0, 0], mixture, model.score, limit=LIMIT)
        axes[0, 0].set_title("learned (blue) and true score (grey)")
        image = axes[0, 1].imshow(
            error.view(81, 81).clamp(max=1).cpu().numpy(),
            extent=(-LIMIT, LIMIT, -LIMIT, LIMIT),
            origin="lower",
            vmin=0,
            vmax=1,
        )
        density = mixture.log_prob(grid).view(81, 81).cpu()
        axes[0, 1].contour(
            line, line, density, levels=[-12.0, -7.0, -4.0], colors="white", linewidths=0.8, linestyles="solid"
        )
        axes[0, 1].set(title="relative error", xticks=[], yticks=[])
        axes[0, 1].grid(visible=False)
        figure.colorbar(image, ax=axes[0, 1]).outline.set_visible(False)
        run.figure(
            "score in low-density regions", figure,
            "A score learned from data with two modes (contours: density). It is accurate where data lie and "
            "inaccurate between the modes, which samples have to cross.",
        )  # fmt: skip
        x, _ = mixture.sample(4_000)
        dense = x[mixture.log_prob(x) > mixture.log_prob(x).quantile(0.1)]
        between_modes = (2 * torch.rand_like(x) - 1) * 2
        return {
            "error_high_density": relative_error(model.score, mixture.score, dense),
            "error_low_density": relative_error(model.score, mixture.score, between_modes),
        }

    def sample_modes(self, run: Run, mixture: IsotropicMixture) -> dict[str, float]:
        """Langevin dynamics with exact scores: mode weights without and with annealing."""
        start = 16 * torch.rand(self.num_samples, 2, device=run.device) - 8
        plain = list(langevin_path(mixture.score, start, step=0.2, steps=self.langevin_steps))
        levels = geometric_levels(10, 0.01, 20.0)
        annealed = list(
            annealed_langevin_path(
                mixture.noise_conditional_score(levels),
                levels,
                start,
                steps=self.langevin_steps // 3,
            )
        )
        plain_fraction, annealed_fraction = upper_mode_fraction(plain[-1]), upper_mode_fraction(annealed[-1])
        figure, axes = subplots(1, 3, size=(11, 3.9))
        panels = {
            f"data: {self.mode_weight:.0%} in the larger mode": mixture.sample(self.num_samples)[0],
            f"plain Langevin: {plain_fraction:.0%}": plain[-1],
            f"annealed Langevin: {annealed_fraction:.0%}": annealed[-1],
        }
        for ax, (title, points), colour in zip(axes[0], panels.items(), (INK, *PALETTE), strict=False):
            cloud = points.cpu()
            ax.scatter(cloud[:, 0], cloud[:, 1], s=4, color=colour, linewidths=0, alpha=0.6, rasterized=True)
            ax.set(title=title, xlim=(-9, 9), ylim=(-9, 9), aspect="equal", xticks=[], yticks=[])
            ax.axline((0, 0), slope=-1, color=FAINT, linewidth=0.8, linestyle="--")
        run.figure(
            "mode weights", figure,
            "Langevin samples with exact scores from a uniform initial distribution. Plain samples stay on the side of "
            "the dashed line where they start; annealed samples distribute while the noise connects the modes.",
        )  # fmt: skip
        return {
            "mode_fraction_plain": plain_fraction,
            "mode_fraction_annealed": annealed_fraction,
            "mode_fraction_true": self.mode_weight,
        }


class ScaledScore(nn.Module):
    """A score network whose output is divided by σ, the scale of the score of noisy data."""

    def __init__(self, width: int, sigma: float) -> None:
        super().__init__()
        self.network = mlp_score(2, width)
        self.sigma = sigma

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.network(x)
        return out / self.sigma


class ScaledInput(nn.Module):
    """A score network evaluated at x / scale."""

    def __init__(self, network: nn.Module, scale: float) -> None:
        super().__init__()
        self.network = network
        self.scale = scale

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.network(x / self.scale)
        return out


@dataclass(frozen=True)
class DenoisingLoss:
    """The denoising score matching loss at one noise level σ."""

    sigma: float

    def __call__(self, score: ScoreFunction, x: Tensor) -> Tensor:
        return denoising_score_matching(score, x, torch.randn_like(x), std=self.sigma)


def sample_circle(count: int, device: torch.device) -> Tensor:
    angle = 2 * torch.pi * torch.rand(count, device=device)
    return torch.stack([angle.cos(), angle.sin()], 1)


@torch.no_grad()
def relative_error(score: ScoreFunction, truth: ScoreFunction, x: Tensor) -> float:
    """The median of ‖s − truth‖ / max(‖truth‖, ½)."""
    target = truth(x)
    return float(((score(x) - target).norm(dim=1) / target.norm(dim=1).clamp(min=0.5)).median())
