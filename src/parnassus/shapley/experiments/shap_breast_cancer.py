"""Kernel SHAP of a network for breast cancer, or for any table, with thirty features (book sec. 17.4)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from parnassus.data import DataError, Dataset, TableSettings, check_target
from parnassus.layers import Standardiser, mlp
from parnassus.losses import cross_entropy, softmax
from parnassus.optim import Adam
from parnassus.setting_types import TableData
from parnassus.shapley.attributions.attribution import Attribution, explain
from parnassus.shapley.attributions.interventional import InterventionalValue
from parnassus.shapley.commands.evaluate_rows import EvaluateRows as Evaluate  # noqa: F401 - declares `parnassus evaluate`
from parnassus.shapley.commands.predict_rows import PredictRows as Predict  # noqa: F401 - declares `parnassus predict`
from parnassus.shapley.figures.beeswarm import plot_beeswarm, plot_dependence
from parnassus.shapley.figures.waterfall import plot_waterfall
from parnassus.train import NonNegative, Positive, Run, at_least, at_most, descend, no_band

covers = ("B17.0-1", "B17.3-1", "B17.4-1", "B17.4-3")
expected = {
    "test_score": at_least(0.93, "accuracy on test rows; for a numerical target the fraction of variance explained"),
    "max_gap": at_most(1e-6, "maximum difference between a prediction and the sum of its SHAP values"),
    "standard_error": at_most(0.02, "ratio of the largest standard error to the largest SHAP value"),
    "loss_without_top_five": at_least(0.35, "fraction of |f(x) − base value| lost without the five largest features"),
    "loss_without_random_five": no_band("fraction of |f(x) − base value| lost without five random features"),
    "features_for_90_percent": no_band("number of features with 90 % of the total importance"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"steps": 20, "num_explained": 8, "background_size": 10, "max_evals": 100},
    "gpu": {},
}


class TableNetwork(nn.Module):
    """A network for rows of a table, which it standardises with the statistics of the training data.

    Its outputs are the logits of classes, or a quantity in its own unit, offset + scale · network.
    """

    def __init__(
        self, network: nn.Module, mean: Tensor, std: Tensor, *, offset: float = 0.0, scale: float = 1.0
    ) -> None:
        super().__init__()
        self.network, self.offset, self.scale = network, offset, scale
        self.register_buffer("mean", mean)
        self.register_buffer("std", std)

    def forward(self, x: Float[Tensor, "rows features"]) -> Float[Tensor, "rows outputs"]:
        outputs: Tensor = self.network((x - self.get_buffer("mean")) / self.get_buffer("std"))
        return self.offset + self.scale * outputs

    def loss(self, x: Float[Tensor, "rows features"], y: Tensor) -> Float[Tensor, ""]:
        """Cross-entropy if y are classes, else the squared error in units of `scale`."""
        if not y.is_floating_point():
            return cross_entropy(self(x), y).mean()
        residuals: Tensor = (self(x) - y) / self.scale
        return residuals.square().mean()


@dataclass(frozen=True)
class Experiment(TableSettings):
    data: TableData = "breast_cancer"  # table: name of a data set, or path of a .csv file
    width: Positive[int] = 64  # hidden units of both layers
    steps: Positive[int] = 600  # gradient steps
    batch_size: Positive[int] = 64  # rows per gradient step
    learning_rate: Positive[float] = 2e-3  # Adam's learning rate
    weight_decay: NonNegative[float] = 0.1  # decoupled weight decay
    background_size: Positive[int] = 100  # background rows
    num_explained: Positive[int] = 100  # test rows that are explained
    max_evals: Positive[int] = 500  # coalitions evaluated per row
    output: NonNegative[int] = 0  # index of the explained class, from 0

    def model(
        self,
        mean: Sequence[float],
        std: Sequence[float],
        columns: Sequence[str],
        classes: Sequence[str],
        scaling: Sequence[float],
    ) -> TableNetwork:
        network = mlp((len(columns), self.width, self.width, max(1, len(classes))))
        offset, scale = scaling
        return TableNetwork(network, torch.tensor(mean), torch.tensor(std), offset=offset, scale=scale)

    def predict(self, model: TableNetwork, x: Float[Tensor, "rows features"]) -> Float[Tensor, "rows outputs"]:
        """Probabilities of classes, or the quantity, for rows of the table."""
        outputs: Tensor = model(x)
        return softmax(outputs) if outputs.shape[1] > 1 else outputs

    def __call__(self, run: Run) -> dict[str, float]:
        data = check_table(self.load_data(), self.output).to(run.device)
        network = self.train(run, data)

        @torch.no_grad()
        def model(rows: Float[Tensor, "rows features"]) -> Float[Tensor, "rows 1"]:
            return self.predict(network, rows)[:, self.output, None]

        chosen = torch.randperm(len(data.train))[: self.background_size]  # the file may be sorted by class
        value, x = InterventionalValue(model, data.train.x[chosen]), data.test.x[: self.num_explained]
        found = explain(value, x, self.max_evals)
        plot_attributions(run, x, found, data, data.classes[self.output] if data.classes else data.target)
        sizes, importance = found.values[:, 0].abs(), found.importance[0]
        cumulative = importance.sort(descending=True).values.cumsum(0) / importance.sum()
        return {
            "test_score": self.score(network, data),
            "max_gap": float((found.prediction - model(x)).abs().max()),
            "standard_error": float(found.errors.max() / sizes.max()),
            "loss_without_top_five": loss_without(value, x, found, sizes.argsort(1, descending=True)[:, :5]),
            "loss_without_random_five": loss_without(value, x, found, torch.rand_like(sizes).argsort(1)[:, :5]),
            "features_for_90_percent": float((cumulative < 0.9).sum() + 1),
        }

    @torch.no_grad()
    def score(self, network: TableNetwork, data: Dataset) -> float:
        """Accuracy on the test rows, or the fraction of variance explained."""
        predicted, y = self.predict(network, data.test.x), data.test.y
        assert y is not None
        if data.classes:
            return float((predicted.argmax(1) == y).double().mean())
        return float(1 - (predicted - y).square().mean() / y.var(correction=0))

    def train(self, run: Run, data: Dataset) -> TableNetwork:
        """A trained network, built with the columns and classes of its table for `parnassus explain`."""
        if data.table is not None:
            run.store("table", data.table.to_plain())
        y, standardiser = data.train.y, Standardiser.fit(data.train.x)
        assert y is not None
        network = run.build(
            self.model,
            mean=standardiser.mean.tolist(),
            std=standardiser.std.tolist(),
            columns=data.columns,
            classes=data.classes,
            scaling=(0.0, 1.0) if data.classes else (float(y.mean()), float(y.std())),
        )
        network, optimizer = run.prepare(network, partial(Adam, lr=self.learning_rate, weight_decay=self.weight_decay))
        for step, loss in descend(run, network, optimizer, data.train.pairs(self.batch_size, self.steps)):
            run.log(step, loss=loss)
        return network.eval()


def check_table(data: Dataset, output: int) -> Dataset:
    """The table with names for all columns; raises a DataError unless it has a target, of at least two classes."""
    name = data.name
    if len(data.shape) != 1 or data.train.y is None or not len(data.test):
        raise DataError(f"{name} must be a table with a column to predict; its examples have shape {data.shape}.")
    if not data.classes and data.train.y.shape[1:] != (1,):
        raise DataError(f"{name} must have one column to predict; it has {data.train.y.shape[1]}.")
    check_target(data)
    if not 0 <= output < max(1, len(data.classes)):
        raise DataError(f"output must be from 0 to {max(1, len(data.classes)) - 1}; got {output}.")
    columns = data.columns or tuple(f"column {index}" for index in range(1, data.shape[0] + 1))
    return replace(data, columns=columns, target=data.target or "target")


def loss_without(value: InterventionalValue, x: Tensor, found: Attribution, hidden: Int[Tensor, "rows some"]) -> float:
    """The fraction of |f(x) − base value| that is lost when these features are unknown, a ratio of means over rows."""
    known = torch.ones(len(x), value.players, dtype=torch.bool, device=x.device).scatter_(1, hidden, 0)
    masked = torch.cat([value(row[None], mask[None])[:, 0] for row, mask in zip(x, known, strict=True)])[:, 0]
    change = found.prediction[:, 0] - found.base_values[:, 0]
    return float(((found.prediction[:, 0] - masked) * change.sign()).mean() / change.abs().mean())


def plot_attributions(run: Run, x: Tensor, found: Attribution, data: Dataset, target: str) -> None:
    """Waterfall of one row, beeswarm of all rows, dependence plot of the most important feature."""
    prediction, values = found.prediction[:, 0], found.values[:, 0].cpu()
    row = int((prediction - 0.5).abs().argmin() if data.classes else prediction.argmax())
    label = f"probability of {target}" if data.classes else target
    labels = [f"{name} = {number:.3g}" for name, number in zip(data.columns, x[row].tolist(), strict=True)]
    run.figure(
        "waterfall",
        plot_waterfall(
            float(found.base_values[row, 0]), values[row], labels, errors=found.errors[row, 0].cpu(), x_label=label
        ),
        f"From the mean over the background to the prediction for test row {row + 1}, "
        + ("the least certain one" if data.classes else "the largest one")
        + f"; error bars are standard errors, from {found.evaluations:,} of 2^{values.shape[1]} coalitions.",
    )
    run.figure(
        "beeswarm",
        plot_beeswarm(values, x.cpu(), data.columns, x_label=f"SHAP value ({label})"),
        f"One dot per test row ({len(x)}) at the SHAP value of the feature, coloured by the feature's value.",
    )
    first, second = (*found.importance[0].argsort(descending=True).tolist(), 0)[:2]
    run.figure(
        "dependence",
        plot_dependence(
            x[:, first].cpu(),
            values[:, first],
            x[:, second].cpu(),
            name=data.columns[first],
            colour_name=data.columns[second],
            y_label=f"SHAP value ({label})",
        ),
        "SHAP value of the most important feature against its value, coloured by the second feature.",
    )
    run.note(
        "other rows",
        "The network standardises its inputs, so it accepts rows of any table with these columns: "
        "parnassus explain --model RUN --data my.csv --row 17",
    )
