"""Errors of seven estimators of Shapley values against their budget, and their coverage (book sec. 17.4)."""

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
from parnassus.shapley.attributions.interventional import InterventionalValue
from parnassus.shapley.attributions.model_adapters import as_model
from parnassus.shapley.estimators.estimate import Estimator, ShapleyEstimate, empty_and_grand_worth, equal_split
from parnassus.shapley.estimators.kernel_shap import kernel_shap
from parnassus.shapley.estimators.permutation_sampling import balanced_permutation_sampling, permutation_sampling
from parnassus.shapley.estimators.stopping import CachedGame, estimate_to_tolerance, max_standard_error
from parnassus.shapley.estimators.stratified_sampling import stratified_sampling
from parnassus.shapley.games.cooperative_games import CharacteristicFunction, all_coalitions, characteristic_function
from parnassus.shapley.games.shapley_values import shapley_values
from parnassus.train import Positive, Run, at_least, at_most, between, no_band

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B17.2-2", "B17.4-1", "B17.4-3")
expected = {
    "variance_explained": no_band("fraction of the variance of test targets explained by the network"),
    "kernel_shap_rmse": no_band("root mean square error of a value by Kernel SHAP from 528 coalitions"),
    "permutation_rmse": no_band("root mean square error of a value by permutation sampling from 528 coalitions"),
    "kernel_shap_ratio": at_most(0.3, "ratio of the errors of Kernel SHAP and permutation sampling"),
    "weighted_sampling_ratio": at_least(
        4.0, "ratio of the errors of coalitions sampled by the book's weights and Kernel SHAP"
    ),
    "antithetic_ratio": at_most(0.5, "ratio of the errors of antithetic permutations and permutation sampling"),
    "balanced_ratio": at_most(0.8, "ratio of the errors of balanced permutations and permutation sampling"),
    "stratified_ratio": at_most(0.8, "ratio of the errors of stratified sampling and permutation sampling"),
    "convergence_exponent": between(-0.6, -0.4, "exponent of the budget in the error of permutation sampling"),
    "coverage": between(0.93, 0.97, "coverage of ±1.96 standard errors, over all estimators and budgets"),
    "min_coverage": at_least(0.85, "minimum coverage over estimators and budgets: three antithetic pairs"),
    "error_tolerance_ratio": at_most(1.0, "ratio of the actual error to the tolerance of the stopping rule"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"steps": 30, "num_examples": 200, "num_explained": 2, "background_size": 5, "num_repeats": 4},
    "gpu": {},
}

FEATURES = 12
BUDGETS = (66, 132, 264, 528, 1_056, 2_112)
SHOWN = BUDGETS.index(528)
TOLERANCES = (0.2, 0.1, 0.05, 0.025)
"""Standard errors at which sampling stops, relative to the standard deviation of the values."""


class Deviations(NamedTuple):
    """Results of one estimator and budget: coalitions evaluated, errors, and reported standard errors."""

    evaluations: float
    deviation: Float[Tensor, "repeats rows features"]
    reported: Float[Tensor, "repeats rows features"]


@dataclass(frozen=True)
class Experiment:
    num_examples: Positive[int] = 2_000  # training examples
    width: Positive[int] = 32  # hidden units of both layers
    steps: Positive[int] = 1_500  # gradient steps
    batch_size: Positive[int] = 128  # examples per gradient step
    learning_rate: Positive[float] = 5e-3  # Adam's learning rate
    background_size: Positive[int] = 30  # background rows
    num_explained: Positive[int] = 6  # rows that are explained
    num_repeats: Positive[int] = 40  # estimates per estimator and budget

    def __call__(self, run: Run) -> dict[str, float]:
        train, (test, target) = (
            Split(*examples(self.num_examples, seed=2 * run.seed)),
            examples(500, seed=2 * run.seed + 1),
        )
        network = mlp((FEATURES, self.width, self.width, 1), activation=tanh)
        network, optimizer = run.prepare(network, partial(Adam, lr=self.learning_rate))
        for step, (x, y) in run.steps(train.to(run.device).pairs(self.batch_size, self.steps)):
            loss = mean_squared_error(network(x)[:, 0], y)
            run.update(optimizer, loss)
            run.log(step, loss=loss.detach())
        table = self.tabulate_games(network, train.x.to(run.device), test.to(run.device)).cpu()
        exact = shapley_values(table - table[..., :1])
        found = {
            name: [self.measure(estimator, table, exact, budget) for budget in BUDGETS]
            for name, estimator in ESTIMATORS.items()
        }
        errors = {name: [root_mean_square(each.deviation) for each in line] for name, line in found.items()}
        run.figure("errors", plot_errors(found), ERRORS)
        with_errors = {name: line for name, line in found.items() if name != WEIGHTED}
        run.figure("calibration", plot_calibration(with_errors), CALIBRATION)
        run.table("coverage", coverage_rows(with_errors), COVERAGE)
        stops = self.stopping_rows(table, exact)
        run.table("stopping", stops, STOPPING)
        ratio = {name: line[SHOWN] / errors["permutations"][SHOWN] for name, line in errors.items()}
        affordable = [each for line in with_errors.values() for each in line if not each.deviation.isnan().any()]
        covered = [(each.deviation.abs() <= 1.96 * each.reported).double() for each in affordable]
        with torch.no_grad():
            predicted = network(test.to(run.device))[:, 0].cpu()
        return {
            "variance_explained": 1 - float((predicted - target).square().mean() / target.var()),
            "kernel_shap_rmse": errors["Kernel SHAP"][SHOWN],
            "permutation_rmse": errors["permutations"][SHOWN],
            "kernel_shap_ratio": ratio["Kernel SHAP"],
            "weighted_sampling_ratio": ratio[WEIGHTED] / ratio["Kernel SHAP"],
            "antithetic_ratio": ratio["antithetic permutations"],
            "balanced_ratio": ratio["balanced permutations"],
            "stratified_ratio": ratio["stratified by size"],
            "convergence_exponent": convergence_exponent([float(each) for each in BUDGETS], errors["permutations"]),
            "coverage": float(torch.cat([each.flatten() for each in covered]).mean()),
            "min_coverage": min(float(each.mean()) for each in covered),
            "error_tolerance_ratio": max(float(row["actual error"]) / float(row["tolerance"]) for row in stops),
        }

    def tabulate_games(self, network: nn.Module, background: Tensor, x: Tensor) -> Float[Tensor, "rows coalitions"]:
        """Worths of all 4,096 coalitions, for each explained row."""
        value = InterventionalValue(as_model(network), background[: self.background_size])
        return value(x[: self.num_explained], all_coalitions(FEATURES))[:, 0]

    def measure(self, estimator: Estimator, table: Tensor, exact: Tensor, budget: int) -> Deviations:
        """Errors of repeated estimates; NaN if the estimator needs more than the budget."""
        evaluations, found = [], []
        for _ in range(self.num_repeats):
            game = CachedGame(characteristic_function(table))
            try:
                found.append(estimator(game, FEATURES, budget))
            except ValueError:  # too small for a standard error
                break
            evaluations.append(game.evaluations)
        if not found:
            return Deviations(float("nan"), exact[None] * float("nan"), exact[None] * float("nan"))
        values, reported = (torch.stack(part) for part in zip(*found, strict=True))
        return Deviations(sum(evaluations) / len(evaluations), values - exact, reported)

    def stopping_rows(self, table: Tensor, exact: Tensor) -> list[dict[str, str | float]]:
        """Balanced permutation sampling until the standard errors are below each tolerance."""
        rows: list[dict[str, str | float]] = []
        for fraction in TOLERANCES:
            tolerance = fraction * float(exact.std())
            game = CachedGame(characteristic_function(table))

            def estimate(budget: int, game: CharacteristicFunction = game) -> ShapleyEstimate:
                return balanced_permutation_sampling(game, FEATURES, budget, generator=torch.Generator().manual_seed(0))

            found = estimate_to_tolerance(
                estimate, tolerance, first_budget=2 * FEATURES * (FEATURES - 1), max_budget=30_000
            )
            rows.append(
                {
                    "tolerance": tolerance,
                    "largest standard error": max_standard_error(found),
                    "actual error": root_mean_square(found.values - exact),
                    "maximum error": float((found.values - exact).abs().max()),
                    "coalitions evaluated, of 4,096": game.evaluations,
                }
            )
        return rows


def weighted_sampling(
    worth: CharacteristicFunction, players: int, budget: int, *, generator: torch.Generator | None = None
) -> ShapleyEstimate:
    """Kernel SHAP as in the book: coalitions sampled by weight with replacement, then least squares."""
    ends = empty_and_grand_worth(worth, players)
    inverse = torch.arange(1, players) * torch.arange(players - 1, 0, -1)
    size = 1 + torch.multinomial(1 / inverse, budget, replacement=True, generator=generator)  # π(s) C(M, s)
    z = torch.rand(budget, players, generator=generator).argsort(-1).argsort(-1) < size[:, None]
    equal = equal_split(ends, players).values
    rest = worth(z) - ends[..., :1] - equal[..., :1] * size
    present = z.to(rest)
    centred = present - present.mean(1, keepdim=True)  # the sum of all is known
    deviation: Tensor = rest @ torch.linalg.pinv(centred.mT, rtol=1e-6)
    return ShapleyEstimate(equal + deviation, torch.full_like(deviation, float("nan")))


WEIGHTED = "sampled by weight"
ESTIMATORS: dict[str, Estimator] = {
    "permutations": permutation_sampling,
    "antithetic permutations": partial(permutation_sampling, antithetic=True),
    "balanced permutations": balanced_permutation_sampling,
    "balanced and antithetic": partial(balanced_permutation_sampling, antithetic=True),
    "stratified by size": stratified_sampling,
    WEIGHTED: weighted_sampling,
    "Kernel SHAP": kernel_shap,
}
ERRORS = (
    "Root mean square errors against the coalitions evaluated, for a network of 12 features; each coalition needs one "
    "model call per background row. Numbers are exponents. Permutation and stratified sampling converge like 1/√n, and "
    "slightly faster here, since repeated coalitions are cached. Kernel SHAP evaluates complementary pairs and none "
    "twice, so it becomes exact. Antithetic sampling removes errors from pairwise interactions, which dominate here."
)
CALIBRATION = (
    "One dot per value: its reported standard error and its actual error, root mean squares over all repetitions. On "
    "the line they agree; below it the reported error is too large, as for balanced permutations, and for all "
    "estimators at the smallest budgets on the right, where errors from two or three samples are adjusted by "
    "Student's t."
)
COVERAGE = (
    "Fraction of values within 1.96 standard errors of the exact value, nominally 0.95. Standard errors from few "
    "samples are adjusted by Student's t; empty cells are budgets too small for the estimator."
)
STOPPING = "Balanced permutation sampling in growing rounds, until all standard errors are below the tolerance."


def examples(count: int, *, seed: int) -> tuple[Float[Tensor, "count features"], Float[Tensor, " count"]]:
    """Friedman's function of five features, plus a product of three; four features have no effect (Friedman 1991)."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.rand(count, FEATURES, generator=generator)
    y = 2 * torch.sin(torch.pi * x[:, 0] * x[:, 1]) + 4 * (x[:, 2] - 0.5).square() + 2 * x[:, 3] + x[:, 4]
    y = y + 6 * x[:, 5] * x[:, 6] * x[:, 7] + 0.1 * torch.randn(count, generator=generator)
    return x, y


def root_mean_square(deviation: Tensor) -> float:
    return float(deviation.square().mean().sqrt())


def convergence_exponent(x: list[float], y: list[float]) -> float:
    """The exponent r of y ∝ xʳ over finite non-zero y."""
    known = [(budget, error) for budget, error in zip(x, y, strict=True) if 0 < error < inf]
    return exponent([budget for budget, _ in known], [error for _, error in known])


def plot_errors(found: Mapping[str, list[Deviations]]) -> "Figure":
    lines = {}
    for name, line in found.items():
        evaluations = [each.evaluations for each in line]
        errors = [root_mean_square(each.deviation) for each in line]
        label = f"{name}, {convergence_exponent(evaluations, errors):.2f}".replace("-", "−")
        lines[label] = (evaluations, errors)
    return curves(
        lines, x_label="coalitions evaluated, of 4,096", y_label="root mean square error", log_x=True, log_y=True
    )


def plot_calibration(found: Mapping[str, list[Deviations]]) -> "Figure":
    figure, axes = subplots(size=(6.4, 4.6))
    ax = axes[0, 0]
    colour = dict(zip(ESTIMATORS, PALETTE, strict=False))  # as in the previous figure
    for name, line in found.items():
        reported = torch.cat([each.reported.square().mean(0).sqrt().flatten() for each in line])
        actual = torch.cat([each.deviation.square().mean(0).sqrt().flatten() for each in line])
        ax.scatter(reported.numpy(), actual.numpy(), s=7, color=colour[name], alpha=0.55, label=name, linewidths=0)
    limits = [float(each) for each in (max(ax.get_xlim()[0], 1e-4), ax.get_xlim()[1])]
    ax.plot(limits, limits, color=FAINT, linewidth=1, linestyle="--")
    ax.set(xscale="log", yscale="log", xlabel="reported standard error", ylabel="actual error")
    ax.legend(markerscale=2.5)
    return figure


def coverage_rows(found: Mapping[str, list[Deviations]]) -> list[dict[str, str | float]]:
    rows: list[dict[str, str | float]] = []
    for name, line in found.items():
        row: dict[str, str | float] = {"estimator": name}
        for budget, each in zip(BUDGETS, line, strict=True):
            coverage = float((each.deviation.abs() <= 1.96 * each.reported).double().mean())
            row[f"budget {budget:,}"] = "" if each.deviation.isnan().any() else round(coverage, 3)
        rows.append(row)
    return rows
