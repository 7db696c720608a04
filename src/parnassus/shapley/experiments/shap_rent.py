"""SHAP values of a network that predicts rents, interventional and conditional (book secs. 17.0, 17.3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor, nn

from parnassus.data import Split
from parnassus.optim import Adam
from parnassus.report import curves
from parnassus.shapley.attributions.attribution import Attribution, explain, explain_exactly
from parnassus.shapley.attributions.conditional_gaussian import ConditionalGaussianValue
from parnassus.shapley.attributions.interventional import InterventionalValue
from parnassus.shapley.attributions.model_adapters import as_model
from parnassus.shapley.commands.predict_rows import PredictRows as Predict  # noqa: F401 - declares `parnassus predict`
from parnassus.shapley.commands.programs import row_programs
from parnassus.shapley.estimators.permutation_sampling import permutation_sampling
from parnassus.shapley.figures.beeswarm import plot_beeswarm, plot_dependence
from parnassus.shapley.figures.waterfall import plot_waterfall
from parnassus.shapley.games.cooperative_games import all_coalitions, characteristic_function
from parnassus.train import Positive, Run, at_least, at_most, descend, no_band

covers = ("B17.0-1", "B17.3-1", "B17.3-3", "B17.3-4", "B17.4-3")
expected = {
    "variance_explained": at_least(0.9, "fraction of the variance of unseen rents explained by the network"),
    "max_gap": at_most(1e-3, "maximum difference between a prediction and the sum of its SHAP values, in euros"),
    "irrelevant_feature_importance": at_most(
        0.1, "ratio of the importance of a feature without effect to that of the area"
    ),
    "kernel_shap_error": at_most(1.0, "root mean square error of Kernel SHAP from 64 of 256 coalitions, in euros"),
    "permutation_error": no_band(
        "root mean square error of antithetic permutation sampling with the same budget, in euros"
    ),
    "rooms_interventional": no_band("mean absolute interventional SHAP value of the rooms, in euros"),
    "rooms_conditional": no_band("mean absolute conditional SHAP value of the rooms, in euros"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"steps": 20, "num_examples": 200, "num_explained": 10, "background_size": 10, "num_repeats": 2},
    "gpu": {},
}

NAMES = ("area", "rooms", "storey", "lift", "age", "distance to the centre", "balcony", "house number")
"""Units: m², -, -, yes or no, years, km, yes or no, -; the last feature has no effect."""
BUDGETS = (32, 64, 128, 192)


class RentRegressor(nn.Module):
    """A small network that predicts rents in euros, and standardises its inputs."""

    def __init__(self, features: int, mean: Sequence[float], std: Sequence[float], *, width: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor(mean))
        self.register_buffer("std", torch.tensor(std))
        self.layers = nn.Sequential(
            nn.Linear(features, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1)
        )

    def forward(self, x: Float[Tensor, "rows features"]) -> Float[Tensor, "rows 1"]:
        predicted: Tensor = 900 + 300 * self.layers((x - self.get_buffer("mean")) / self.get_buffer("std"))
        return predicted

    def loss(self, x: Float[Tensor, "rows features"], rent: Float[Tensor, " rows"]) -> Float[Tensor, ""]:
        """Mean squared error, in hundreds of euros."""
        residuals: Tensor = self(x)[:, 0] - rent
        return (residuals / 100).square().mean()


@dataclass(frozen=True)
class Experiment:
    num_examples: Positive[int] = 2_000  # training flats
    width: Positive[int] = 32  # hidden units of both layers
    steps: Positive[int] = 1_500  # gradient steps
    batch_size: Positive[int] = 128  # flats per gradient step
    learning_rate: Positive[float] = 5e-3  # Adam's learning rate
    background_size: Positive[int] = 50  # background flats
    num_explained: Positive[int] = 200  # test flats that are explained
    num_repeats: Positive[int] = 20  # estimates for each budget

    def model(self, columns: Sequence[str], mean: Sequence[float], std: Sequence[float]) -> RentRegressor:
        return RentRegressor(len(columns), mean, std, width=self.width)

    def predict(self, model: RentRegressor, x: Float[Tensor, "rows features"]) -> Float[Tensor, "rows 1"]:
        """Rents of the flats in a table, for `parnassus predict` and `parnassus explain`."""
        predicted: Tensor = model(x)
        return predicted

    def __call__(self, run: Run) -> dict[str, float]:
        train, rents = (part.to(run.device) for part in sample_flats(self.num_examples, seed=2 * run.seed))
        test, test_rents = (part.to(run.device) for part in sample_flats(500, seed=2 * run.seed + 1))
        facts = {"columns": NAMES, "mean": train.mean(0).tolist(), "std": train.std(0).tolist()}
        rent, optimizer = run.prepare(run.build(self.model, **facts), partial(Adam, lr=self.learning_rate))
        for step, loss in descend(run, rent, optimizer, Split(train, rents).pairs(self.batch_size, self.steps)):
            run.log(step, loss=loss)
        model, background, x = as_model(rent), train[: self.background_size], test[: self.num_explained]
        value = InterventionalValue(model, background)
        found = explain_exactly(value, x)
        self.plot_attributions(run, x, found)
        errors = self.compare_estimators(run, value, x[:1])
        conditional = explain_exactly(ConditionalGaussianValue(model, train, num_draws=32), x[:10])
        residuals = model(test)[:, 0] - test_rents
        importance = found.importance[0]
        return {
            "variance_explained": float(1 - residuals.var() / test_rents.var()),
            "max_gap": float((found.prediction - model(x)).abs().max()),
            "irrelevant_feature_importance": float(importance[-1] / importance[0]),
            "kernel_shap_error": errors["Kernel SHAP"][BUDGETS.index(64)],
            "permutation_error": errors["antithetic permutations"][BUDGETS.index(64)],
            "rooms_interventional": float(found.values[:10, 0, 1].abs().mean()),
            "rooms_conditional": float(conditional.values[:, 0, 1].abs().mean()),
        }

    def plot_attributions(self, run: Run, x: Tensor, found: Attribution) -> None:
        """Waterfall of the most expensive flat, beeswarm of all, interaction of area and distance."""
        highest = int(found.prediction[:, 0].argmax())
        labels = [f"{name} = {value:.3g}" for name, value in zip(NAMES, x[highest].tolist(), strict=True)]
        run.figure(
            "waterfall",
            plot_waterfall(
                float(found.base_values[highest, 0]), found.values[highest, 0].cpu(), labels, x_label="rent in euros"
            ),
            "From the mean prediction of the background to the prediction for the most expensive flat, one bar per "
            "feature: its mean marginal contribution over all orders in which the features become known.",
        )
        run.figure(
            "beeswarm",
            plot_beeswarm(found.values[:, 0].cpu(), x.cpu(), NAMES, x_label="SHAP value in euros"),
            "One dot per test flat at the SHAP value of the feature, coloured by the feature's value. The house "
            "number is random and has no effect on the rent.",
        )
        run.figure(
            "dependence",
            plot_dependence(
                x[:, 0].cpu(),
                found.values[:, 0, 0].cpu(),
                x[:, 5].cpu(),
                name="area in m²",
                colour_name="distance to the centre in km",
                y_label="SHAP value of the area in euros",
            ),
            "The SHAP value rises with the area; the slope is larger near the centre, which separates the colours.",
        )

    def compare_estimators(self, run: Run, value: InterventionalValue, x: Tensor) -> dict[str, list[float]]:
        """Errors of Kernel SHAP and antithetic permutation sampling at equal budgets."""
        worth = characteristic_function(value(x, all_coalitions(value.players))[0, 0])
        exact = explain_exactly(value, x).values[0, 0]
        errors: dict[str, list[float]] = {"Kernel SHAP": [], "antithetic permutations": []}
        for budget in BUDGETS:
            found = {
                "Kernel SHAP": [explain(value, x, budget).values[0, 0] for _ in range(self.num_repeats)],
                "antithetic permutations": [
                    permutation_sampling(worth, value.players, budget, antithetic=True).values
                    for _ in range(self.num_repeats)
                ],
            }
            for name, each in found.items():
                errors[name].append(float((torch.stack(each) - exact).square().mean().sqrt()))
        run.figure(
            "budgets",
            curves(
                {name: (BUDGETS, each) for name, each in errors.items()},
                x_label="coalitions evaluated, of 256",
                y_label="root mean square error in euros",
                log_x=True,
                log_y=True,
            ),
            "Errors of SHAP values estimated from a budget of coalitions: Kernel SHAP, a weighted regression on "
            "coalitions and their complements, has smaller errors than permutation sampling with the same budget.",
        )
        return errors


def sample_flats(count: int, *, seed: int) -> tuple[Float[Tensor, "count features"], Float[Tensor, " count"]]:
    """Synthetic flats: rooms depend on area, storeys matter without a lift, distance lowers the rent per m²."""
    generator = torch.Generator().manual_seed(seed)
    area = 25 + 95 * torch.rand(count, generator=generator)
    rooms = (area / 25 + 0.5 * torch.randn(count, generator=generator)).round().clamp(1, 6)
    storey, age = (torch.randint(0, high, (count,), generator=generator).float() for high in (7, 90))
    lift, balcony = (torch.rand(2, count, generator=generator) < 0.4).float()
    distance = 12 * torch.rand(count, generator=generator) ** 1.5
    house = torch.randint(1, 120, (count,), generator=generator).float()
    rent = 180 + area * (12 - 0.5 * distance) + 25 * rooms - 22 * storey * (1 - lift) - 1.5 * age + 60 * balcony
    rent = rent + 25 * torch.randn(count, generator=generator)
    return torch.stack([area, rooms, storey, lift, age, distance, balcony, house], 1), rent


PROGRAMS = {RentRegressor: row_programs}  # what `parnassus export` writes
