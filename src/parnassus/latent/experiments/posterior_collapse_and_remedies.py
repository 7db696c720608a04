"""Why codes fall silent, and what wakes them: five remedies on digits (book sec. 6.4).

A decoder that expects much noise finds no code worth its price. The remedies change the price, the noise or the order
of events; only those that change what is least in the end still work in the end.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.optim import Adam

from parnassus.data import Split, open_data
from parnassus.latent.aggregate import active_units, code_information, rate_by_unit
from parnassus.latent.collapse import FreeBits, warm_up
from parnassus.latent.decoders import GaussianDecoder
from parnassus.latent.dense import flat_decoder, flat_encoder
from parnassus.latent.objectives import NegativeELBO, Objective
from parnassus.latent.vae import VAE
from parnassus.report import PALETTE, curves, image_grid, subplots
from parnassus.train import Run, SideBySide, at_least, at_most, reported

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B6.4-3", "B6.4-7", "B6.3-6")
expected = {
    "rate_collapsed": at_most(0.05, "nats that the code says under too wide a decoder"),
    "rate_annealed": at_most(0.05, "the same after β rose from 0 to 1: the wish to speak does not outlive the price"),
    "rate_peak_annealed": at_least(1.0, "nats said while β was still small"),
    "rate_free_bits": at_least(5.0, "with the first nats of every unit for free"),
    "rate_small_beta": at_least(7.0, "with β < 1"),
    "rate_narrow": at_least(8.0, "with a smaller fixed deviation of the decoder"),
    "rate_learned": at_least(2.0, "with a deviation that the decoder learns"),
    "learned_deviation": reported("that deviation, in grey values"),
    "error_collapsed": reported("squared error a pixel of unseen images: that of the mean image"),
    "error_learned": at_most(0.04, "the same with a learned deviation"),
}
profiles = {
    "smoke": {"steps": 10, "width": 16},
    "gpu": {"data": "mnist", "steps": 10_000, "batch": 256, "width": 512, "latent": 32, "lr": 1e-3},
}
NAMES = ("collapsed", "annealed", "free bits", "small β", "narrow", "learned")


@dataclass(frozen=True)
class Experiment:
    data: str = "digits"  # images: digits, mnist_mini, mnist, fashion_mnist, or a folder of yours
    steps: int = 800  # gradient steps
    batch: int = 128  # images a step
    latent: int = 8  # numbers in a code
    width: int = 128  # hidden units
    lr: float = 2e-3  # Adam's learning rate
    wide: float = 1.5  # deviation of a decoder that expects too much noise, in grey values
    narrow: float = 0.2  # deviation of one that expects less
    beta: float = 0.02  # weight of the rate where it is small
    floor: float = 1.0  # nats a unit may say for free

    def model(self, shape: Sequence[int]) -> SideBySide[VAE]:
        regimes: dict[str, tuple[Objective, float, bool]] = {
            "collapsed": (NegativeELBO(), self.wide, False),
            "annealed": (NegativeELBO(), self.wide, False),
            "free bits": (FreeBits(self.floor), self.wide, False),
            "small β": (NegativeELBO(self.beta), self.wide, False),
            "narrow": (NegativeELBO(), self.narrow, False),
            "learned": (NegativeELBO(), self.wide, True),
        }
        return SideBySide({name: self.one(shape, *regimes[name]) for name in NAMES})

    def one(self, shape: Sequence[int], objective: Objective, std: float, learned: bool) -> VAE:  # noqa: FBT001 - data
        encoder = flat_encoder(shape, 2 * self.latent, width=self.width)
        network = flat_decoder(self.latent, shape, width=self.width)
        return VAE(encoder, GaussianDecoder(network, std=std, learned=learned), self.latent, objective=objective)

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_data(self.data).to(run.device)
        seen, unseen = data.train.x[:1_000], data.test.x[:1_000]
        model, optimizer = run.prepare(run.build(self.model, shape=data.shape), partial(Adam, lr=self.lr))
        for step, x in run.steps(data.train.batches(self.batch, self.steps)):
            model.one("annealed").objective = NegativeELBO(warm_up(step, max(1, self.steps // 2)))
            with run.autocast():
                loss = model.loss(x)
            run.update(optimizer, loss)
            run.log(step, loss=loss)
            if step % max(1, self.steps // 50) == 0:
                run.record(step, **{f"rate/{name}": rates(model.one(name), seen).sum() for name in NAMES})

        self.show(run, model, data.test, unseen)
        final = {name: float(rates(model.one(name), unseen).sum()) for name in NAMES}
        return {
            "rate_collapsed": final["collapsed"],
            "rate_annealed": final["annealed"],
            "rate_peak_annealed": max(run.curve("rate/annealed")[1]),
            "rate_free_bits": final["free bits"],
            "rate_small_beta": final["small β"],
            "rate_narrow": final["narrow"],
            "rate_learned": final["learned"],
            "learned_deviation": float(model.one("learned").get_parameter("decoder.log_std").detach().exp()),
            "error_collapsed": error(model.one("collapsed"), unseen),
            "error_learned": error(model.one("learned"), unseen),
        }

    def show(self, run: Run, model: SideBySide[VAE], test: Split, unseen: Tensor) -> None:
        lines = {name: run.curve(f"rate/{name}") for name in NAMES}
        run.figure("rates", curves(lines, x_label="step", y_label="rate (nats)"), RATES)
        run.figure("units", draw_units({name: rates(model.one(name), unseen) for name in NAMES}), UNITS)
        with torch.no_grad():
            copies = torch.cat([test.x[:10], *(model.one(name).reconstruct(test.x[:10]) for name in NAMES)])
        run.figure("copies", image_grid(copies, columns=10, row_labels=["image", *NAMES]), COPIES)
        rows: list[dict[str, str | float]] = []
        for name in NAMES:
            with torch.no_grad():
                mean, log_variance = model.one(name).moments(unseen)
            rows.append(
                {
                    "regime": name,
                    "rate": float(rate_by_unit(mean, log_variance).sum()),
                    "I(X, Z)": code_information(mean, log_variance).information,
                    "active units": float(active_units(mean).sum()),
                    "squared error a pixel": error(model.one(name), unseen),
                }
            )
        run.table("regimes", rows, "Unseen images; rate and information in nats.")
        run.note("what collapse is", EXPLAINED)


RATES = (
    "What the code says while training. Annealed codes speak while they are cheap and fall silent long before the "
    "price is at its full height, at half time: under this decoder silence is the cheapest answer, no trap on the way."
)
UNITS = "The same at the end, unit by unit, the most talkative first: what each coordinate says of an unseen image."
COPIES = "Unseen digits and their copies: a silent code leaves the mean image."
EXPLAINED = (
    "A unit that says r nats must save r nats of corrections. A decoder of deviation s saves ‖improvement‖²/2s², so "
    "with a large s nothing is worth saying; in a linear model the directions of variance below β s² are dropped, no "
    "others. That is why a smaller β, a smaller s or a learned s wake the code, and free bits do because they waive "
    "the price. Annealing cures another illness, codes that fall silent only because the decoder is not yet listening; "
    "where silence is the optimum it postpones it."
)


@torch.no_grad()
def rates(vae: VAE, x: Tensor) -> Tensor:
    return rate_by_unit(*vae.moments(x))


@torch.no_grad()
def error(vae: VAE, x: Tensor) -> float:
    return float((vae.reconstruct(x) - x).square().mean())


def draw_units(found: dict[str, Tensor]) -> "Figure":
    """The rate of every unit, sorted, one panel a regime."""
    figure, axes = subplots(1, len(found), size=(1.75 * len(found), 2.3))
    top = max(float(each.max()) for each in found.values())
    for place, (name, each) in enumerate(found.items()):
        ax = axes[0, place]
        ax.bar(range(1, len(each) + 1), each.sort(descending=True).values.tolist(), color=PALETTE[0])
        ax.set(ylim=(0, 1.05 * top), xlabel="unit", ylabel="nats" if place == 0 else "")
        ax.set_title(name)
        ax.set_xticks([1, len(each)])
        ax.grid(visible=False, axis="x")
        if place:
            ax.set_yticklabels([])
    return figure
