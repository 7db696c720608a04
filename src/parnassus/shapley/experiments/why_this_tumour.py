"""Why malignant? A network's diagnosis, shared out among thirty measurements of cells (book sec. 17.4)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from parnassus.data import DataError, Dataset, open_data
from parnassus.layers import Standardiser, mlp
from parnassus.losses import cross_entropy, softmax
from parnassus.optim import Adam
from parnassus.report.attributions import dependence, swarm, waterfall
from parnassus.shapley.attribution import Attribution, explain
from parnassus.shapley.masking import Interventional
from parnassus.train import Run, at_least, at_most, descend, reported

covers = ("B17.0-1", "B17.3-1", "B17.4-1", "B17.4-3")
expected = {
    "test_score": at_least(0.93, "share of unseen rows named rightly; of quantities, share of the variance explained"),
    "not_additive": at_most(1e-6, "largest gap between a prediction and the sum of its parts"),
    "standard_error": at_most(0.02, "largest standard error of a part, over the largest part"),
    "lost_without_five": at_least(0.35, "share of what sets predictions apart that goes with the five largest parts"),
    "lost_without_any_five": reported("the same with five features by lot"),
    "features_of_nine_tenths": reported("features that make nine tenths of all parts, without signs"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"steps": 20, "explained": 8, "others": 10, "budget": 100},
    "gpu": {},
}


class TableNetwork(nn.Module):
    """A network that takes rows as they stand in a table: it standardises them itself, as in training.

    It gives the logits of classes, or a quantity in its own unit, offset + scale · network.
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
        """Cross-entropy where y are classes, else the squared error in units of `scale`."""
        if not y.is_floating_point():
            return cross_entropy(self(x), y).mean()
        wrong: Tensor = (self(x) - y) / self.scale
        return wrong.square().mean()


@dataclass(frozen=True)
class Experiment:
    data: str = "breast_cancer"  # or wine, iris, diabetes, or a .csv file of your own, whose last column is predicted
    width: int = 64  # hidden units of both layers
    steps: int = 600  # gradient steps
    batch: int = 64  # rows a step
    lr: float = 2e-3  # Adam's learning rate
    decay: float = 0.1  # weight decay
    others: int = 100  # rows of the background, which stand in for what is not known
    explained: int = 100  # unseen rows whose prediction is explained
    budget: int = 500  # coalitions asked about each
    output: int = 0  # which class is explained, by its number from 0

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
        """Probabilities of classes, or the quantity, for rows as they stand in the table."""
        outputs: Tensor = model(x)
        return softmax(outputs) if outputs.shape[1] > 1 else outputs

    def __call__(self, run: Run) -> dict[str, float]:
        data = opened(self.data, self.output).to(run.device)
        network = self.trained(run, data)

        @torch.no_grad()
        def model(rows: Float[Tensor, "rows features"]) -> Float[Tensor, "rows 1"]:
            return self.predict(network, rows)[:, self.output, None]

        others = data.train.x[torch.randperm(len(data.train))[: self.others]]  # the file may be sorted by class
        value, x = Interventional(model, others), data.test.x[: self.explained]
        parts = explain(value, x, self.budget)
        show(run, x, parts, data, data.classes[self.output] if data.classes else data.target)
        sizes = parts.values[:, 0].abs()
        shares = parts.importance[0].sort(descending=True).values.cumsum(0) / parts.importance[0].sum()
        return {
            "test_score": self.score(network, data),
            "not_additive": float((parts.prediction - model(x)).abs().max()),
            "standard_error": float(parts.errors.max() / sizes.max()),
            "lost_without_five": lost(value, x, parts, sizes.argsort(1, descending=True)[:, :5]),
            "lost_without_any_five": lost(value, x, parts, torch.rand_like(sizes).argsort(1)[:, :5]),
            "features_of_nine_tenths": float((shares < 0.9).sum() + 1),
        }

    @torch.no_grad()
    def score(self, network: TableNetwork, data: Dataset) -> float:
        """The share of test rows named rightly, or of the variance explained."""
        said, y = self.predict(network, data.test.x), data.test.y
        assert y is not None
        if data.classes:
            return float((said.argmax(1) == y).double().mean())
        return float(1 - (said - y).square().mean() / y.var(correction=0))

    def trained(self, run: Run, data: Dataset) -> TableNetwork:
        """A network that knows the columns and classes of its table, so that `parnassus explain` does too."""
        y, scaled = data.train.y, Standardiser.fit(data.train.x)
        assert y is not None
        network = run.build(
            self.model,
            mean=scaled.mean.tolist(),
            std=scaled.std.tolist(),
            columns=data.columns,
            classes=data.classes,
            scaling=(0.0, 1.0) if data.classes else (float(y.mean()), float(y.std())),
        )
        network, optimizer = run.prepare(network, partial(Adam, lr=self.lr, weight_decay=self.decay))
        for step, loss in descend(run, network, optimizer, data.train.pairs(self.batch, self.steps)):
            run.log(step, loss=loss)
        return network.eval()


def opened(name: str, output: int) -> Dataset:
    """A table with something to predict, and names for all columns."""
    data = open_data(name)
    if len(data.shape) != 1 or data.train.y is None or not len(data.test):
        raise DataError(f"{name} must be a table with a column to predict; its examples have shape {data.shape}.")
    if not data.classes and data.train.y.shape[1:] != (1,):
        raise DataError(f"{name} must have one column to predict; it has {data.train.y.shape[1]}.")
    if not 0 <= output < max(1, len(data.classes)):
        raise DataError(f"output must name one of {max(1, len(data.classes))} outputs from 0 on; got {output}.")
    columns = data.columns or tuple(f"column {place}" for place in range(1, data.shape[0] + 1))
    return replace(data, columns=columns, target=data.target or "target")


def lost(value: Interventional, x: Tensor, parts: Attribution, hidden: Int[Tensor, "rows some"]) -> float:
    """How much of what raises a prediction above its base, or lowers it, goes when these features are unknown.

    The mean over all rows, over the mean of what there is to lose.
    """
    known = torch.ones(len(x), value.players, dtype=torch.bool, device=x.device).scatter_(1, hidden, 0)
    left = torch.cat([value(row[None], seen[None])[:, 0] for row, seen in zip(x, known, strict=True)])[:, 0]
    above = parts.prediction[:, 0] - parts.base[:, 0]
    return float(((parts.prediction[:, 0] - left) * above.sign()).mean() / above.abs().mean())


def show(run: Run, x: Tensor, parts: Attribution, data: Dataset, told: str) -> None:
    """One row, all rows, and how the two weightiest features act together."""
    said, values = parts.prediction[:, 0], parts.values[:, 0].cpu()
    row = int((said - 0.5).abs().argmin() if data.classes else said.argmax())
    label = f"probability of {told}" if data.classes else told
    labels = [f"{name} = {number:.3g}" for name, number in zip(data.columns, x[row].tolist(), strict=True)]
    run.figure(
        "waterfall",
        waterfall(float(parts.base[row, 0]), values[row], labels, errors=parts.errors[row, 0].cpu(), x_label=label),
        f"From the mean over the background to what the network says of test row {row + 1}, "
        + ("the one it is least sure of" if data.classes else "the one it says most of")
        + f"; whiskers are standard errors, from {parts.coalitions:,} of 2^{values.shape[1]} coalitions.",
    )
    run.figure(
        "swarm",
        swarm(values, x.cpu(), data.columns, x_label=f"part of the {label}"),
        f"A dot is one of {len(x)} unseen rows; where it lies is what the feature adds, its colour how large it is.",
    )
    first, second = (*parts.importance[0].argsort(descending=True).tolist(), 0)[:2]
    run.figure(
        "dependence",
        dependence(
            x[:, first].cpu(),
            values[:, first],
            x[:, second].cpu(),
            name=data.columns[first],
            other_name=data.columns[second],
            y_label=f"its part of the {label}",
        ),
        "The weightiest feature against its part, coloured by the second.",
    )
    run.note(
        "your own rows",
        "This network standardises what it is given, so it takes rows as they stand in a table. For any row of a file "
        "with these columns: parnassus explain --model RUN --data my.csv --row 17",
    )
