"""A forest that foretells diabetes, explained leaf by leaf: exact, and at once (book secs. 17.0, 17.3)."""

import time
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from sklearn.ensemble import RandomForestRegressor
from torch import Tensor

from parnassus.data import diabetes
from parnassus.report import curves
from parnassus.report.attributions import dependence, swarm, waterfall
from parnassus.report.ink import PALETTE, subplots
from parnassus.shapley.attribution import Attribution, explain_exactly
from parnassus.shapley.masking import Interventional
from parnassus.shapley.model import as_model
from parnassus.shapley.trees import explain_trees, explain_trees_by_cover
from parnassus.train import Run, at_least, at_most, reported

covers = ("B17.0-1", "B17.3-1", "B17.3-3", "B17.3-4")
expected = {
    "variance_explained": at_least(0.3, "share of the variance of unseen patients that the forest foretells"),
    "not_additive": at_most(1e-9, "largest gap between a prediction and the sum of its parts"),
    "apart_from_enumeration": at_most(1e-9, "largest gap between a part and what all coalitions say"),
    "chance_by_shapley": at_most(0.05, "share of a column of random numbers in the importances, by Shapley values"),
    "chance_by_impurity": reported("the same by the drop of impurity in training"),
    "covers_apart": reported("mean gap between parts with covers and parts with a background, over the mean part"),
    "times_as_fast": reported("seconds of all coalitions by those of the closed form, with all features"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"trees": 5, "others": 10, "most_features": 5},
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
    "cholesterol by HDL",
    "triglycerides, log",
    "sugar",
    "random numbers",
)
UNIT = "progression of the disease after a year"


class Patients(NamedTuple):
    """Measurements, and how far the disease went."""

    x: Float[Tensor, "rows features"]
    y: Float[Tensor, " rows"]


@dataclass(frozen=True)
class Experiment:
    trees: int = 100  # trees of the forest
    others: int = 100  # patients of the background, who stand in for what is not known
    most_features: int = 11  # features in the race against enumeration, at most

    def __call__(self, run: Run) -> dict[str, float]:
        seen, new = patients(run.seed)
        forest = RandomForestRegressor(self.trees, max_features=1 / 3, random_state=run.seed).fit(seen.x, seen.y)
        parts = explain_trees(forest, new.x, seen.x[: self.others])
        self.show(run, new.x, parts)
        weight, impurity = show_importances(run, parts, torch.tensor(forest.feature_importances_))
        covered = explain_trees_by_cover(forest, new.x)
        apart, faster = self.race(run, seen, new)
        said = as_model(forest)(new.x.double())
        return {
            "variance_explained": float(1 - (said[:, 0] - new.y).var() / new.y.var()),
            "not_additive": float((parts.prediction - said).abs().max()),
            "apart_from_enumeration": apart,
            "chance_by_shapley": float(weight[-1]),
            "chance_by_impurity": float(impurity[-1]),
            "covers_apart": float((covered.values - parts.values).abs().mean() / parts.values.abs().mean()),
            "times_as_fast": faster,
        }

    def show(self, run: Run, x: Tensor, parts: Attribution) -> None:
        """The patient of whom the forest expects the worst, all patients, and two features that act together."""
        worst = int(parts.prediction[:, 0].argmax())
        labels = [f"{name} = {value:.3g}" for name, value in zip(NAMES, x[worst].tolist(), strict=True)]
        run.figure(
            "waterfall",
            waterfall(float(parts.base[worst, 0]), parts.values[worst, 0], labels, x_label=UNIT),
            "From the mean of the background to what the forest says of the patient for whom it expects the worst. "
            "The bars are exact: no coalition was sampled, and none asked.",
        )
        run.figure(
            "swarm",
            swarm(parts.values[:, 0], x, NAMES, x_label=f"part of the {UNIT}"),
            "A dot is a patient whom the forest has not seen; where it lies is what the feature adds, its colour how "
            "large the feature is. Random numbers get parts too: the forest did learn something from them.",
        )
        run.figure(
            "dependence",
            dependence(
                x[:, 2],
                parts.values[:, 0, 2],
                x[:, 8],
                name=NAMES[2],
                other_name=NAMES[8],
                y_label="its part",
            ),
            "What the body mass index adds, against the index. A tree has steps; their mean rises where many trees "
            "have a threshold.",
        )

    def race(self, run: Run, seen: Patients, new: Patients) -> tuple[float, float]:
        """Seconds of both ways for more and more features; how far apart they are, and the last ratio of seconds."""
        counts = range(3, self.most_features + 1)
        times: dict[str, list[float]] = {"leaf by leaf": [], "all coalitions": []}
        apart = 0.0
        for features in counts:
            x, background = new.x[:10, :features].double(), seen.x[:50, :features].double()
            forest = RandomForestRegressor(20, random_state=run.seed).fit(seen.x[:, :features], seen.y)
            value = Interventional(as_model(forest), background)
            began = time.perf_counter()
            found = explain_trees(forest, x, background)
            between = time.perf_counter()
            asked = explain_exactly(value, x)
            times["leaf by leaf"].append(between - began)
            times["all coalitions"].append(time.perf_counter() - between)
            apart = max(apart, float((found.values - asked.values).abs().max()))
        run.figure(
            "race",
            curves(
                {name: (list(counts), each) for name, each in times.items()},
                x_label="features",
                y_label="seconds for ten patients",
                log_y=True,
            ),
            "To ask about every coalition takes twice as long with each feature more; the closed form goes through the "
            "leaves, however many features there are. Both give the same numbers. A forest of 20 trees, and 50 others.",
        )
        return apart, times["all coalitions"][-1] / times["leaf by leaf"][-1]


def show_importances(
    run: Run, parts: Attribution, impurity: Float[Tensor, " features"]
) -> tuple[Float[Tensor, " features"], Float[Tensor, " features"]]:
    """Shares of both importances side by side, the weightiest on top."""
    weight = parts.importance[0] / parts.importance[0].sum()
    order = weight.argsort()
    places = range(len(order))
    figure, axes = subplots(size=(7.2, 4.4))
    ax = axes[0, 0]
    for shift, (name, share) in zip((0.2, -0.2), {"Shapley values": weight, "impurity": impurity}.items(), strict=True):
        colour = PALETTE[0] if shift > 0 else PALETTE[1]
        ax.barh([row + shift for row in places], share[order].tolist(), height=0.38, label=name, color=colour)
    ax.set_yticks(places, [NAMES[index] for index in order])
    ax.set_xlabel("share of the importance")
    ax.grid(visible=False, axis="y")
    ax.legend(loc="lower right")
    run.figure(
        "importances",
        figure,
        "Mean size of the parts of unseen patients beside the importances that scikit-learn prints, the drop of "
        "impurity in training. Deep trees split on random numbers too once little else is left: impurity counts every "
        "such split, and so pays more for them.",
    )
    return weight, impurity


def patients(seed: int) -> tuple[Patients, Patients]:
    """For training and for the test, with one column more: random numbers that have nothing to do with the disease."""
    table, source = diabetes(scaled=False), torch.Generator().manual_seed(seed)
    both = []
    for split in (table.train, table.test):
        assert split.y is not None
        chance = torch.rand(len(split.x), 1, generator=source)
        both.append(Patients(torch.cat([split.x, chance], 1), split.y[:, 0]))
    return both[0], both[1]
