"""Annealed Langevin dynamics, DDPM and DDIM with one score network on a mixture (book secs. 13.2.7, 13.2.8)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import islice

import torch
from torch import Tensor

from parnassus.diffusion.chain.forward_process import Denoiser
from parnassus.diffusion.chain.schedules import Schedule
from parnassus.diffusion.figures import plot_score_field
from parnassus.diffusion.models.score_model import ScoreModel
from parnassus.diffusion.networks.mlp_denoisers import TimeMLP
from parnassus.diffusion.samplers.annealed_langevin import annealed_langevin, annealed_langevin_path
from parnassus.diffusion.samplers.ddim import ddim, ddim_path
from parnassus.diffusion.samplers.ddpm import ddpm
from parnassus.diffusion.samplers.langevin import langevin
from parnassus.diffusion.scores.gaussian_mixture import IsotropicMixture, upper_mode_fraction
from parnassus.diffusion.scores.noise_levels import alpha_bar_from_levels, geometric_levels
from parnassus.diffusion.scores.score_matching import NoiseConditionalScore
from parnassus.optim import Adam
from parnassus.probability import energy_distance
from parnassus.report import FAINT, PALETTE, curves, subplots
from parnassus.train import Positive, Run, at_most, between, no_band

covers = ("B13.2.7-3", "B13.2.7-4", "B13.2.8-3")
expected = {
    "mode_fraction_exact": between(
        0.72, 0.83, "fraction of annealed Langevin samples in the mode of weight 0.8, exact scores"
    ),
    "mode_fraction_learned": between(
        0.70, 0.86, "fraction of annealed Langevin samples in the mode of weight 0.8, learned scores"
    ),
    "mode_fraction_plain": between(
        0.44, 0.56, "fraction of plain Langevin samples in the mode of weight 0.8, exact score"
    ),
    "distance_exact": no_band("energy distance of the annealed samples to the data, exact scores"),
    "distance_learned": at_most(0.02, "energy distance of the annealed samples to the data, learned scores"),
    "distance_ddpm": at_most(0.02, "energy distance of DDPM samples to the data, same network"),
    "distance_ddim": at_most(0.02, "energy distance of DDIM samples to the data, same network"),
    "energy_distance_of_data": no_band(
        "energy distance between two samples of the data: differences below this are within sampling noise"
    ),
}
profiles = {"smoke": {"steps": 10, "width": 16, "num_samples": 100, "steps_per_level": 3, "level_counts": (2, 5)}}
LIMIT = 1.8  # half the side of the plots


def uneven_mixture(device: torch.device) -> IsotropicMixture:
    """Two modes at (−1, −1) and (1, 1) with weights 0.2 and 0.8 and standard deviation 0.2."""
    means = torch.tensor([[-1.0, -1.0], [1.0, 1.0]], device=device)
    return IsotropicMixture.from_components(means, means.new_full((2,), 0.2), means.new_tensor([0.2, 0.8]))


@dataclass(frozen=True)
class Experiment:
    steps: Positive[int] = 2_000  # gradient steps
    batch_size: Positive[int] = 256  # new points per gradient step
    width: Positive[int] = 64  # hidden units of the network
    learning_rate: Positive[float] = 2e-3  # initial learning rate of Adam, decayed linearly to 0
    num_levels: Positive[int] = 40  # number of noise levels T
    sigma_min: Positive[float] = 0.01  # smallest noise level σ_1
    sigma_max: Positive[float] = 10.0  # largest noise level σ_T, wider than the data
    steps_per_level: Positive[int] = 25  # Langevin steps at each noise level
    step_factor: Positive[float] = 0.1  # step size c_t divided by σ_t²
    num_samples: Positive[int] = 2_000  # number of samples per sampler
    level_counts: tuple[Positive[int], ...] = (2, 3, 5, 8, 12, 20)  # numbers of noise levels to compare

    def model(self) -> ScoreModel:
        return ScoreModel(
            TimeMLP(2, self.width), (2,), geometric_levels(self.num_levels, self.sigma_min, self.sigma_max)
        )

    def __call__(self, run: Run) -> dict[str, float]:
        truth = uneven_mixture(run.device)
        model, optimizer = run.prepare(run.build(self.model), partial(Adam, lr=self.learning_rate))
        for step, _ in run.steps(self.steps):
            optimizer.param_groups[0]["lr"] = self.learning_rate * (1 - step / self.steps)
            loss = model.loss(truth.sample(self.batch_size)[0])
            run.update(optimizer, loss)
            run.log(step, loss=loss.detach())

        with torch.no_grad():
            result = self.compare_samplers(run, model, truth)
            self.plot_annealing(run, model, truth)
            self.plot_level_counts(run, truth)
        tabulate_model_families(run)
        return result

    def compare_samplers(self, run: Run, model: ScoreModel, truth: IsotropicMixture) -> dict[str, float]:
        """Mode fraction, distance to the data and number of score evaluations of six samplers."""
        start = 3.2 * torch.rand(self.num_samples, 2, device=run.device) - 1.6
        levels, network, total = model.levels, model.network, self.steps_per_level * self.num_levels
        annealing = partial(annealed_langevin, steps=self.steps_per_level, factor=self.step_factor)
        schedule = schedule_from_levels(geometric_levels(self.num_levels, self.sigma_min, self.sigma_max))
        noise = torch.randn(self.num_samples, 2, device=run.device)
        samplers: dict[str, tuple[Callable[[], Tensor], int]] = {
            "plain Langevin, exact": (
                lambda: langevin(truth.score, start, step=0.2 * 0.04, steps=total), total
            ),
            "annealed, exact": (lambda: annealing(truth.noise_conditional_score(levels), levels, start), total),
            "annealed, learned": (lambda: annealing(model.score, levels, start), total),
            "DDPM, learned": (lambda: ddpm(network, schedule, noise), self.num_levels),
            "DDIM, learned": (lambda: ddim(network, schedule, noise), self.num_levels),
            "DDIM + Langevin": (
                lambda: ddim_with_langevin(network, schedule, noise, factor=self.step_factor), 2 * self.num_levels
            ),
        }  # fmt: skip
        real, other = truth.sample(self.num_samples)[0], truth.sample(self.num_samples)[0]
        samples = {name: sample() for name, (sample, _) in samplers.items()}
        distances = {name: float(energy_distance(x, real)) for name, x in samples.items()}
        figure, axes = subplots(2, 3, size=(10.5, 7.2))
        for ax, (name, points) in zip(axes.flat, samples.items(), strict=True):
            cloud = points.cpu()
            ax.scatter(cloud[:, 0], cloud[:, 1], s=3, color=PALETTE[0], linewidths=0, alpha=0.6, rasterized=True)
            ax.set(
                title=f"{name}: {upper_mode_fraction(cloud):.0%}",
                xlim=(-LIMIT, LIMIT),
                ylim=(-LIMIT, LIMIT),
                aspect="equal",
            )
            ax.set(xticks=[], yticks=[])
            ax.axline((0, 0), slope=-1, color=FAINT, linewidth=0.8, linestyle="--")
        run.figure(
            "samples", figure,
            "Samples of a mixture whose upper mode has weight 0.8; titles give the fraction of samples in that mode. "
            "All learned scores come from one network, which DDPM and DDIM use as a denoiser.",
        )  # fmt: skip
        run.table(
            "samplers",
            [
                {
                    "sampler": name,
                    "score evaluations": evaluations,
                    "fraction in the larger mode": upper_mode_fraction(samples[name]),
                    "energy distance": distances[name],
                }
                for name, (_, evaluations) in samplers.items()
            ],
            "Energy distances to new data points; two independent samples of the data have distance "
            f"{float(energy_distance(other, real)):.2g}.",
        )
        return {
            "mode_fraction_exact": upper_mode_fraction(samples["annealed, exact"]),
            "mode_fraction_learned": upper_mode_fraction(samples["annealed, learned"]),
            "mode_fraction_plain": upper_mode_fraction(samples["plain Langevin, exact"]),
            "distance_exact": distances["annealed, exact"],
            "distance_learned": distances["annealed, learned"],
            "distance_ddpm": distances["DDPM, learned"],
            "distance_ddim": distances["DDIM, learned"],
            "energy_distance_of_data": float(energy_distance(other, real)),
        }

    def plot_annealing(self, run: Run, model: ScoreModel, truth: IsotropicMixture) -> None:
        """Annealed Langevin particles at five noise levels, over the learned score fields."""
        start = 3.2 * torch.rand(400, 2, device=run.device) - 1.6
        path = list(
            annealed_langevin_path(
                model.score, model.levels, start, steps=self.steps_per_level, factor=self.step_factor
            )
        )
        stages = torch.linspace(0.25, 1, 5).mul(self.num_levels).round().long().tolist()
        figure, axes = subplots(1, 5, size=(13, 3.1))
        for ax, stage in zip(axes[0], stages, strict=True):
            level = self.num_levels - stage
            sigma = float(model.levels[level])
            plot_score_field(ax, truth, partial(score_at_level, model.score, level), limit=2.0, noise=sigma)
            cloud = path[stage].cpu()
            ax.scatter(cloud[:, 0], cloud[:, 1], s=5, color=PALETTE[1], linewidths=0, alpha=0.8, rasterized=True)
            ax.set_title(f"σ = {sigma:.2g}")
        run.figure(
            "samples by noise level", figure,
            "Annealed Langevin dynamics with learned scores: particles (orange) at the end of a noise level, its "
            "learned score field (blue) over the exact one (grey). At high noise the field has a single attractor, "
            "which later splits into the two modes.",
        )  # fmt: skip

    def plot_level_counts(self, run: Run, truth: IsotropicMixture) -> None:
        """The fraction in the larger mode against the number of noise levels, at equal total steps and exact scores."""
        total = self.steps_per_level * self.num_levels
        start = 3.2 * torch.rand(self.num_samples, 2, device=run.device) - 1.6
        fractions = []
        for count in self.level_counts:
            levels = geometric_levels(count, self.sigma_min, self.sigma_max)
            steps = max(1, total // count)
            end = annealed_langevin(
                truth.noise_conditional_score(levels), levels, start, steps=steps, factor=self.step_factor
            )
            fractions.append(upper_mode_fraction(end))
        lines = {
            "annealed": (self.level_counts, fractions),
            "weight of the mode": (self.level_counts, [0.8] * len(self.level_counts)),
        }
        figure = curves(lines, x_label="number of noise levels", y_label="fraction in the larger mode")
        run.figure(
            "mode fraction by number of levels",
            figure,
            f"Exact scores, {total} Langevin steps in total: with too few levels the noise scales are too far apart.",
        )


@dataclass(frozen=True)
class Sample:
    steps_per_level: Positive[int] = 25  # Langevin steps at each noise level
    step_factor: Positive[float] = 0.1  # step size divided by σ²
    num_samples: Positive[int] = 2_000  # number of points

    def __call__(self, model: ScoreModel) -> Tensor:
        return model.sample(self.num_samples, steps=self.steps_per_level, factor=self.step_factor)


def schedule_from_levels(levels: Tensor) -> Schedule:
    """The variance-preserving schedule with the same signal-to-noise ratios as these noise levels."""
    alpha_bar = alpha_bar_from_levels(levels)
    before = torch.cat([alpha_bar.new_ones(1), alpha_bar[:-1]])
    return Schedule(alpha_bar / before, alpha_bar, before)


def ddim_with_langevin(denoiser: Denoiser, schedule: Schedule, start: Tensor, *, factor: float) -> Tensor:
    """DDIM with a Langevin corrector step of size c = factor · (1 − ᾱ) after each of its steps."""
    x, variance = start, (1 - schedule.alpha_bar).tolist()
    for step in range(len(schedule) - 1, 0, -1):
        x = next(islice(ddim_path(denoiser, schedule, x, grid=torch.tensor([step - 1, step])), 1, None))
        noise = denoiser(x, torch.full((len(x),), step - 1, device=x.device))
        std = variance[step - 1] ** 0.5
        x = x - factor * std * noise + (2 * factor * variance[step - 1]) ** 0.5 * torch.randn_like(x)
    return ddim(denoiser, schedule, x, grid=torch.tensor([0]))


def score_at_level(score: NoiseConditionalScore, level: int, x: Tensor) -> Tensor:
    return score(x, torch.full((len(x),), level, device=x.device))


def tabulate_model_families(run: Run) -> None:
    """The comparison of score matching, DDPM and DDIM (book sec. 13.2.8)."""
    run.table(
        "model families",
        [
            {
                "family": "score matching",
                "model": "s_θ(x, t) ≈ ∇ log p_{σ_t}(x)",
                "training": "implicit, sliced or denoising score matching",
                "sampling": "Langevin dynamics, annealed over the noise levels",
                "limitations": "manifold data, low-density regions and mode weights require many noise levels",
            },
            {
                "family": "DDPM",
                "model": "ε_θ(x_t, t) = −√(1 − ᾱ_t) s_θ",
                "training": "L_γ, a weighted bound; with γ = 1 the simple loss",
                "sampling": "the reverse chain, with new noise at each step",
                "limitations": "many steps per sample",
            },
            {
                "family": "DDIM",
                "model": "the same network",
                "training": "the same loss",
                "sampling": "few deterministic steps",
                "limitations": "errors are not corrected by new noise; in return, sampling is invertible",
            },
        ],
        "Three uses of one network: model, training objective and sampling algorithm.",
    )
