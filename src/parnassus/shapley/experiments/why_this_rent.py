"""Why does this flat cost so much? A network's prediction, shared out among its features (book secs. 17.0, 17.3)."""

from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor, nn

from parnassus.data import Split
from parnassus.optim import Adam
from parnassus.report import curves
from parnassus.report.attributions import dependence, swarm, waterfall
from parnassus.shapley.attribution import Attribution, explain, explain_exactly
from parnassus.shapley.game import looked_up, members
from parnassus.shapley.masking import ConditionalGaussian, Interventional
from parnassus.shapley.model import as_model
from parnassus.shapley.orders import by_orders
from parnassus.train import Run, at_least, at_most, descend, reported

covers = ("B17.0-1", "B17.3-1", "B17.3-3", "B17.3-4", "B17.4-3")
expected = {
    "variance_explained": at_least(0.9, "share of the variance of unseen rents that the network predicts"),
    "not_additive": at_most(1e-3, "largest gap between a prediction and the sum of its parts, in euros"),
    "share_of_the_idle_feature": at_most(0.1, "mean part of a feature that does not matter, over that of the area"),
    "error_of_64": at_most(1.0, "root mean square error of parts from 64 of 256 coalitions, in euros"),
    "orders_of_64": reported("the same from random orders of arrival that ask as often"),
    "rooms_apart": reported("mean part of the rooms where what is unknown is drawn whatever is known, in euros"),
    "rooms_given": reported("the same where what is unknown is guessed from what is known"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"steps": 20, "rows": 200, "explained": 10, "others": 10, "repeats": 2},
    "gpu": {},
}

NAMES = ("area", "rooms", "storey", "lift", "age", "way to the centre", "balcony", "number of the house")
"""In m², -, -, yes or no, years, km, yes or no, -; the last one does not matter."""
BUDGETS = (32, 64, 128, 192)


class Rent(nn.Module):
    """A small network that predicts rents in euros; it standardises what it is given itself."""

    def __init__(self, mean: list[float], spread: list[float], width: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor(mean))
        self.register_buffer("spread", torch.tensor(spread))
        self.layers = nn.Sequential(
            nn.Linear(len(mean), width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1)
        )

    def forward(self, x: Float[Tensor, "rows features"]) -> Float[Tensor, "rows 1"]:
        predicted: Tensor = 900 + 300 * self.layers((x - self.get_buffer("mean")) / self.get_buffer("spread"))
        return predicted

    def loss(self, x: Float[Tensor, "rows features"], rent: Float[Tensor, " rows"]) -> Float[Tensor, ""]:
        """Mean squared error, in hundreds of euros."""
        wrong: Tensor = self(x)[:, 0] - rent
        return (wrong / 100).square().mean()


@dataclass(frozen=True)
class Experiment:
    rows: int = 2_000  # flats to learn from
    width: int = 32  # hidden units of both layers
    steps: int = 1_500  # gradient steps
    batch: int = 128  # flats a step
    lr: float = 5e-3  # Adam's learning rate
    others: int = 50  # flats of the background, which stand in for what is not known
    explained: int = 200  # unseen flats whose rent is explained
    repeats: int = 20  # estimates for each budget

    def model(self, mean: list[float], spread: list[float]) -> Rent:
        return Rent(mean, spread, self.width)

    def predict(self, model: Rent, x: Float[Tensor, "rows features"]) -> Float[Tensor, "rows 1"]:
        """Rents of flats as they stand in a table, for `parnassus explain`."""
        predicted: Tensor = model(x)
        return predicted

    def __call__(self, run: Run) -> dict[str, float]:
        flats_seen, rents = (part.to(run.device) for part in flats(self.rows, seed=2 * run.seed))
        unseen, unseen_rents = (part.to(run.device) for part in flats(500, seed=2 * run.seed + 1))
        facts = {"mean": flats_seen.mean(0).tolist(), "spread": flats_seen.std(0).tolist()}
        rent, optimizer = run.prepare(run.build(self.model, **facts), partial(Adam, lr=self.lr))
        for step, loss in descend(run, rent, optimizer, Split(flats_seen, rents).pairs(self.batch, self.steps)):
            run.log(step, loss=loss)
        model, background, x = as_model(rent), flats_seen[: self.others], unseen[: self.explained]
        apart = Interventional(model, background)
        parts = explain_exactly(apart, x)
        self.show(run, x, parts)
        errors = self.show_budgets(run, apart, x[:1])
        given = explain_exactly(ConditionalGaussian(model, flats_seen, draws=32), x[:10])
        wrong = model(unseen)[:, 0] - unseen_rents
        share = parts.importance[0]
        return {
            "variance_explained": float(1 - wrong.var() / unseen_rents.var()),
            "not_additive": float((parts.prediction - model(x)).abs().max()),
            "share_of_the_idle_feature": float(share[-1] / share[0]),
            "error_of_64": errors["Kernel SHAP"][BUDGETS.index(64)],
            "orders_of_64": errors["random orders"][BUDGETS.index(64)],
            "rooms_apart": float(parts.values[:10, 0, 1].abs().mean()),
            "rooms_given": float(given.values[:, 0, 1].abs().mean()),
        }

    def show(self, run: Run, x: Tensor, parts: Attribution) -> None:
        """The dearest flat, all flats, and how area and the way to the centre act together."""
        dearest = int(parts.prediction[:, 0].argmax())
        labels = [f"{name} = {value:.3g}" for name, value in zip(NAMES, x[dearest].tolist(), strict=True)]
        run.figure(
            "waterfall",
            waterfall(float(parts.base[dearest, 0]), parts.values[dearest, 0].cpu(), labels, x_label="rent in euros"),
            "From the mean rent of the background to what the network says of the dearest flat, a bar a feature. "
            "The bars are means over all orders in which the features could become known, so no order is preferred.",
        )
        run.figure(
            "swarm",
            swarm(parts.values[:, 0].cpu(), x.cpu(), NAMES, x_label="part of the rent, in euros"),
            "A dot is a flat; where it lies is what the feature adds to its rent, its colour how large the feature is. "
            "The number of the house was made up and has nothing to do with the rent.",
        )
        run.figure(
            "dependence",
            dependence(
                x[:, 0].cpu(),
                parts.values[:, 0, 0].cpu(),
                x[:, 5].cpu(),
                name="area in m²",
                other_name="way to the centre in km",
                y_label="its part of the rent, in euros",
            ),
            "The larger a flat the dearer; near the centre a square metre costs more, so the colours part.",
        )

    def show_budgets(self, run: Run, value: Interventional, x: Tensor) -> dict[str, list[float]]:
        """Errors of parts from few coalitions, by regression and by orders that ask as often."""
        worth = looked_up(value(x, members(value.players))[0, 0])
        exact = explain_exactly(value, x).values[0, 0]
        errors: dict[str, list[float]] = {"Kernel SHAP": [], "random orders": []}
        for budget in BUDGETS:
            found = {
                "Kernel SHAP": [explain(value, x, budget).values[0, 0] for _ in range(self.repeats)],
                "random orders": [
                    by_orders(worth, value.players, budget, mirrored=True).values for _ in range(self.repeats)
                ],
            }
            for name, each in found.items():
                errors[name].append(float((torch.stack(each) - exact).square().mean().sqrt()))
        run.figure(
            "budgets",
            curves(
                {name: (BUDGETS, each) for name, each in errors.items()},
                x_label="coalitions asked, of 256",
                y_label="error of a part, in euros",
                log_x=True,
                log_y=True,
            ),
            "How far parts from few coalitions are from exact ones: a weighted regression over coalitions and their "
            "complements learns more from as many questions than orders of arrival do.",
        )
        return errors


def flats(count: int, *, seed: int) -> tuple[Float[Tensor, "count features"], Float[Tensor, " count"]]:
    """Made-up flats and rents: rooms follow the area, storeys without a lift cost, the way takes from every metre."""
    source = torch.Generator().manual_seed(seed)
    area = 25 + 95 * torch.rand(count, generator=source)
    rooms = (area / 25 + 0.5 * torch.randn(count, generator=source)).round().clamp(1, 6)
    storey, age = (torch.randint(0, most, (count,), generator=source).float() for most in (7, 90))
    lift, balcony = (torch.rand(2, count, generator=source) < 0.4).float()
    way = 12 * torch.rand(count, generator=source) ** 1.5
    house = torch.randint(1, 120, (count,), generator=source).float()
    rent = 180 + area * (12 - 0.5 * way) + 25 * rooms - 22 * storey * (1 - lift) - 1.5 * age + 60 * balcony
    rent = rent + 25 * torch.randn(count, generator=source)
    return torch.stack([area, rooms, storey, lift, age, way, balcony, house], 1), rent
