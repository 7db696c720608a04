"""What a nat of code buys: β-VAEs of digits from talkative to silent (book sec. 6.4).

One network a weight β of the rate, all trained side by side. Where they end in the plane of rate and distortion is the
model's own rate-distortion curve.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.optim import Adam

from parnassus.data import DataError, open_data
from parnassus.latent.aggregate import CodeInformation, active_units, code_information
from parnassus.latent.decoders import BernoulliDecoder
from parnassus.latent.dense import flat_decoder, flat_encoder
from parnassus.latent.objectives import NegativeELBO
from parnassus.latent.vae import VAE
from parnassus.report import FAINT, INK, PALETTE, image_grid, subplots
from parnassus.train import Run, SideBySide, at_least, at_most, between, descend, reported

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = (
    "B6.4-1", "B6.4-2", "B6.4-3", "B6.4-4", "B6.4-5", "B6.4-7", "B6.4-11",
)  # fmt: skip
expected = {
    "rate_talkative": at_least(28.0, "nats that the code says at the smallest β"),
    "rate_silent": at_most(0.1, "nats that the code says at the largest β"),
    "distortion_talkative": reported("nats to correct an unseen image at the smallest β"),
    "distortion_silent": reported("the same at the largest β: the code no longer helps"),
    "rate_steps_down": at_least(1.0, "share of steps to the next β at which the rate falls"),
    "distortion_steps_up": at_least(1.0, "share of those at which the distortion of the seen images rises"),
    "least_bill_beta": between(0.6, 1.7, "β with the least distortion + rate on unseen images; the theory says 1"),
    "information": reported("I(X, Z) at β = 1, nats, over the images shown"),
    "prior_gap": reported("KL(q(z) ‖ p(z)) at β = 1, nats"),
    "identity_error": at_most(0.1, "|R − I(X, Z) − KL(q(z) ‖ p(z))| at β = 1, nats: what chance leaves"),
}
profiles = {
    "smoke": {"steps": 10, "width": 16},
    "gpu": {"data": "mnist", "steps": 20_000, "batch": 256, "width": 1_024, "latent": 32, "lr": 5e-4},
}


@dataclass(frozen=True)
class Experiment:
    data: str = "digits"  # images: digits, mnist_mini, mnist, fashion_mnist, or a folder of yours
    betas: tuple[float, ...] = (0.03, 0.1, 0.3, 0.6, 1.0, 1.7, 4.0)  # weights of the rate, smallest first
    steps: int = 700  # gradient steps
    batch: int = 128  # images a step
    latent: int = 12  # numbers in a code
    width: int = 128  # hidden units
    lr: float = 3e-3  # Adam's learning rate

    def model(self, shape: Sequence[int]) -> SideBySide[VAE]:
        """One network for each β, by its place among them: a name may hold no point."""
        return SideBySide({str(place): self.one(shape, beta) for place, beta in enumerate(self.betas)})

    def one(self, shape: Sequence[int], beta: float) -> VAE:
        encoder = flat_encoder(shape, 2 * self.latent, width=self.width)
        decoder = BernoulliDecoder(flat_decoder(self.latent, shape, width=self.width))
        return VAE(encoder, decoder, self.latent, objective=NegativeELBO(beta))

    def __call__(self, run: Run) -> dict[str, float]:
        if sorted(self.betas) != list(self.betas) or 1.0 not in self.betas:
            raise DataError(f"betas must rise and have 1 among them; got {self.betas}")
        data = open_data(self.data).to(run.device)
        seen, unseen = (torch.bernoulli(split.x[:2_000]) for split in (data.train, data.test))
        model = run.build(self.model, shape=data.shape)
        model, optimizer = run.prepare(model, partial(Adam, lr=self.lr))
        batches = data.train.batches(self.batch, self.steps).map(torch.bernoulli)
        for step, loss in descend(run, model, optimizer, batches):
            run.log(step, loss=loss / len(self.betas))

        vaes = [vae for _, vae in model.every()]
        rows, seen_rows = ([measure(vae, x) for vae in vaes] for x in (unseen, seen))
        mean, log_variance = moments(vaes[self.betas.index(1.0)], unseen)
        information = code_information(mean, log_variance, draws=20)
        run.figure("plane", draw_plane(self.betas, rows), PLANE)
        run.figure("bill", draw_bill(self.betas, rows), BILL)
        run.figure("copies", draw_copies(self.betas, vaes, unseen[:10]), COPIES)
        run.table("sweep", table(self.betas, rows, vaes, unseen), "Unseen images, in nats; I(X, Z) is at most log n.")
        run.note("two identities", explain(information, rows[self.betas.index(1.0)], len(unseen)))
        rates, distortions = zip(*rows, strict=True)
        falls = torch.tensor(rates).diff() < 0
        rises = torch.tensor([row[1] for row in seen_rows]).diff() > 0
        bills = [rate + distortion for rate, distortion in rows]
        return {
            "rate_talkative": rates[0],
            "rate_silent": rates[-1],
            "distortion_talkative": distortions[0],
            "distortion_silent": distortions[-1],
            "rate_steps_down": float(falls.float().mean()),
            "distortion_steps_up": float(rises.float().mean()),
            "least_bill_beta": self.betas[bills.index(min(bills))],
            "information": information.information,
            "prior_gap": information.prior_gap,
            "identity_error": abs(information.rate - information.information - information.prior_gap),
        }


@dataclass(frozen=True)
class Sample:
    beta: int = 5  # which of the networks draws, counted from 1 in order of β
    count: int = 64  # how many

    def __call__(self, model: SideBySide[VAE]) -> Tensor:
        if not 1 <= self.beta <= len(model):
            raise DataError(f"there are networks 1 to {len(model)}; got beta={self.beta}")
        vae = model.one(str(self.beta - 1))
        return vae.decode(vae.prior().sample((self.count,)))


PLANE = (
    "Every point is a network, told to weigh the rate by β. Along a dashed line the bill, rate + distortion, is the "
    "same; at β the curve has the slope −β, so β = 1 touches the cheapest bill."
)
BILL = "The bill of an unseen image at each β. A talkative code is no gift: what is saved in pixels is paid for codes."
COPIES = "Unseen digits (first row), decoded from the middle of their codes; the code says less from row to row."


@torch.no_grad()
def measure(vae: VAE, x: Tensor, *, draws: int = 10) -> tuple[float, float]:
    """Rate and distortion, the mean over rows and `draws` codes of each."""
    terms = [vae.terms(x) for _ in range(draws)]
    return float(terms[0].rate.mean()), float(torch.stack([each.distortion for each in terms]).mean())


@torch.no_grad()
def moments(vae: VAE, x: Tensor) -> tuple[Tensor, Tensor]:
    return vae.moments(x)


def draw_plane(betas: Sequence[float], rows: Sequence[tuple[float, float]]) -> "Figure":
    """Where each β ends in the plane of rate and distortion, with lines of equal sum."""
    figure, axes = subplots(size=(6.4, 4.8))
    ax = axes[0, 0]
    rates, distortions = (list(column) for column in zip(*rows, strict=True))
    right, bottom, top = 1.18 * max(rates), min(distortions), max(distortions)
    bottom, top = bottom - 0.12 * (top - bottom), top + 0.08 * (top - bottom)
    best = min(rate + distortion for rate, distortion in rows)
    for more in range(1, 12):
        total = best + more * right / 10
        ax.plot([0, right], [total, total - right], color=FAINT, linestyle="--", linewidth=0.8, zorder=1)
    ax.plot([0, right], [best, best - right], color=INK, linewidth=1.2, zorder=1, label=f"least bill, {best:.1f} nats")
    ax.plot(rates, distortions, color=PALETTE[0], marker="o", markersize=6, label="the networks")
    for beta, rate, distortion in zip(betas, rates, distortions, strict=True):
        ax.annotate(f"β = {beta:g}", (rate, distortion), xytext=(7, 5), textcoords="offset points")
    ax.set(xlabel="rate R (nats)", ylabel="distortion D (nats)", xlim=(0, right), ylim=(bottom, top))
    ax.legend(loc="upper right")
    return figure


def draw_bill(betas: Sequence[float], rows: Sequence[tuple[float, float]]) -> "Figure":
    """Rate and distortion of each β end to end."""
    figure, axes = subplots(size=(6.8, 0.9 + 0.34 * len(betas)))
    ax = axes[0, 0]
    names = [f"β = {beta:g}" for beta in betas]
    rates, distortions = (list(column) for column in zip(*rows, strict=True))
    ax.barh(names, rates, color=PALETTE[1], height=0.65, label="rate")
    drawn = ax.barh(names, distortions, left=rates, color=PALETTE[0], height=0.65, label="distortion")
    ax.bar_label(drawn, [f"{sum(row):.1f}" for row in rows], padding=3)
    ax.margins(x=0.1)
    ax.invert_yaxis()
    ax.grid(visible=False, axis="y")
    ax.set_xlabel("nats an unseen image")
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    return figure


@torch.no_grad()
def draw_copies(betas: Sequence[float], vaes: Sequence[VAE], x: Tensor) -> "Figure":
    copies = [vae.reconstruct(x) for vae in vaes]
    names = ["image", *(f"β = {beta:g}" for beta in betas)]
    return image_grid(torch.cat([x, *copies]), columns=len(x), row_labels=names)


def table(
    betas: Sequence[float], rows: Sequence[tuple[float, float]], vaes: Sequence[VAE], x: Tensor
) -> list[dict[str, str | float]]:
    """Each network with its information and the units that it uses."""
    found: list[dict[str, str | float]] = []
    for beta, (rate, distortion), vae in zip(betas, rows, vaes, strict=True):
        mean, log_variance = moments(vae, x)
        information = code_information(mean, log_variance)
        found.append(
            {
                "β": beta,
                "rate": rate,
                "distortion": distortion,
                "−ELBO": rate + distortion,
                "I(X, Z)": information.information,
                "KL(q(z), p(z))": information.prior_gap,
                "active units": float(active_units(mean).sum()),
            }
        )
    return found


def explain(found: CodeInformation, row: tuple[float, float], count: int) -> str:
    """The two identities with the numbers of β = 1."""
    log_n = float(torch.tensor(float(count)).log())
    return (
        f"At β = 1 the network pays a rate of {row[0]:.2f} nats and a distortion of {row[1]:.2f}: together the "
        f"negative ELBO, {sum(row):.2f}.\n\n"
        f"The rate has two parts. I(X, Z) = {found.information:.2f} nats say which image it is; no more than "
        f"log {count} = {log_n:.2f} can be said of {count} images, so this number is limited by the images shown, and "
        f"codes that tell all of them apart reach it. KL(q(z) ‖ p(z)) = {found.prior_gap:.2f} nats are paid because "
        f"the codes of these images are not spread like the prior. Measured apart, the two add up to "
        f"{found.information + found.prior_gap:.2f} against a rate of {found.rate:.2f}: the ELBO is I + D only where "
        "q(z) = p(z)."
    )
