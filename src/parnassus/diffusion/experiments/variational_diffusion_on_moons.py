"""Variational diffusion model with a learned noise schedule: bound against entropy on moons (book sec. 13.2.8)."""

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from parnassus.data import Dataset, open_points
from parnassus.data.built_in.densities import moons_entropy
from parnassus.data.built_in.toy import moons
from parnassus.diffusion.models.variational_diffusion import (
    MonotoneCurve,
    VariationalDiffusion,
    linear_curve,
    low_discrepancy_times,
)
from parnassus.diffusion.networks.score_networks import NoiseLevelMLP
from parnassus.optim import Adam
from parnassus.report import PALETTE, curves, subplots
from parnassus.setting_types import PlaneData
from parnassus.train import ModelCollection, Positive, Run, at_most, between, no_band

covers = ("B13.2.8-2", "B13.2.7-4")
expected = {
    "bound": no_band("bound on the negative log-likelihood with the learned schedule, nats per test point"),
    "bound_linear": no_band("bound on the negative log-likelihood with the linear schedule, nats per test point"),
    "standard_error": no_band(
        "standard error of the bound with the learned schedule, from the finite number of samples"
    ),
    "entropy": no_band(
        "entropy of the data in nats per point, the lower bound for every model; known for the moons only"
    ),
    "gap": between(-0.05, 0.2, "bound minus entropy with the learned schedule; negative only by sampling noise"),
    "variance_ratio": at_most(
        0.8, "ratio of the variances of a single-sample estimate of the bound, learned to linear schedule"
    ),
}
profiles = {
    "smoke": {"steps": 10, "width": 16, "num_points": 2_000},
    "gpu": {"steps": 60_000, "batch_size": 4_096, "width": 512, "num_layers": 5, "learning_rate": 5e-4},
}
NOISE = 0.05  # standard deviation of the noise of the moons
NAMES = ("learned", "linear")


@dataclass(frozen=True)
class Experiment:
    data: PlaneData = "moons"  # points in the plane: name of a data set, or path of a file
    steps: Positive[int] = 2_500  # gradient steps
    batch_size: Positive[int] = 256  # points per gradient step
    width: Positive[int] = 96  # hidden units of the denoiser
    num_layers: Positive[int] = 3  # layers of the denoiser
    learning_rate: Positive[float] = 2e-3  # initial learning rate of Adam, decayed linearly to 0
    gamma_min: float = -9.0  # initial γ_0 = −log SNR at time 0 (data)
    gamma_max: float = 6.0  # initial γ_1 = −log SNR at time 1 (noise)
    num_points: Positive[int] = 100_000  # training points of the moons; the test set has a fifth as many

    def model(self, *, learned: bool) -> VariationalDiffusion:
        denoiser = NoiseLevelMLP(2, self.width, layers=self.num_layers)
        curve = MonotoneCurve() if learned else linear_curve
        return VariationalDiffusion(denoiser, (2,), curve=curve, gamma_min=self.gamma_min, gamma_max=self.gamma_max)

    def __call__(self, run: Run) -> dict[str, float]:
        data = self.load_points(run.seed)
        mean, std = data.train.x.mean(0), data.train.x.std(0)
        log_scale = float(std.log().sum())  # log-determinant of the standardisation
        train, test = ((split.x - mean) / std for split in (data.train, data.test))
        learned = run.build(self.model, learned=True)
        models = ModelCollection[VariationalDiffusion]({"learned": learned, "linear": self.model(learned=False)})
        models, optimizer = run.prepare(models, partial(Adam, lr=self.learning_rate))
        train, test = train.to(run.device), test.to(run.device)
        for step, _ in run.steps(self.steps):
            optimizer.param_groups[0]["lr"] = self.learning_rate * (1 - step / self.steps)
            x = train[torch.randint(len(train), (self.batch_size,), device=run.device)]
            losses = {name: models.model(name).loss(x) for name in NAMES}
            run.update(optimizer, torch.stack([*losses.values()]).sum())
            run.log(step, **{f"bound/{name}": loss.detach() + log_scale for name, loss in losses.items()})
        run.publish(models.model("learned"))
        with torch.no_grad():
            return self.evaluate(run, models, test, log_scale)

    def load_points(self, seed: int) -> Dataset:
        """A large set of moons, which prevents overfitting, or other data."""
        if self.data == "moons":
            train = moons(self.num_points, noise=NOISE, seed=2 * seed)
            test = moons(self.num_points // 5, noise=NOISE, seed=2 * seed + 1)
            return Dataset("moons", train, test, (), "Two noisy half circles.")
        return open_points(self.data)

    def evaluate(
        self, run: Run, models: ModelCollection[VariationalDiffusion], test: Tensor, log_scale: float
    ) -> dict[str, float]:
        """The bound on test points, and the variance of its draws."""
        draws = {name: sample_bounds(models.model(name), test) + log_scale for name in NAMES}
        self.plot_schedules(run, models, test)
        plot_samples(run, models.model("learned"), test)
        result = {
            "bound": float(draws["learned"].mean()),
            "bound_linear": float(draws["linear"].mean()),
            "standard_error": float(draws["learned"].mean(0).std() / len(test) ** 0.5),
            "variance_ratio": bound_variance_ratio(models, test),
        }
        lines = {name: run.curve(f"bound/{name}") for name in NAMES}
        if self.data == "moons":
            entropy = moons_entropy(noise=NOISE)
            lines["entropy of the data"] = ([0, self.steps], [entropy, entropy])
            result |= {"entropy": entropy, "gap": result["bound"] - entropy}
        figure = curves(lines, x_label="step", y_label="bound (nats per point)", smooth=True)
        figure.axes[0].set_ylim(top=min(4.0, figure.axes[0].get_ylim()[1]))
        run.figure(
            "bounds",
            figure,
            "The bound on the negative log-likelihood during training, estimated with one draw per point, and the "
            "entropy of the data.",
        )
        return result

    def plot_schedules(self, run: Run, models: ModelCollection[VariationalDiffusion], test: Tensor) -> None:
        """Both schedules, and the size of the integrand of the bound along them."""
        t = torch.linspace(0, 1, 60, device=test.device)
        levels = {name: models.model(name).level(t)[0] for name in NAMES}
        figure, axes = subplots(1, 2, size=(10, 3.9))
        for name, colour in zip(NAMES, PALETTE, strict=False):
            axes[0, 0].plot(t.cpu(), levels[name].cpu(), color=colour, label=name)
            integrands = [sample_integrand(models.model(name), test[:2_000], float(time)) for time in t]
            sizes = [integrand.square().mean().sqrt().cpu() for integrand in integrands]
            axes[0, 1].plot(t.cpu(), sizes, color=colour, label=name)
        axes[0, 0].set(xlabel="time t", ylabel="γ(t) = −log SNR")
        axes[0, 1].set(xlabel="time t", ylabel="RMS of the integrand (nats)", ylim=(0, None))
        axes[0, 0].legend()
        run.figure(
            "schedules", figure,
            "Left: the schedules. Right: RMS of the integrand of the bound at each time. The mean over t is the same "
            "for both; the learned schedule spends less time at noise levels that contribute little, which reduces "
            "the variance of the estimate.",
        )  # fmt: skip


@dataclass(frozen=True)
class Sample:
    num_inference_steps: Positive[int] = 200  # sampling steps
    num_samples: Positive[int] = 2_000  # number of points, standardised as in training

    def __call__(self, model: VariationalDiffusion) -> Tensor:
        return model.sample(self.num_samples, steps=self.num_inference_steps)


def sample_integrand(model: VariationalDiffusion, x: Tensor, time: float) -> Tensor:
    """One draw of the integrand of the bound at this time for each point."""
    return model.terms(x, torch.full((len(x),), time, device=x.device), torch.randn_like(x)).diffusion


def sample_bounds(model: VariationalDiffusion, x: Tensor, draws: int = 30) -> Tensor:
    """(draws, points): independent draws of the bound, with low-discrepancy times over the points."""
    return torch.stack(
        [model.terms(x, low_discrepancy_times(x), torch.randn_like(x)).negative_elbo for _ in range(draws)]
    )


def bound_variance_ratio(models: ModelCollection[VariationalDiffusion], x: Tensor) -> float:
    """The ratio of the variances of single draws of the learned model's bound, for its schedule and a linear one."""
    model = models.model("learned")
    gamma_min, gamma_max = model.ends.tolist()
    linear = VariationalDiffusion(model.denoiser, (2,), gamma_min=gamma_min, gamma_max=gamma_max).to(x.device)
    learned_variance, linear_variance = (sample_bounds(each, x)[0].var() for each in (model, linear))
    return float(learned_variance / linear_variance)


def plot_samples(run: Run, model: VariationalDiffusion, test: Tensor) -> None:
    figure, axes = subplots(1, 2, size=(9, 4))
    clouds = {"test points": test[:2_000], "samples, 200 steps": model.sample(2_000)}
    for ax, (title, cloud), colour in zip(axes[0], clouds.items(), PALETTE, strict=False):
        points = cloud.cpu()
        ax.scatter(points[:, 0], points[:, 1], s=3, color=colour, linewidths=0, alpha=0.7, rasterized=True)
        ax.set(title=title, xlim=(-2.5, 2.5), ylim=(-2.5, 2.5), xticks=[], yticks=[], aspect="equal")
    run.figure("samples", figure, "Test points and samples of the model with the learned schedule (standardised).")
