"""Two levels of codes: the upper one speaks in a ladder, and hardly in a plain hierarchy (book sec. 6.3).

The image hangs on the lower code by one linear layer, so all that is crooked about digits must be said from above.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import prod

import torch
from torch import Tensor, nn
from torch.optim import Adam

from parnassus.data import open_data
from parnassus.latent.collapse import warm_up
from parnassus.latent.decoders import BernoulliDecoder
from parnassus.latent.dense import flat_decoder
from parnassus.latent.ladder_vae import Belief, LadderVAE, precision_weighted, reading_alone
from parnassus.latent.likelihood import importance_likelihood
from parnassus.layers import mlp
from parnassus.report import curves, image_grid
from parnassus.train import Run, SideBySide, at_least, at_most, reported

covers = ("B6.4-3", "B6.4-4", "B6.3-5")
expected = {
    "top_rate_ladder": at_least(1.0, "nats that the upper level of the ladder says of an unseen image"),
    "top_rate_plain": reported("the same of a plain hierarchy, whose beliefs do not hear the level above"),
    "top_share_ladder": at_least(0.25, "share of the ladder's rate that its upper level says"),
    "top_share_plain": at_most(0.25, "the same of the plain hierarchy"),
    "bottom_rate_ladder": reported("nats that the lower level of the ladder adds"),
    "bottom_rate_plain": reported("nats that the lower level of the plain hierarchy says"),
    "nll_ladder": at_most(24.0, "−log p(x) of an unseen image under the ladder, nats, by importance sampling"),
    "nll_plain": reported("the same under the plain hierarchy"),
    "nll_saved": at_least(0.0, "nats that the ladder saves"),
    "nll_error": reported("standard error of the ladder's number from the finite number of codes"),
}
profiles = {
    "smoke": {"steps": 10, "width": 16, "draws": 5},
    "gpu": {
        "data": "mnist", "steps": 20_000, "batch": 256, "width": 512, "bottom": 32, "top": 16, "lr": 5e-4, "draws": 500,
    },
}  # fmt: skip

NARROW = -4.0  # log σ² with which readings begin


@dataclass(frozen=True)
class Experiment:
    data: str = "digits"  # images: digits, mnist_mini, mnist, fashion_mnist, or a folder of yours
    steps: int = 1_400  # gradient steps; the rates rise to their full weight within the first half
    batch: int = 128  # images a step
    bottom: int = 16  # numbers in the lower code, next to the image
    top: int = 4  # numbers in the upper code
    width: int = 128  # hidden units of every network
    lr: float = 2e-3  # Adam's learning rate
    draws: int = 100  # ways down weighed for each image to estimate its likelihood

    def model(self, shape: Sequence[int]) -> SideBySide[LadderVAE]:
        return SideBySide(
            {"ladder": self.hierarchy(shape, precision_weighted), "plain": self.hierarchy(shape, reading_alone)}
        )

    def hierarchy(self, shape: Sequence[int], belief: Belief) -> LadderVAE:
        first = nn.Sequential(nn.Flatten(), mlp((prod(shape), self.width), output=torch.relu))
        second = mlp((self.width, self.width), output=torch.relu)
        readers = [nn.Linear(self.width, 2 * self.bottom), nn.Linear(self.width, 2 * self.top)]
        for reader in readers:  # begun wide, a reading is outweighed by the prior and never heard
            nn.init.constant_(reader.bias.data[len(reader.bias) // 2 :], NARROW)
        expectation = mlp((self.top, self.width, 2 * self.bottom))
        decoder = BernoulliDecoder(flat_decoder(self.bottom, shape, layers=0))
        return LadderVAE([first, second], readers, [expectation], decoder, self.top, belief=belief)

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_data(self.data).to(run.device)
        seen, unseen = (torch.bernoulli(split.x[:1_000]) for split in (data.train, data.test))
        model, optimizer = run.prepare(run.build(self.model, shape=data.shape), partial(Adam, lr=self.lr))
        batches = data.train.batches(self.batch, self.steps).map(torch.bernoulli)
        for step, x in run.steps(batches):
            with run.autocast():
                loss = model.loss(x, torch.tensor(warm_up(step, max(1, self.steps // 2))))
            run.update(optimizer, loss)
            run.log(step, loss=loss)
            if step % max(1, self.steps // 40) == 0:
                run.record(step, **{f"upper rate/{name}": rates(one, seen)[1] for name, one in model.every()})

        self.show(run, model, unseen)
        final = {name: rates(one, unseen) for name, one in model.every()}
        likelihood = {name: importance_likelihood(one, unseen, samples=self.draws) for name, one in model.every()}
        rows: list[dict[str, str | float]] = [
            {
                "": name,
                "upper rate": final[name][1],
                "lower rate": final[name][0],
                "distortion": distortion(one, unseen),
                "−log p(x)": likelihood[name].nll,
            }
            for name, one in model.every()
        ]
        run.table("levels", rows, "Unseen images, in nats: −ELBO is the sum of distortion and both rates.")
        return {
            "top_rate_ladder": final["ladder"][1],
            "top_rate_plain": final["plain"][1],
            "top_share_ladder": final["ladder"][1] / sum(final["ladder"]),
            "top_share_plain": final["plain"][1] / sum(final["plain"]),
            "bottom_rate_ladder": final["ladder"][0],
            "bottom_rate_plain": final["plain"][0],
            "nll_ladder": likelihood["ladder"].nll,
            "nll_plain": likelihood["plain"].nll,
            "nll_saved": likelihood["plain"].nll - likelihood["ladder"].nll,
            "nll_error": likelihood["ladder"].nll_error,
        }

    @torch.no_grad()
    def show(self, run: Run, model: SideBySide[LadderVAE], unseen: Tensor) -> None:
        lines = {name: run.curve(f"upper rate/{name}") for name, _ in model.every()}
        run.figure("upper level", curves(lines, x_label="step", y_label="upper rate (nats)"), UPPER)
        x, ladder = unseen[:10], model.one("ladder")
        levels = torch.cat([x, *(ladder.reconstruct(x, kept=kept) for kept in (0, 1, 2))])
        names = ["image", "no level", "upper level", "both levels"]
        run.figure("levels", image_grid(levels, columns=10, row_labels=names), LEVELS)
        shown = []
        for _ in range(5):  # one upper code a row, several lower ones
            above = torch.randn(1, self.top, device=x.device).expand(10, -1)
            shown.append(below(ladder, above))
        run.figure("draws", image_grid(torch.cat(shown), columns=10), DRAWS)


@dataclass(frozen=True)
class Sample:
    count: int = 64  # how many

    def __call__(self, model: SideBySide[LadderVAE]) -> Tensor:
        return model.one("ladder").sample(self.count)


UPPER = (
    "What the upper level says of a training image while both hierarchies learn; the price of codes rises until half "
    "time. In the plain one the lower code is read from the image alone, and the upper level can only guess it: as the "
    "price rises it says less and less. In the ladder what it says is used below, and it keeps speaking."
)
LEVELS = "Unseen digits rebuilt from no code, from the upper code alone and from both: the coarse shape comes first."
DRAWS = "New digits: one upper code a row, ten lower codes drawn below it."


@torch.no_grad()
def rates(model: LadderVAE, x: Tensor) -> list[float]:
    """The rate of each level, the lowest first, over ten ways down."""
    found: list[float] = torch.stack([model.terms(x).rates.mean(1) for _ in range(10)]).mean(0).tolist()
    return found


@torch.no_grad()
def distortion(model: LadderVAE, x: Tensor) -> float:
    return float(torch.stack([model.terms(x).distortion for _ in range(10)]).mean())


@torch.no_grad()
def below(model: LadderVAE, above: Tensor) -> Tensor:
    """Images from these upper codes, with the lower ones drawn."""
    mean, log_variance = model.expectations[0](above).chunk(2, dim=-1)
    z = mean + (log_variance / 2).exp() * torch.randn_like(mean)
    images: Tensor = model.decoder(z).mean
    return images
