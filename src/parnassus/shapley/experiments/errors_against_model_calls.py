"""What a model call buys: seven ways to sample Shapley values, and how well they know their errors (book sec. 17.4)."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import TYPE_CHECKING, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from parnassus.atlas import exponent
from parnassus.data import Split
from parnassus.layers import mlp, tanh
from parnassus.losses import mean_squared_error
from parnassus.optim import Adam
from parnassus.report import FAINT, PALETTE, curves, subplots
from parnassus.shapley.game import Worth, looked_up, members
from parnassus.shapley.kernel_shap import kernel_shap
from parnassus.shapley.masking import Interventional
from parnassus.shapley.model import as_model
from parnassus.shapley.orders import by_balanced_orders, by_orders, ends_of, equal_shares
from parnassus.shapley.sampling import Estimator
from parnassus.shapley.stopping import Remembered, largest_error, until
from parnassus.shapley.strata import by_sizes
from parnassus.shapley.values import Estimate, shapley_values
from parnassus.train import Run, at_least, at_most, between, reported

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B17.2-2", "B17.4-1", "B17.4-3")
expected = {
    "variance_explained": reported("share of the variance of unseen targets that the network predicts"),
    "kernel_shap": reported("root mean square error of a value by Kernel SHAP from 528 coalitions"),
    "orders": reported("the same by random orders of arrival"),
    "kernel_shap_over_orders": at_most(0.3, "error of Kernel SHAP over that of random orders"),
    "weights_over_kernel_shap": at_least(
        4.0, "error of coalitions drawn by the book's weights over that of Kernel SHAP"
    ),
    "mirrored_over_orders": at_most(0.5, "error of mirrored orders over that of as many plain ones"),
    "balanced_over_orders": at_most(0.8, "error of orders in balance over that of random ones"),
    "sizes_over_orders": at_most(0.8, "error of samples size by size over that of random orders"),
    "slope_of_orders": between(-0.6, -0.4, "exponent of the error of random orders in the budget"),
    "covered": between(0.93, 0.97, "share of values within 1.96 standard errors, over all ways and budgets"),
    "least_covered": at_least(0.85, "the same of the worst: mirrored orders of which there are three pairs"),
    "missed_over_wished": at_most(1.0, "error of values over the one at which sampling was told to stop"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"steps": 30, "rows": 200, "explained": 2, "others": 5, "repeats": 4},
    "gpu": {},
}

FEATURES = 12
BUDGETS = (66, 132, 264, 528, 1_056, 2_112)
SHOWN = BUDGETS.index(528)
WISHES = (0.2, 0.1, 0.05, 0.025)
"""Standard errors at which to stop, as shares of how far values lie apart from their mean."""


class Missed(NamedTuple):
    """Of one way and budget: model calls, what each value missed in each repetition, and what it said of it."""

    calls: float
    off: Float[Tensor, "repeats rows features"]
    said: Float[Tensor, "repeats rows features"]


@dataclass(frozen=True)
class Experiment:
    rows: int = 2_000  # examples to learn from
    width: int = 32  # hidden units of both layers
    steps: int = 1_500  # gradient steps
    batch: int = 128  # examples a step
    lr: float = 5e-3  # Adam's learning rate
    others: int = 30  # rows of the background
    explained: int = 6  # rows whose values are estimated
    repeats: int = 40  # how often, by each way and for each budget

    def __call__(self, run: Run) -> dict[str, float]:
        train, (test, target) = Split(*examples(self.rows, seed=2 * run.seed)), examples(500, seed=2 * run.seed + 1)
        network = mlp((FEATURES, self.width, self.width, 1), activation=tanh)
        network, optimizer = run.prepare(network, partial(Adam, lr=self.lr))
        for step, (x, y) in run.steps(train.to(run.device).pairs(self.batch, self.steps)):
            loss = mean_squared_error(network(x)[:, 0], y)
            run.update(optimizer, loss)
            run.log(step, loss=loss.detach())
        table = self.games(network, train.x.to(run.device), test.to(run.device)).cpu()
        exact = shapley_values(table - table[..., :1])
        found = {name: [self.missed(way, table, exact, budget) for budget in BUDGETS] for name, way in WAYS.items()}
        errors = {name: [rms(each.off) for each in line] for name, line in found.items()}
        run.figure("errors", draw_errors(found), ERRORS)
        known = {name: line for name, line in found.items() if name != WEIGHTS}
        run.figure("calibration", draw_calibration(known), CALIBRATION)
        run.table("coverage", coverage_rows(known), COVERAGE)
        stops = self.stops(table, exact)
        run.table("stopping", stops, STOPPING)
        ratio = {name: line[SHOWN] / errors["random orders"][SHOWN] for name, line in errors.items()}
        afforded = [each for line in known.values() for each in line if not each.off.isnan().any()]
        within = [(each.off.abs() <= 1.96 * each.said).double() for each in afforded]
        with torch.no_grad():
            guessed = network(test.to(run.device))[:, 0].cpu()
        return {
            "variance_explained": 1 - float((guessed - target).square().mean() / target.var()),
            "kernel_shap": errors["Kernel SHAP"][SHOWN],
            "orders": errors["random orders"][SHOWN],
            "kernel_shap_over_orders": ratio["Kernel SHAP"],
            "weights_over_kernel_shap": ratio[WEIGHTS] / ratio["Kernel SHAP"],
            "mirrored_over_orders": ratio["mirrored orders"],
            "balanced_over_orders": ratio["balanced orders"],
            "sizes_over_orders": ratio["size by size"],
            "slope_of_orders": slope([float(each) for each in BUDGETS], errors["random orders"]),
            "covered": float(torch.cat([each.flatten() for each in within]).mean()),
            "least_covered": min(float(each.mean()) for each in within),
            "missed_over_wished": max(float(row["missed"]) / float(row["wished"]) for row in stops),
        }

    def games(self, network: nn.Module, background: Tensor, x: Tensor) -> Float[Tensor, "rows coalitions"]:
        """What all 4 096 coalitions are worth, for each row that is explained."""
        value = Interventional(as_model(network), background[: self.others])
        return value(x[: self.explained], members(FEATURES))[:, 0]

    def missed(self, way: Estimator, table: Tensor, exact: Tensor, budget: int) -> Missed:
        """Many estimates beside what is right; nothing where the way needs more than the budget."""
        calls, found = [], []
        for _ in range(self.repeats):
            game = Remembered(looked_up(table))
            try:
                found.append(way(game, FEATURES, budget))
            except ValueError:  # too little to know an error from
                break
            calls.append(game.asked)
        if not found:
            return Missed(float("nan"), exact[None] * float("nan"), exact[None] * float("nan"))
        off, said = (torch.stack(part) for part in zip(*found, strict=True))
        return Missed(sum(calls) / len(calls), off - exact, said)

    def stops(self, table: Tensor, exact: Tensor) -> list[dict[str, str | float]]:
        """Sampling by balanced orders until the standard errors are as wished, for several wishes."""
        rows: list[dict[str, str | float]] = []
        for share in WISHES:
            wished = share * float(exact.std())
            game = Remembered(looked_up(table))

            def grow(budget: int, game: Worth = game) -> Estimate:
                return by_balanced_orders(game, FEATURES, budget, generator=torch.Generator().manual_seed(0))

            found = until(grow, wished, first=2 * FEATURES * (FEATURES - 1), most=30_000)
            rows.append(
                {
                    "wished": wished,
                    "largest standard error": largest_error(found),
                    "missed": rms(found.values - exact),
                    "missed at most": float((found.values - exact).abs().max()),
                    "coalitions asked, of 4096": game.asked,
                }
            )
        return rows


def by_weights(worth: Worth, players: int, budget: int, *, generator: torch.Generator | None = None) -> Estimate:
    """Kernel SHAP as the book has it: coalitions drawn by their weight, again and again, then least squares."""
    ends = ends_of(worth, players)
    chance = torch.arange(1, players) * torch.arange(players - 1, 0, -1)
    size = 1 + torch.multinomial(1 / chance, budget, replacement=True, generator=generator)  # π(s) C(M, s)
    z = torch.rand(budget, players, generator=generator).argsort(-1).argsort(-1) < size[:, None]
    equal = equal_shares(ends, players).values
    left = worth(z) - ends[..., :1] - equal[..., :1] * size
    present = z.to(left)
    centred = present - present.mean(1, keepdim=True)  # the sum of all is known
    beyond: Tensor = left @ torch.linalg.pinv(centred.mT, rtol=1e-6)
    return Estimate(equal + beyond, torch.full_like(beyond, float("nan")))


WEIGHTS = "drawn by weight"
WAYS: dict[str, Estimator] = {
    "random orders": by_orders,
    "mirrored orders": partial(by_orders, mirrored=True),
    "balanced orders": by_balanced_orders,
    "balanced and mirrored": partial(by_balanced_orders, mirrored=True),
    "size by size": by_sizes,
    WEIGHTS: by_weights,
    "Kernel SHAP": kernel_shap,
}
ERRORS = (
    "How far values are from exact ones, by the coalitions that a network of 12 features was asked about: each needs "
    "one call for every background row. Numbers are slopes. Orders and sizes fall like 1/√n in what they use, and a "
    "little faster here, for a coalition that comes again costs nothing. Kernel SHAP asks for complements together and "
    "for nothing twice, so that it becomes exact as it runs out of coalitions. Mirroring takes away what any two "
    "features have together, which is most of what this network has."
)
CALIBRATION = (
    "A dot is a value: what the way says of its error, and by how much it misses in truth, over all repetitions. On "
    "the line they agree; below it the way is too modest, as balanced orders are. So are all at the smallest budgets, "
    "on the right: an error that is learned from two or three samples is a guess itself, and is made larger."
)
COVERAGE = (
    "Share of values that lie within 1.96 standard errors of what is right; 0.95 is hoped for. Errors that are learned "
    "from few samples are widened as Student's t asks, so that this holds at small budgets too; some ways need more."
)
STOPPING = "Balanced orders in growing rounds, until no standard error is above the wished one."


def examples(count: int, *, seed: int) -> tuple[Float[Tensor, "count features"], Float[Tensor, " count"]]:
    """Friedman's function of five features, what three have together, and four that do not matter (Friedman 1991)."""
    source = torch.Generator().manual_seed(seed)
    x = torch.rand(count, FEATURES, generator=source)
    y = 2 * torch.sin(torch.pi * x[:, 0] * x[:, 1]) + 4 * (x[:, 2] - 0.5).square() + 2 * x[:, 3] + x[:, 4]
    y = y + 6 * x[:, 5] * x[:, 6] * x[:, 7] + 0.1 * torch.randn(count, generator=source)
    return x, y


def rms(off: Tensor) -> float:
    return float(off.square().mean().sqrt())


def slope(x: list[float], y: list[float]) -> float:
    """The exponent r of y ∝ xʳ where y is known, and not exactly 0."""
    known = [(calls, error) for calls, error in zip(x, y, strict=True) if 0 < error < inf]
    return exponent([calls for calls, _ in known], [error for _, error in known])


def draw_errors(found: Mapping[str, list[Missed]]) -> "Figure":
    lines = {}
    for name, line in found.items():
        calls, errors = [each.calls for each in line], [rms(each.off) for each in line]
        lines[f"{name}, {slope(calls, errors):.2f}".replace("-", "−")] = (calls, errors)
    return curves(
        lines, x_label="coalitions asked, of 4096", y_label="root mean square error of a value", log_x=True, log_y=True
    )


def draw_calibration(found: Mapping[str, list[Missed]]) -> "Figure":
    figure, axes = subplots(size=(6.4, 4.6))
    ax = axes[0, 0]
    colour = dict(zip(WAYS, PALETTE, strict=False))  # as in the figure before
    for name, line in found.items():
        said = torch.cat([each.said.square().mean(0).sqrt().flatten() for each in line])
        off = torch.cat([each.off.square().mean(0).sqrt().flatten() for each in line])
        ax.scatter(said.numpy(), off.numpy(), s=7, color=colour[name], alpha=0.55, label=name, linewidths=0)
    reach = [float(each) for each in (max(ax.get_xlim()[0], 1e-4), ax.get_xlim()[1])]
    ax.plot(reach, reach, color=FAINT, linewidth=1, linestyle="--")
    ax.set(xscale="log", yscale="log", xlabel="standard error, as said", ylabel="standard error, in truth")
    ax.legend(markerscale=2.5)
    return figure


def coverage_rows(found: Mapping[str, list[Missed]]) -> list[dict[str, str | float]]:
    rows: list[dict[str, str | float]] = []
    for name, line in found.items():
        row: dict[str, str | float] = {"way": name}
        for budget, each in zip(BUDGETS, line, strict=True):
            within = float((each.off.abs() <= 1.96 * each.said).double().mean())
            row[f"{budget:,} asked"] = "" if each.off.isnan().any() else round(within, 3)
        rows.append(row)
    return rows
