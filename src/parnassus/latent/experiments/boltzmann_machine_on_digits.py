"""Restricted Boltzmann machines learn black-and-white digits, every likelihood exact (book secs. 6.1, 11.1)."""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.optim import Adam
from torch.optim.lr_scheduler import LambdaLR

from parnassus.data import Split, load_digits
from parnassus.latent.ais import annealed_log_partition
from parnassus.latent.helmholtz import bernoulli_log_prob
from parnassus.latent.rbm import RBM, FromData, Persistent
from parnassus.report import FAINT, PALETTE, curves, image_grid, subplots
from parnassus.train import Run, at_most, between, descend, reported

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B6.1-10", "B11.1-2", "B11.1-3")
expected = {
    "nll": at_most(18.6, "nats an unseen digit by the machine with persistent chains, exactly"),
    "nll_of_cd1": reported("the same when trained by contrastive divergence of one step"),
    "nll_of_independent_pixels": reported("the same with no hidden units"),
    "cd1_less_persistent": between(-0.7, 0.7, "nats that one-step chains cost; about nothing at this size"),
    "ais_error": at_most(0.2, "how far annealing comes from the exact log Z"),
}
profiles = {
    "smoke": {"hidden": 6, "steps": 30, "chains": 20, "gibbs": 20, "times": 100},
    "gpu": {"hidden": 20, "steps": 30_000, "chains": 1_000, "rate": 5e-3},
}
SIDE = 8


@dataclass(frozen=True)
class Experiment:
    hidden: int = 16  # hidden units; all their states are listed, so at most 20
    steps: int = 3_000  # gradient steps of each machine
    batch: int = 128  # images a step
    rate: float = 0.02  # Adam's learning rate at the start; it falls to zero
    chains: int = 200  # persistent chains, and chains of annealing
    gibbs: int = 2_000  # Gibbs steps of a sample
    times: int = 1_000  # times that annealing passes at most

    def model(self, visible: int) -> RBM:
        return RBM(visible, self.hidden, negatives=Persistent(self.chains, visible))

    def __call__(self, run: Run) -> dict[str, float]:
        digits = load_digits().to(run.device)
        train, test = (Split(split.x.flatten(1).gt(0.4).float()) for split in (digits.train, digits.test))

        persistent = self.learn(run, run.build(self.model, visible=SIDE**2), train, test, "persistent")
        short = RBM(SIDE**2, self.hidden, negatives=FromData(1))
        short = self.learn(run, short, train, test, "CD-1")
        run.publish(persistent)

        machines = {"CD-1": short, "persistent": persistent}
        with torch.no_grad():
            nll = {name: float(-machine.log_prob(test.x).mean()) for name, machine in machines.items()}
            independent = -float(bernoulli_log_prob(test.x, log_odds(train.x)).mean())
            rows: list[dict[str, str | float]] = [
                {
                    "": name,
                    "seen": float(-machine.log_prob(train.x).mean()),
                    "unseen": nll[name],
                    "log Z": float(machine.log_partition()),
                }
                for name, machine in machines.items()
            ]
        run.table("nats", rows, "−log p of a digit, exactly: log Z is a sum over all states of the hidden units.")
        self.show_curves(run)
        self.show_images(run, machines, test.x)
        error = self.show_annealing(run, persistent)
        run.note("what to see", verdict(nll, independent, self.hidden))
        return {
            "nll": nll["persistent"],
            "nll_of_cd1": nll["CD-1"],
            "nll_of_independent_pixels": independent,
            "cd1_less_persistent": nll["CD-1"] - nll["persistent"],
            "ais_error": error,
        }

    def learn(self, run: Run, machine: RBM, train: Split, test: Split, name: str) -> RBM:
        """Train from the pixels' own log-odds, and follow the exact likelihood."""
        with torch.no_grad():
            machine.visible_bias.copy_(log_odds(train.x))
        machine, optimizer = run.prepare(machine, partial(Adam, lr=self.rate, betas=(0.5, 0.999)))
        falling = LambdaLR(optimizer, lambda step: 1 - step / (self.steps + 1))
        run.keep(f"rate of {name}", falling)
        every = max(1, self.steps // 30)
        for step, _ in descend(run, machine, optimizer, train.batches(self.batch, self.steps)):
            falling.step()
            if step % every == 0:
                with torch.no_grad():
                    run.record(step, **{f"nll/{name}": -machine.log_prob(test.x).mean()})
        return machine

    def show_curves(self, run: Run) -> None:
        lines = {name: run.curve(f"nll/{name}") for name in ("CD-1", "persistent")}
        run.figure(
            "likelihood",
            curves(lines, x_label="step", y_label="nats an unseen digit"),
            "The exact −log p(v) while the machines learn. Neither follows its gradient: the chains stand in for the "
            "model's own states, one step from the data or wherever the last step left them.",
        )

    @torch.no_grad()
    def show_images(self, run: Run, machines: dict[str, RBM], test: Tensor) -> None:
        rows = {"unseen": test[:12]}
        for name, machine in machines.items():
            rows[f"{name}, exact"] = machine.exact_sample(12)
            rows[f"{name}, chain"] = machine.sample(12, steps=self.gibbs)
        run.figure(
            "samples",
            image_grid(as_images(torch.cat(list(rows.values()))), columns=12, row_labels=list(rows)),
            "Unseen digits, then draws: exact ones, hidden states first, from their listed probabilities; and the ends "
            f"of chains of {self.gibbs:,} Gibbs steps from noise.",
        )
        weights = torch.cat([machine.weight for machine in machines.values()])
        figure = image_grid(
            as_images(0.5 + 0.5 * weights / weights.abs().amax(1, keepdim=True)),
            columns=self.hidden,
            row_labels=list(machines),
        )
        run.figure("weights", figure, "What each hidden unit is for: pixels it asks for are white, others black.")

    @torch.no_grad()
    def show_annealing(self, run: Run, machine: RBM) -> float:
        """Estimates of log Z by slower and slower walks, beside the sum over all states."""
        exact = machine.log_partition()
        counts = sorted({max(1, self.times // factor) for factor in (1_000, 300, 100, 30, 10, 3, 1)})
        walks = [annealed_log_partition(machine, chains=self.chains, times=count) for count in counts]
        run.figure(
            "annealing",
            draw_annealing(counts, [float(w.estimate - exact) for w in walks], [float(w.spread) for w in walks]),
            f"Annealed importance sampling with {self.chains} chains against the exact log Z: bars are four "
            "spreads to both sides. Too quick a walk is low, and says so by its spread.",
        )
        return abs(float(walks[-1].estimate - exact))


@dataclass(frozen=True)
class Sample:
    steps: int = 500  # Gibbs steps from noise
    count: int = 100  # how many

    def __call__(self, model: RBM) -> Tensor:
        return as_images(model.sample(self.count, steps=self.steps))


def log_odds(x: Tensor) -> Tensor:
    """Of each pixel, with one imagined image of each kind, so that a pixel that is always black stays finite."""
    return ((x.sum(0) + 1) / (len(x) + 2)).logit()


def as_images(v: Tensor) -> Tensor:
    return v.view(-1, 1, SIDE, SIDE)


def verdict(nll: dict[str, float], independent: float, hidden: int) -> str:
    gap = nll["CD-1"] - nll["persistent"]
    comparison = (
        "hardly differ" if abs(gap) < 0.3 else f"differ by {abs(gap):.1f} in favour of {min(nll, key=nll.__getitem__)}"
    )
    return (
        f"Independent pixels need {independent:.1f} nats a digit, {hidden} hidden units {min(nll.values()):.1f}. "
        f"The two ways to find negatives {comparison}: so small a machine mixes within few steps, and the bias of "
        "CD-1 matters less than the step size. None of these numbers could be had for a large machine, where log Z "
        "is out of reach; there annealing, which agrees with it here, is the second opinion."
    )


def draw_annealing(counts: list[int], errors: list[float], spreads: list[float]) -> "Figure":
    figure, axes = subplots()
    ax = axes[0, 0]
    ax.axhline(0, color=FAINT)
    ax.errorbar(counts, errors, yerr=[4 * spread for spread in spreads], color=PALETTE[0], marker="o", capsize=3)
    ax.set(xscale="log", xlabel="times passed on the way", ylabel="log Ẑ − log Z, nats")
    return figure
