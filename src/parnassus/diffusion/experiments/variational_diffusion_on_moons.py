"""A bound in continuous time beside the true entropy of the moons, with a learned noise schedule (book sec. 13.2.8)."""

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from parnassus.data import Dataset, open_points
from parnassus.data.densities import moons_entropy
from parnassus.data.toy import moons
from parnassus.diffusion.score_networks import LevelMLP
from parnassus.diffusion.variational_diffusion import (
    RisingCurve,
    VariationalDiffusion,
    spread_times,
    straight_curve,
)
from parnassus.optim import Adam
from parnassus.report import PALETTE, curves, subplots
from parnassus.train import Run, SideBySide, at_most, between, reported

covers = ("B13.2.8-2", "B13.2.7-4")
expected = {
    "bound": reported("nats a point that the model with the learned schedule needs at most, on fresh points"),
    "bound_straight": reported("the same with the straight schedule"),
    "standard_error": reported("of the first of these, from the finite number of draws"),
    "entropy": reported("nats a point that the true density needs: no model needs less"),
    "gap": between(-0.05, 0.2, "bound − entropy with the learned schedule: never below 0 but by chance"),
    "variance_ratio": at_most(0.8, "variance of one draw of the bound, learned schedule over straight one"),
}
profiles = {
    "smoke": {"steps": 10, "width": 16, "points": 2_000},
    "gpu": {"steps": 60_000, "batch": 4_096, "width": 512, "layers": 5, "lr": 5e-4},
}
NOISE = 0.05  # of the moons
NAMES = ("learned", "straight")


@dataclass(frozen=True)
class Experiment:
    data: str = "moons"  # points in the plane: fresh moons, or any set or file of yours (of unknown entropy)
    steps: int = 2_500  # gradient steps
    batch: int = 256  # points a step
    width: int = 96  # hidden units of the denoiser
    layers: int = 3  # its layers
    lr: float = 2e-3  # Adam's learning rate at first; it falls to 0
    low: float = -9.0  # γ_0 at first: minus the log signal-to-noise ratio next to the data
    high: float = 6.0  # γ_1 at first, where all is noise
    points: int = 100_000  # of the moons, for training; a fifth as many for the test

    def model(self, *, learned: bool) -> VariationalDiffusion:
        denoiser = LevelMLP(2, self.width, layers=self.layers)
        curve = RisingCurve() if learned else straight_curve
        return VariationalDiffusion(denoiser, (2,), curve=curve, low=self.low, high=self.high)

    def __call__(self, run: Run) -> dict[str, float]:
        data = self.opened(run.seed)
        mean, std = data.train.x.mean(0), data.train.x.std(0)
        unit = float(std.log().sum())  # nats that standardised points lack
        train, unseen = ((split.x - mean) / std for split in (data.train, data.test))
        learned = run.build(self.model, learned=True)
        models = SideBySide[VariationalDiffusion]({"learned": learned, "straight": self.model(learned=False)})
        models, optimizer = run.prepare(models, partial(Adam, lr=self.lr))
        train, unseen = train.to(run.device), unseen.to(run.device)
        for step, _ in run.steps(self.steps):
            optimizer.param_groups[0]["lr"] = self.lr * (1 - step / self.steps)
            x = train[torch.randint(len(train), (self.batch,), device=run.device)]
            losses = {name: models.one(name).loss(x) for name in NAMES}
            run.update(optimizer, torch.stack([*losses.values()]).sum())
            run.log(step, **{f"bound/{name}": loss.detach() + unit for name, loss in losses.items()})
        run.publish(models.one("learned"))
        with torch.no_grad():
            return self.judge(run, models, unseen, unit)

    def opened(self, seed: int) -> Dataset:
        """Moons without end, so that nothing can be learned by heart, or the data named."""
        if self.data == "moons":
            train = moons(self.points, noise=NOISE, seed=2 * seed)
            test = moons(self.points // 5, noise=NOISE, seed=2 * seed + 1)
            return Dataset("moons", train, test, (), "Two half circles, blurred.")
        return open_points(self.data)

    def judge(
        self, run: Run, models: SideBySide[VariationalDiffusion], unseen: Tensor, unit: float
    ) -> dict[str, float]:
        """The bound on unseen points, and how far single draws of it scatter."""
        draws = {name: draw_bounds(models.one(name), unseen) + unit for name in NAMES}
        self.show_schedules(run, models, unseen)
        show_samples(run, models.one("learned"), unseen)
        result = {
            "bound": float(draws["learned"].mean()),
            "bound_straight": float(draws["straight"].mean()),
            "standard_error": float(draws["learned"].mean(0).std() / len(unseen) ** 0.5),
            "variance_ratio": scatter(models, unseen),
        }
        lines = {name: run.curve(f"bound/{name}") for name in NAMES}
        if self.data == "moons":
            entropy = moons_entropy(noise=NOISE)
            lines["entropy of the moons"] = ([0, self.steps], [entropy, entropy])
            result |= {"entropy": entropy, "gap": result["bound"] - entropy}
        figure = curves(lines, x_label="step", y_label="nats a point", smooth=True)
        figure.axes[0].set_ylim(top=min(4.0, figure.axes[0].get_ylim()[1]))
        run.figure(
            "bounds", figure, "The bound on −log p while training, one draw a point, and what no model can beat."
        )
        return result

    def show_schedules(self, run: Run, models: SideBySide[VariationalDiffusion], unseen: Tensor) -> None:
        """Both schedules, and the size of a draw of the bound along them."""
        t = torch.linspace(0, 1, 60, device=unseen.device)
        levels = {name: models.one(name).level(t)[0] for name in NAMES}
        figure, axes = subplots(1, 2, size=(10, 3.9))
        for name, colour in zip(NAMES, PALETTE, strict=False):
            axes[0, 0].plot(t.cpu(), levels[name].cpu(), color=colour, label=name)
            sizes = [draw_at(models.one(name), unseen[:2_000], float(time)) for time in t]
            axes[0, 1].plot(t.cpu(), [size.square().mean().sqrt().cpu() for size in sizes], color=colour, label=name)
        axes[0, 0].set(xlabel="time t", ylabel="γ(t) = −log SNR")
        axes[0, 1].set(xlabel="time t", ylabel="RMS of a draw at t (nats)", ylim=(0, None))
        axes[0, 0].legend()
        run.figure(
            "schedules", figure,
            "Left: the schedules. Right: how large a draw of the bound's integrand is at each time. The mean over t is "
            "the same for both; the learned curve hurries through levels where there is little to pay, so that draws "
            "come out more alike.",
        )  # fmt: skip


@dataclass(frozen=True)
class Sample:
    steps: int = 200  # steps from noise to data
    count: int = 2_000  # how many points, standardised as in training

    def __call__(self, model: VariationalDiffusion) -> Tensor:
        return model.sample(self.count, steps=self.steps)


def draw_at(model: VariationalDiffusion, x: Tensor, time: float) -> Tensor:
    """One draw of the bound's integrand at this time for each point."""
    return model.terms(x, torch.full((len(x),), time, device=x.device), torch.randn_like(x)).diffusion


def draw_bounds(model: VariationalDiffusion, x: Tensor, draws: int = 30) -> Tensor:
    """(draws, points): independent draws of the whole bound, their times evenly spread over the points."""
    return torch.stack([model.terms(x, spread_times(x), torch.randn_like(x)).nats for _ in range(draws)])


def scatter(models: SideBySide[VariationalDiffusion], x: Tensor) -> float:
    """The variance of one draw of the learned model's bound along its own schedule, over that along a straight one."""
    model = models.one("learned")
    low, high = model.ends.tolist()
    straight = VariationalDiffusion(model.denoiser, (2,), low=low, high=high).to(x.device)
    learned, plain = (draw_bounds(one, x)[0].var() for one in (model, straight))
    return float(learned / plain)


def show_samples(run: Run, model: VariationalDiffusion, unseen: Tensor) -> None:
    figure, axes = subplots(1, 2, size=(9, 4))
    clouds = {"unseen points": unseen[:2_000], "drawn in 200 steps": model.sample(2_000)}
    for ax, (title, cloud), colour in zip(axes[0], clouds.items(), PALETTE, strict=False):
        points = cloud.cpu()
        ax.scatter(points[:, 0], points[:, 1], s=3, color=colour, linewidths=0, alpha=0.7, rasterized=True)
        ax.set(title=title, xlim=(-2.5, 2.5), ylim=(-2.5, 2.5), xticks=[], yticks=[], aspect="equal")
    run.figure("samples", figure, "Unseen moons, and samples of the model with the learned schedule (standardised).")
