"""GAN on eight Gaussians on a ring (Diehl sec. 5.2)."""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.optim import Adam

from parnassus.adversarial.gan import GAN
from parnassus.data.built_in.toy import eight_gaussians
from parnassus.layers import leaky_relu, mlp
from parnassus.probability import energy_distance
from parnassus.report import PALETTE, curves, subplots
from parnassus.train import Positive, Run, at_least, at_most, between, no_band

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("D5.2.3", "D5.2.2")
expected = {
    "energy_distance": at_most(0.05, "energy distance between samples and test data"),
    "initial_energy_distance": no_band("energy distance between samples and test data before training"),
    "energy_distance_of_data": no_band(
        "energy distance between two halves of the data: differences below this are within sampling noise"
    ),
    "modes_found": at_least(6, "number of the eight modes with at least a fifth of their share of the samples"),
    "fraction_near_modes": at_least(0.7, "fraction of samples within four standard deviations of a mode"),
    "discriminator_on_data": between(0.4, 0.7, "mean of D(x) over test data; ½ for a perfect generator"),
}
profiles = {"smoke": {"steps": 20, "width": 16, "num_samples": 200}}
NOISE = 0.1  # standard deviation of a mode


@dataclass(frozen=True)
class Experiment:
    steps: Positive[int] = 4_000  # gradient steps of each network
    batch_size: Positive[int] = 256  # points per gradient step
    width: Positive[int] = 64  # hidden units of both networks
    latent_dim: Positive[int] = 8  # dimension of the latent noise
    learning_rate: Positive[float] = 1e-3  # initial learning rate of Adam, decayed linearly to 0
    num_samples: Positive[int] = 2_000  # samples that are compared with the data

    def model(self) -> GAN:
        sizes = (self.width, self.width)
        generator = mlp((self.latent_dim, *sizes, 2), activation=leaky_relu)
        return GAN(generator, mlp((2, *sizes, 1), activation=leaky_relu), latent_dim=self.latent_dim)

    def __call__(self, run: Run) -> dict[str, float]:
        data = eight_gaussians(20_000, noise=NOISE, seed=run.seed).to(run.device)
        real, other = data.x[: self.num_samples], data.x[self.num_samples : 2 * self.num_samples]
        gan = run.build(self.model)
        adam = partial(Adam, lr=self.learning_rate, betas=(0.5, 0.99))
        gan.generator, generator_optimizer = run.prepare(gan.generator, adam)
        gan.discriminator, discriminator_optimizer = run.prepare(gan.discriminator, adam)
        snapshot_steps = [round(self.steps * fraction) for fraction in (0.0, 0.02, 0.1, 0.4, 1.0)]
        snapshots = nn.Module()
        snapshots.register_buffer("samples", torch.zeros(len(snapshot_steps), self.num_samples, 2))
        run.keep("snapshots", snapshots)
        samples = snapshots.get_buffer("samples")

        for step, batch in run.steps(data.batches(self.batch_size, self.steps)):
            if step in snapshot_steps:
                samples[snapshot_steps.index(step)] = gan.sample(self.num_samples).cpu()
            for optimizer in (generator_optimizer, discriminator_optimizer):
                optimizer.param_groups[0]["lr"] = self.learning_rate * (1 - step / self.steps)
            discriminator_loss = gan.discriminator_loss(batch)
            run.update(discriminator_optimizer, discriminator_loss)
            generator_loss = gan.generator_loss(len(batch))
            run.update(generator_optimizer, generator_loss)
            run.log(
                step, **{"loss/discriminator": discriminator_loss.detach(), "loss/generator": generator_loss.detach()}
            )
            if step % max(1, self.steps // 40) == 0:
                run.record(step, distance=energy_distance(gan.sample(self.num_samples), real))

        run.publish(gan)
        final = gan.sample(self.num_samples)
        samples[-1] = final.cpu()
        with torch.no_grad():
            mean_on_data = float(gan.logits(other).sigmoid().mean())
        floor = float(energy_distance(real, other))
        found, near = mode_coverage(final)
        run.figure(
            "samples",
            plot_samples(dict(zip(snapshot_steps, samples, strict=True)), other.cpu()),
            "Samples of the generator during training, and the data. A few samples lie between the modes, because the "
            "generator is continuous and the modes are separated.",
        )
        run.figure(
            "discriminator",
            plot_discriminator(gan, final.cpu()),
            "D(x) over the plane after training, and samples. D is ½ where samples are as dense as the data, near 1 "
            "where the generator misses data, and arbitrary far from both.",
        )
        steps, distances = run.curve("distance")
        run.figure(
            "energy distance",
            curves(
                {"samples to data": (steps, distances), "data to data": (steps, [floor] * len(steps))},
                x_label="step",
                y_label="energy distance",
                log_y=True,
            ),
            "Energy distance between samples and data during training; the losses of the two networks do not show it.",
        )
        return {
            "energy_distance": float(energy_distance(final, other)),
            "initial_energy_distance": float(energy_distance(samples[0], other.cpu())),
            "energy_distance_of_data": floor,
            "modes_found": found,
            "fraction_near_modes": near,
            "discriminator_on_data": mean_on_data,
        }


@dataclass(frozen=True)
class Sample:
    num_samples: Positive[int] = 2_000  # number of points

    def __call__(self, model: GAN) -> Tensor:
        return model.sample(self.num_samples)


def mode_coverage(points: Tensor) -> tuple[float, float]:
    """Number of modes with a fifth of their share, and fraction of points within some mode."""
    angle = torch.arange(8, device=points.device) * torch.pi / 4
    distance, mode = torch.cdist(points, 2 * torch.stack([angle.cos(), angle.sin()], 1)).min(1)
    near = distance < 4 * NOISE
    counts = torch.bincount(mode[near], minlength=8)
    return float((counts >= len(points) / 40).sum()), float(near.float().mean())


def plot_samples(snapshots: dict[int, Tensor], real: Tensor) -> "Figure":
    figure, axes = subplots(1, len(snapshots) + 1, size=(12.5, 2.4))
    panels = {**{f"step {step:,}": points for step, points in snapshots.items()}, "data": real}
    for ax, (title, points) in zip(axes[0], panels.items(), strict=True):
        colour = PALETTE[0] if title == "data" else PALETTE[1]
        ax.scatter(points[:, 0], points[:, 1], s=2, color=colour, linewidths=0, alpha=0.6, rasterized=True)
        ax.set(xlim=(-3, 3), ylim=(-3, 3), xticks=[], yticks=[], title=title)
        ax.set_aspect("equal")
    return figure


@torch.no_grad()
def plot_discriminator(gan: GAN, samples: Tensor) -> "Figure":
    side = torch.linspace(-3, 3, 121)
    plane = torch.cartesian_prod(side, side).flip(1)  # rows from bottom to top
    device = next(gan.parameters()).device
    probability = gan.logits(plane.to(device)).sigmoid().reshape(121, 121).cpu()
    figure, axes = subplots(size=(5.4, 4.4))
    ax = axes[0, 0]
    image = ax.imshow(probability.numpy(), origin="lower", extent=(-3, 3, -3, 3), vmin=0, vmax=1, cmap="PuOr")
    ax.scatter(samples[:, 0], samples[:, 1], s=2, color="#111111", linewidths=0, alpha=0.5, rasterized=True)
    ax.grid(visible=False)
    figure.colorbar(image, ax=ax, label="D(x)").outline.set_visible(False)
    return figure
