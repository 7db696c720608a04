"""A Helmholtz machine learns bars by waking and sleeping; all its probabilities are exact (book sec. 11.1)."""

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.optim import Adam
from torch.optim.lr_scheduler import LambdaLR

from parnassus.data import Split
from parnassus.latent.helmholtz import HelmholtzMachine
from parnassus.latent.likelihood import importance_likelihood
from parnassus.layers.dropout import every_mask
from parnassus.probability import entropy
from parnassus.report import curves, image_grid
from parnassus.train import Run, at_least, at_most, between, descend, reported

covers = ("B11.1-4",)
expected = {
    "divergence": at_most(0.8, "KL from the data to the dreams, in nats, exactly"),
    "divergence_at_start": reported("the same before the first step"),
    "bound_gap": at_most(0.15, "nats by which recognition misses the posterior: log p(x) less its bound"),
    "dreams_that_are_bars": at_least(0.5, "share of dreams that are patterns of the data"),
    "importance_error": between(-0.05, 0.05, "importance sampling less the exact log p(x), in nats"),
}
profiles = {"smoke": {"steps": 20, "draws": 50, "hidden": 4, "top": 2}, "gpu": {"steps": 40_000}}
SIDE = 4


@dataclass(frozen=True)
class Experiment:
    hidden: int = 8  # units of the first hidden layer
    top: int = 4  # units of the second
    steps: int = 4_000  # steps, each a wake and a sleep phase
    batch: int = 100  # images, and dreams, a step
    rate: float = 0.05  # Adam's learning rate at the start; it falls to zero
    draws: int = 1_000  # codes an image for the importance estimate

    def model(self, visible: int) -> HelmholtzMachine:
        return HelmholtzMachine((visible, self.hidden, self.top))

    def __call__(self, run: Run) -> dict[str, float]:
        data = Split(bars_and_stripes().to(run.device))
        patterns, counts = data.x.unique(dim=0, return_counts=True)
        share = counts / len(data)
        floor = entropy(share)  # no machine can need fewer nats

        machine = run.build(self.model, visible=SIDE**2)
        machine, optimizer = run.prepare(machine, partial(Adam, lr=self.rate))
        falling = LambdaLR(optimizer, lambda step: 1 - step / (self.steps + 1))
        run.keep("rate", falling)
        with torch.no_grad():
            at_start = -share @ machine.log_prob(patterns) - floor
        every = max(1, self.steps // 40)
        rows = Split(data.x.repeat(self.batch, 1))  # more rows than a batch has: no two epochs alike
        for step, _ in descend(run, machine, optimizer, rows.batches(self.batch, self.steps)):
            falling.step()
            if step % every == 0 or step == self.steps - 1:
                with torch.no_grad():
                    evidence, bound = share @ machine.log_prob(patterns), share @ machine.exact_bound(patterns)
                    run.record(step, **{"nats/evidence": evidence, "nats/bound": bound})

        with torch.no_grad():
            self.show(run, machine, patterns, float(floor))
            exact, bound = machine.log_prob(patterns), machine.exact_bound(patterns)
            dreams = machine.sample(2_000)
            estimate = importance_likelihood(machine, patterns, samples=self.draws)
        known = (dreams[:, None] == patterns).all(-1).any(1).float().mean()
        return {
            "divergence": float(-share @ exact - floor),
            "divergence_at_start": float(at_start),
            "bound_gap": float(share @ (exact - bound)),
            "dreams_that_are_bars": float(known),
            "importance_error": float(share @ (estimate.log_evidence - exact)),
        }

    def show(self, run: Run, machine: HelmholtzMachine, patterns: Tensor, floor: float) -> None:
        steps, evidence = run.curve("nats/evidence")
        lines = {
            "evidence log p(x)": (steps, evidence),
            "bound": run.curve("nats/bound"),
            "best possible": (steps, [-floor] * len(steps)),
        }
        run.figure(
            "evidence",
            curves(lines, x_label="step", y_label="nats an image, mean over the data"),
            "The exact evidence and its bound while the machine wakes and sleeps. Between them lies what recognition "
            "misses of the posterior, above them the entropy of the data, which is out of reach.",
        )
        dreams = machine.dream(15)
        shown = torch.cat([patterns[:: len(patterns) // 15][:15], dreams[0]])
        run.figure(
            "dreams",
            image_grid(as_images(shown), columns=15, row_labels=["data", "dreams"]),
            "Bars or stripes, never both; and what the machine dreams of.",
        )
        states = machine.recognise(patterns[:: len(patterns) // 15][:15])
        rebuilt = machine.down[0](states[1]).sigmoid()
        run.figure(
            "recognised",
            image_grid(as_images(torch.cat([states[0], rebuilt])), columns=15, row_labels=["seen", "imagined"]),
            "Images, and the pixels' probabilities given what was recognised in them.",
        )
        lowest = machine.down[0]
        assert isinstance(lowest, nn.Linear)
        weights = lowest.weight.mT
        fields = 0.5 + 0.5 * weights / weights.abs().max()
        run.figure(
            "generative fields",
            image_grid(as_images(fields), columns=len(fields)),
            "What each unit of the first hidden layer adds to the pixels' log-odds: light for, dark against. "
            "Most units stand for a row or a column.",
        )
        run.note(
            "two phases",
            "Awake, the machine recognises causes in an image and makes them likelier to produce it. Asleep, it dreams "
            "an image from known causes and learns to recognise them. Each phase teaches one of the networks with what "
            "the other makes up; no gradient passes through a coin flip.",
        )


@dataclass(frozen=True)
class Sample:
    count: int = 100  # how many

    def __call__(self, model: HelmholtzMachine) -> Tensor:
        return as_images(model.sample(self.count))


def bars_and_stripes() -> Tensor:
    """All 2 · 2⁴ images of 4×4 pixels whose columns, or else rows, are each of one colour."""
    lines = every_mask(SIDE)
    columns = lines[:, None, :].expand(-1, SIDE, -1)
    return torch.cat([columns, columns.mT]).flatten(1)


def as_images(x: Tensor) -> Tensor:
    """In shades that stand out on white paper as on black."""
    return 0.22 + 0.6 * x.view(-1, 1, SIDE, SIDE)
