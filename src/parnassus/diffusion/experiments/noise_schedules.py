"""Linear, cosine, constant, sigmoid and learned noise schedules: SNR and gap of the bound (book sec. 13.2.1)."""

from collections.abc import Callable
from dataclasses import dataclass
from math import e, log, pi

import torch
from torch import Tensor
from torch.optim import Adam

from parnassus.data import load_digits
from parnassus.diffusion.chain.elbo import elbo_terms, prior_kl
from parnassus.diffusion.chain.exact_denoisers import gaussian_denoiser
from parnassus.diffusion.chain.forward_process import diffuse
from parnassus.diffusion.chain.schedules import (
    LearnableSchedule,
    Schedule,
    constant_schedule,
    cosine_schedule,
    linear_schedule,
    sigmoid_schedule,
)
from parnassus.report import curves, image_grid
from parnassus.train import Positive, Run, at_least, at_most, no_band

covers = ("B13.2-1", "B13.2.1-1", "B13.2.1-3", "B13.2.3-1")
expected = {
    "prior_nats_linear": at_most(0.01, "KL(q(x_T|x_0) ‖ N(0, I)) with the linear schedule"),
    "gap_linear": no_band("log-likelihood minus bound with the linear schedule, in nats"),
    "gap_cosine": no_band("log-likelihood minus bound with the cosine schedule, in nats"),
    "gap_learned": at_most(0.6, "log-likelihood minus bound with a learned schedule, in nats"),
    "gained_nats": at_least(0.3, "reduction of the gap by the learned schedule, compared with the linear one, in nats"),
}
profiles = {"smoke": {"steps": 5, "num_train_timesteps": 10}}


@dataclass(frozen=True)
class Experiment:
    num_train_timesteps: Positive[int] = 50  # number of diffusion steps of the chains whose bounds are compared
    data_std: Positive[float] = 0.5  # standard deviation of the Gaussian data
    steps: Positive[int] = 300  # gradient steps on the learnable schedule
    learning_rate: Positive[float] = 0.05  # learning rate of Adam

    def __call__(self, run: Run) -> dict[str, float]:
        images = 2 * load_digits().test.x - 1
        long = named_schedules(1_000)
        plot_schedules(run, long)
        plot_noising(run, long, images[:1])

        learnable = LearnableSchedule(named_schedules(self.num_train_timesteps)["linear"])
        optimizer = Adam(learnable.parameters(), lr=self.learning_rate)
        run.keep("schedule", learnable)
        run.keep("optimizer", optimizer)
        for step, _ in run.steps(self.steps):
            gap = self.gap(learnable())
            run.update(optimizer, gap)
            run.log(step, gap=gap)

        short = {**named_schedules(self.num_train_timesteps), "learned": current_schedule(learnable)}
        gaps = {name: float(self.gap(schedule)) for name, schedule in short.items()}
        prior = {name: float(prior_kl(schedule, images.double()).mean()) for name, schedule in long.items()}
        run.table(
            "schedules",
            [
                {
                    "schedule": name,
                    "ᾱ_T after 1,000 steps": float(long[name].alpha_bar[-1]) if name in long else "",
                    "prior KL per digit (nats)": prior.get(name, ""),
                    f"gap of the bound, {self.num_train_timesteps} steps (nats)": gap,
                }
                for name, gap in gaps.items()
            ],
            "The final signal level of each schedule, and the gap between log-likelihood and bound on Gaussian data.",
        )
        lines = {
            name: (torch.arange(1, self.num_train_timesteps + 1), schedule.snr) for name, schedule in short.items()
        }
        figure = curves(lines, x_label="step t", y_label="signal-to-noise ratio", log_y=True)
        run.figure(
            "learned schedule",
            figure,
            f"Signal-to-noise ratio of chains of {self.num_train_timesteps} steps; the learned schedule starts "
            "from the linear one and maximises the bound.",
        )
        return {
            "prior_nats_linear": prior["linear"],
            "gap_linear": gaps["linear"],
            "gap_cosine": gaps["cosine"],
            "gap_learned": gaps["learned"],
            "gained_nats": gaps["linear"] - gaps["learned"],
        }

    def gap(self, schedule: Schedule) -> Tensor:
        """E[log p(x_0) − ELBO] for x_0 ~ N(0, std²) and the exact denoiser, in nats.

        Every term is quadratic in x_0 and ε, so the mean over four pairs of signs is exact.
        """
        signs = torch.tensor([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]], dtype=torch.float64)
        oracle = gaussian_denoiser(schedule, torch.zeros(1, dtype=torch.float64), self.data_std)
        terms = elbo_terms(oracle, schedule, self.data_std * signs[:, :1], noise=lambda _: signs[:, 1:])
        return -0.5 * log(2 * pi * e * self.data_std**2) - terms.elbo.mean()


def named_schedules(steps: int) -> dict[str, Schedule]:
    """The fixed schedules of the book, scaled to this number of steps."""
    scale = 1_000 / steps
    low, high = 1e-4 * scale, min(0.02 * scale, 0.99)
    builders: dict[str, Callable[[], Schedule]] = {
        "linear": lambda: linear_schedule(steps, low=low, high=high),
        "cosine": lambda: cosine_schedule(steps),
        "constant": lambda: constant_schedule(steps, noise=min(0.01 * scale, 0.99)),
        "sigmoid": lambda: sigmoid_schedule(steps, low=low, high=high),
    }
    return {name: build() for name, build in builders.items()}


def current_schedule(learnable: LearnableSchedule) -> Schedule:
    with torch.no_grad():
        schedule: Schedule = learnable()
    return schedule


def plot_schedules(run: Run, schedules: dict[str, Schedule]) -> None:
    steps = torch.arange(1, 1_001)
    signal = {name: (steps, schedule.alpha_bar) for name, schedule in schedules.items()}
    run.figure("signal power", curves(signal, x_label="step t", y_label="ᾱ_t"), "Signal power ᾱ_t after t steps.")
    ratios = {name: (steps, schedule.snr) for name, schedule in schedules.items()}
    figure = curves(ratios, x_label="step t", y_label="ᾱ_t / (1 − ᾱ_t)", log_y=True)
    run.figure(
        "signal-to-noise ratio",
        figure,
        "Signal-to-noise ratio; the cosine schedule falls fastest at the end, limited by clipping α_t.",
    )


def plot_noising(run: Run, schedules: dict[str, Schedule], image: Tensor) -> None:
    """One digit with the same noise at ten steps of each chain."""
    t = torch.linspace(0, 999, 10).long()
    noise = torch.randn_like(image).expand(10, -1, -1, -1)
    rows = [diffuse(schedule, image.expand(10, -1, -1, -1), t, noise) for schedule in schedules.values()]
    figure = image_grid(
        ((torch.cat(rows) + 1) / 2).clamp(0, 1),
        columns=10,
        titles=[f"t = {int(step) + 1}" for step in t],
        row_labels=list(schedules),
    )
    run.figure("forward process", figure, "The same digit and the same noise under four schedules (book fig. 13.4).")
