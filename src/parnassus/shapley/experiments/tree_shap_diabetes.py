"""Tree SHAP of a random forest for diabetes: exact values in closed form, in less time (book secs. 17.0, 17.3)."""

import time
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from sklearn.ensemble import RandomForestRegressor
from torch import Tensor

from parnassus.data import diabetes
from parnassus.report import curves
from parnassus.report.style import PALETTE, subplots
from parnassus.shapley.attributions.attribution import Attribution, explain_exactly
from parnassus.shapley.attributions.interventional import InterventionalValue
from parnassus.shapley.attributions.model_adapters import as_model
from parnassus.shapley.closed_forms.tree_shap import path_dependent_tree_shap, tree_shap
from parnassus.shapley.figures.beeswarm import plot_beeswarm, plot_dependence
from parnassus.shapley.figures.waterfall import plot_waterfall
from parnassus.train import Positive, Run, at_least, at_most, no_band

covers = ("B17.0-1", "B17.3-1", "B17.3-3", "B17.3-4")
expected = {
    "variance_explained": at_least(0.3, "fraction of the variance of test patients explained by the forest"),
    "max_gap": at_most(1e-9, "maximum difference between a prediction and the sum of its SHAP values"),
    "gap_to_enumeration": at_most(1e-9, "maximum difference between Tree SHAP and enumeration of all coalitions"),
    "random_feature_shap": at_most(
        0.05, "fraction of the total importance assigned to a random feature, by SHAP values"
    ),
    "random_feature_impurity": no_band(
        "fraction of the total importance assigned to a random feature, by decrease of impurity"
    ),
    "path_dependent_gap": no_band("mean relative difference between path-dependent and interventional values"),
    "speedup": no_band("ratio of the times of enumeration and Tree SHAP, with the largest number of features timed"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"n_estimators": 5, "background_size": 10, "max_timed_features": 5},
    "gpu": {},
}

NAMES = (
    "age",
    "sex",
    "body mass index",
    "blood pressure",
    "cholesterol",
    "LDL",
    "HDL",
    "cholesterol / HDL",
    "triglycerides, log",
    "sugar",
    "random feature",
)
UNIT = "progression of the disease after a year"


class Patients(NamedTuple):
    """Measurements, and the progression of the disease."""

    x: Float[Tensor, "rows features"]
    y: Float[Tensor, " rows"]


@dataclass(frozen=True)
class Experiment:
    n_estimators: Positive[int] = 100  # trees of the forest
    background_size: Positive[int] = 100  # background patients
    max_timed_features: Positive[int] = 11  # maximum number of features in the comparison with enumeration

    def __call__(self, run: Run) -> dict[str, float]:
        train, test = load_patients(run.seed)
        forest = RandomForestRegressor(self.n_estimators, max_features=1 / 3, random_state=run.seed).fit(
            train.x, train.y
        )
        found = tree_shap(forest, test.x, train.x[: self.background_size])
        self.plot_attributions(run, test.x, found)
        by_shap, by_impurity = plot_importances(run, found, torch.tensor(forest.feature_importances_))
        path_dependent = path_dependent_tree_shap(forest, test.x)
        gap, speedup = self.time_methods(run, train, test)
        predicted = as_model(forest)(test.x.double())
        return {
            "variance_explained": float(1 - (predicted[:, 0] - test.y).var() / test.y.var()),
            "max_gap": float((found.prediction - predicted).abs().max()),
            "gap_to_enumeration": gap,
            "random_feature_shap": float(by_shap[-1]),
            "random_feature_impurity": float(by_impurity[-1]),
            "path_dependent_gap": float(
                (path_dependent.values - found.values).abs().mean() / found.values.abs().mean()
            ),
            "speedup": speedup,
        }

    def plot_attributions(self, run: Run, x: Tensor, found: Attribution) -> None:
        """Waterfall of the highest prediction, beeswarm of all patients, interaction of two features."""
        highest = int(found.prediction[:, 0].argmax())
        labels = [f"{name} = {value:.3g}" for name, value in zip(NAMES, x[highest].tolist(), strict=True)]
        run.figure(
            "waterfall",
            plot_waterfall(float(found.base_values[highest, 0]), found.values[highest, 0], labels, x_label=UNIT),
            "From the mean prediction of the background to the highest prediction. The values are exact: no coalition "
            "was sampled or evaluated.",
        )
        run.figure(
            "beeswarm",
            plot_beeswarm(found.values[:, 0], x, NAMES, x_label=f"SHAP value ({UNIT})"),
            "One dot per test patient at the SHAP value of the feature, coloured by the feature's value. The random "
            "feature has non-zero values, since the forest has overfitted to it.",
        )
        run.figure(
            "dependence",
            plot_dependence(
                x[:, 2],
                found.values[:, 0, 2],
                x[:, 8],
                name=NAMES[2],
                colour_name=NAMES[8],
                y_label="SHAP value",
            ),
            "SHAP value of the body mass index against the index: a step function for each tree, whose mean rises "
            "where many trees have a threshold.",
        )

    def time_methods(self, run: Run, train: Patients, test: Patients) -> tuple[float, float]:
        """Times of Tree SHAP and enumeration by number of features; returns maximum difference and last time ratio."""
        counts = range(3, self.max_timed_features + 1)
        times: dict[str, list[float]] = {"Tree SHAP": [], "enumeration": []}
        gap = 0.0
        for features in counts:
            x, background = test.x[:10, :features].double(), train.x[:50, :features].double()
            forest = RandomForestRegressor(20, random_state=run.seed).fit(train.x[:, :features], train.y)
            value = InterventionalValue(as_model(forest), background)
            start = time.perf_counter()
            closed_form = tree_shap(forest, x, background)
            middle = time.perf_counter()
            enumerated = explain_exactly(value, x)
            times["Tree SHAP"].append(middle - start)
            times["enumeration"].append(time.perf_counter() - middle)
            gap = max(gap, float((closed_form.values - enumerated.values).abs().max()))
        run.figure(
            "times",
            curves(
                {name: (list(counts), each) for name, each in times.items()},
                x_label="features",
                y_label="seconds for ten patients",
                log_y=True,
            ),
            "Enumeration of all coalitions doubles in time with each feature; the time of Tree SHAP depends on the "
            "leaves. Both give the same values. A forest of 20 trees, a background of 50 patients.",
        )
        return gap, times["enumeration"][-1] / times["Tree SHAP"][-1]


def plot_importances(
    run: Run, found: Attribution, by_impurity: Float[Tensor, " features"]
) -> tuple[Float[Tensor, " features"], Float[Tensor, " features"]]:
    """Both normalised importances side by side, the largest on top."""
    by_shap = found.importance[0] / found.importance[0].sum()
    order = by_shap.argsort()
    positions = range(len(order))
    figure, axes = subplots(size=(7.2, 4.4))
    ax = axes[0, 0]
    for shift, (name, importance) in zip(
        (0.2, -0.2), {"SHAP values": by_shap, "impurity": by_impurity}.items(), strict=True
    ):
        colour = PALETTE[0] if shift > 0 else PALETTE[1]
        ax.barh([row + shift for row in positions], importance[order].tolist(), height=0.38, label=name, color=colour)
    ax.set_yticks(positions, [NAMES[index] for index in order])
    ax.set_xlabel("fraction of the total importance")
    ax.grid(visible=False, axis="y")
    ax.legend(loc="lower right")
    run.figure(
        "importances",
        figure,
        "Mean absolute SHAP values of test patients, and scikit-learn's importances, the decrease of impurity in "
        "training. Deep trees also split on the random feature; impurity includes every such split, so its importance "
        "is larger.",
    )
    return by_shap, by_impurity


def load_patients(seed: int) -> tuple[Patients, Patients]:
    """Training and test patients, with a random feature in the last column."""
    table, generator = diabetes(scaled=False), torch.Generator().manual_seed(seed)
    both = []
    for split in (table.train, table.test):
        assert split.y is not None
        noise = torch.rand(len(split.x), 1, generator=generator)
        both.append(Patients(torch.cat([split.x, noise], 1), split.y[:, 0]))
    return both[0], both[1]
