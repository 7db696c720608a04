"""A residual flow learns two moons: every step contracts, and iteration takes it back (book sec. 13.1)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.optim.lr_scheduler import OneCycleLR

from parnassus.data import Dataset, open_points, standardised
from parnassus.data.densities import moons_log_prob
from parnassus.data.own import toy_dataset
from parnassus.data.toy import moons
from parnassus.flows.contraction import contractive_mlp, fixed_point_path
from parnassus.flows.flow import Chain, Flow, GaussianBase, Inverted
from parnassus.flows.residual import InvertibleResidual, LogDet, RouletteLogDet, SeriesLogDet, residual_chain
from parnassus.flows.traces import unit_directions
from parnassus.optim import Adam
from parnassus.report import PALETTE, curves, subplots
from parnassus.train import Run, at_most, between, descend, reported

if TYPE_CHECKING:
    from matplotlib.axes import Axes

covers = ("B13.1-13",)
expected = {
    "test_nll": at_most(0.34, "−log p(x) of an unseen point, in nats"),
    "divergence": at_most(0.05, "how far above the true −log p(x) of the same points that is: KL(q ‖ p)"),
    "mass": between(0.99, 1.01, "the density summed over a fine grid"),
    "round_trip": at_most(5e-4, "how far a sample lands from itself after the way back and forth, at worst"),
    "slowest_rate": at_most(0.951, "what is left of the error after an iteration of the slowest inverse"),
    "bias_of_5_terms": reported("how much the NLL is off when every log-determinant has 5 terms of its series"),
    "bias_of_roulette": between(-4.5, 4.5, "the same for roulette, in standard errors of its mean"),
    "spread_of_roulette": reported("standard deviation of the log-density that roulette gives a point, in nats"),
}
profiles = {"smoke": {"steps": 5, "blocks": 2, "width": 8, "grid": 60, "draws": 20}, "gpu": {"steps": 5_000}}

SHORTEST, LONGEST = 1, 20
"""Terms of the series that are tried."""


@dataclass(frozen=True)
class Experiment:
    data: str = "moons"  # points in the plane: moons, eight_gaussians, checkerboard, rings, spirals, or a file of yours
    steps: int = 800  # gradient steps
    batch: int = 256  # points a step
    blocks: int = 16  # residual maps, one after the other
    width: int = 32  # sine waves in each of them
    lipschitz: float = 0.95  # largest Lipschitz constant of a branch
    stretch: float = 4.0  # how much more the first layer of a branch may stretch, and the last must shrink
    lr: float = 1e-2  # Adam's largest learning rate, reached after a tenth of the steps
    grid: int = 200  # places along a side where densities are drawn
    draws: int = 200  # estimates of each log-density by roulette

    def model(self) -> Flow:
        branch = partial(
            contractive_mlp, (2, self.width, 2), lipschitz=self.lipschitz, stretch=self.stretch, activation=torch.sin
        )
        steps = residual_chain(branch() for _ in range(self.blocks))
        return Flow(Inverted(steps), GaussianBase((2,), learned=True))  # inverted: the data take the quick way

    def __call__(self, run: Run) -> dict[str, float]:
        data = moons_or(self.data).to(run.device)
        model, optimizer = run.prepare(run.build(self.model), partial(Adam, lr=self.lr))
        warming = OneCycleLR(optimizer, self.lr, total_steps=self.steps + 1, pct_start=0.1, cycle_momentum=False)
        run.keep("warming", warming)
        for step, loss in descend(run, model, optimizer, data.train.batches(self.batch, self.steps)):
            warming.step()
            run.log(step, loss=loss)

        truth = moons_log_prob if self.data == "moons" else None
        with torch.no_grad():
            mass = show_density(run, model, data, self.grid, truth)
            show_blocks(run, model, data.test.x)
            x = model.sample(1_000)
            back, _ = model.transform.inverse(x)
            again, _ = model.transform(back)
            return {
                **likelihood(model, data.test.x, truth),
                "mass": mass,
                "round_trip": float((again - x).abs().max()),
                "slowest_rate": self.show_inverse(run, chain_of(model), data.test.x[:500]),
                **self.compare_log_dets(run, model, data.test.x[:500]),
            }

    def show_inverse(self, run: Run, chain: Chain, x: Tensor) -> float:
        """How fast the fixed point of each block is reached, in float64; the ratio of the slowest."""
        rates, lines, count = [], {}, 25
        for number, (block, z) in enumerate(zip(chain.double(), chain.path(x.double()), strict=False)):
            assert isinstance(block, InvertibleResidual)
            path = islice(fixed_point_path(block.branch, z + block.branch(z)), count)
            errors = torch.stack([(state - z).norm(dim=1).max() for state in path])
            errors = errors[errors > 1e-13]
            rates.append(float((errors[1:] / errors[:-1]).max()) if len(errors) > 1 else 0.0)
            if number % max(1, len(chain) // 4) == 0:
                lines[f"block {number + 1}"] = (range(len(errors)), errors)
        chain.float()
        bound = [float(lines["block 1"][1][0]) * self.lipschitz**k for k in range(count)]
        figure = curves(
            {**lines, "what the bound allows": (range(count), bound)},
            x_label="iterations", y_label="largest error", log_y=True,
        )  # fmt: skip
        run.figure("inverse", figure, "The fixed point z = x − g(z) of some blocks: the error falls geometrically.")
        return max(rates)

    def compare_log_dets(self, run: Run, model: Flow, x: Tensor) -> dict[str, float]:
        """What stopping the series of traces does to the density, and what roulette makes of it."""
        exact = model.log_prob(x)
        terms = list(range(SHORTEST, LONGEST + 1))
        bias = [float((using(model, SeriesLogDet(n, directions=unit_directions), x) - exact).mean()) for n in terms]
        points = x[:50]
        roulette = using(model, RouletteLogDet(0.3, sure=4), points.repeat(self.draws, 1)).view(self.draws, -1)
        off = (roulette - exact[: len(points)]).mean(1)  # of each draw, over the points
        figure = curves(
            {"": (terms, [abs(value) for value in bias])}, x_label="terms of each series",
            y_label="nats by which the NLL is off", log_y=True,
        )  # fmt: skip
        run.figure("series", figure, "What is lost when every log-determinant stops after so many traces.")
        error = float(off.std()) / self.draws**0.5
        run.note(
            "the lottery",
            f"Five terms always put the NLL off by {-bias[4]:+.4f} nats. Roulette takes four and goes on while a coin "
            f"allows it, {4 + 0.7 / 0.3:.1f} terms on average: over {self.draws} draws it is off by "
            f"{-float(off.mean()):+.4f} ± {error:.4f} nats. It pays with noise, {float(roulette.std(0).mean()):.2f} "
            "nats in the log-density of a point, most of it from the one random direction of each trace.",
        )
        return {
            "bias_of_5_terms": -bias[4],
            "bias_of_roulette": -float(off.mean()) / error,
            "spread_of_roulette": float(roulette.std(0).mean()),
        }


@dataclass(frozen=True)
class Sample:
    count: int = 2_000  # how many points

    def __call__(self, model: Flow) -> Tensor:
        return model.sample(self.count)


def moons_or(name: str) -> Dataset:
    """Points in the plane; of the moons many, in their own units, so that their true density applies."""
    if name == "moons":
        return toy_dataset("moons", moons, train=50_000, test=10_000)
    return standardised(open_points(name))


def likelihood(model: Flow, x: Tensor, truth: Callable[[Tensor], Tensor] | None) -> dict[str, float]:
    """The mean of −log p(x), and how far it is from that of the truth where this is known."""
    nll = -float(model.log_prob(x).mean())
    return {"test_nll": nll} if truth is None else {"test_nll": nll, "divergence": nll + float(truth(x).mean())}


def show_density(run: Run, model: Flow, data: Dataset, side: int, truth: Callable[[Tensor], Tensor] | None) -> float:
    """The learned density beside the true one or the data, and samples; the sum of the first over its grid."""
    low, high = data.train.x.amin(0).cpu(), data.train.x.amax(0).cpu()
    reach = 0.25 * (high - low)
    first, second = (torch.linspace(float(a), float(b), side) for a, b in zip(low - reach, high + reach, strict=True))
    places = torch.cartesian_prod(first, second).to(run.device)
    cell = float((first[1] - first[0]) * (second[1] - second[0]))
    learned = model.log_prob(places).exp().view(side, side).mT.cpu()
    figure, axes = subplots(1, 3, size=(11.5, 3.4))
    extent = (float(first[0]), float(first[-1]), float(second[0]), float(second[-1]))
    known = learned if truth is None else truth(places).exp().view(side, side).mT.cpu()
    top = float(known.max())
    for ax, density in ((axes[0, 0], known), (axes[0, 1], learned)):
        ax.imshow(density.numpy(), origin="lower", extent=extent, vmin=0, vmax=top, cmap="viridis", aspect="auto")
        ax.grid(visible=False)
    if truth is None:
        axes[0, 0].clear()
        cloud(axes[0, 0], data.test.x, PALETTE[0])
    axes[0, 0].set_title("the data" if truth is None else "the true density")
    axes[0, 1].set_title("the density learned")
    cloud(axes[0, 2], model.sample(2_000), PALETTE[1])
    axes[0, 2].set(title="samples", xlim=extent[:2], ylim=extent[2:])
    run.figure("density", figure, "The density that the flow has learned, exact at every point, and 2,000 samples.")
    return float(learned.double().sum()) * cell


def show_blocks(run: Run, model: Flow, x: Tensor) -> None:
    """The unseen points after some of the blocks, coloured by where they come from."""
    chain = chain_of(model)
    states = list(chain.path(x[:3_000]))
    chosen = torch.linspace(0, len(chain), min(5, len(chain) + 1)).round().int().tolist()
    figure, axes = subplots(1, len(chosen), size=(11.5, 2.7))
    colour = (states[0][:, 0].argsort().argsort().float() / len(states[0])).cpu().numpy()
    for ax, number in zip(axes[0], chosen, strict=True):
        points = states[number].cpu().numpy()
        ax.scatter(points[:, 0], points[:, 1], s=2, c=colour, cmap="viridis", linewidths=0, rasterized=True)
        ax.set(title="the data" if number == 0 else f"after {number} blocks", xticks=[], yticks=[])
    run.figure("blocks", figure, "From data to noise: a block moves neighbours nearly alike, and no two points meet.")


def using(model: Flow, log_det: LogDet, x: Tensor) -> Tensor:
    """The log-densities of x when every block finds its log-determinant in this way."""
    blocks = [block for block in chain_of(model) if isinstance(block, InvertibleResidual)]
    before = [block.log_det for block in blocks]
    for block in blocks:
        block.log_det = log_det
    log_prob = model.log_prob(x)
    for block, kept in zip(blocks, before, strict=True):
        block.log_det = kept
    return log_prob


def chain_of(model: Flow) -> Chain:
    assert isinstance(model.transform, Inverted)
    assert isinstance(model.transform.transform, Chain)
    return model.transform.transform


def cloud(ax: "Axes", points: Tensor, colour: str) -> None:
    places = points.cpu()
    ax.scatter(places[:, 0], places[:, 1], s=2, color=colour, linewidths=0, rasterized=True)
