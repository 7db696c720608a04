"""Shapley values of the predictions of any model, in one call (book ch. 17)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from parnassus.arrays import ArrayLike, as_tensor
from parnassus.estimators.inline_figure import InlineFigure
from parnassus.shapley.attributions.attribution import Attribution
from parnassus.shapley.attributions.attribution import explain as estimate_attribution
from parnassus.shapley.attributions.linear_first_layer import interventional_value_function
from parnassus.shapley.figures.beeswarm import plot_beeswarm
from parnassus.shapley.figures.waterfall import plot_waterfall

MAX_BACKGROUND = 100
"""Rows of the background by default."""
MAX_EVALS = 2**12
"""Coalitions per row by default: all of them for up to 12 features."""


@dataclass(frozen=True, repr=False)
class Explanation:
    """f(x) = base value + Σ_j φ_j of one output for some rows (book eq. 17.2); a notebook shows it as a figure.

    >>> background = [[0.0, -1.0], [0.0, 1.0]]
    >>> found = explain(lambda x: 2 * x[:, 0] - x[:, 1], [[1.0, 3.0]], background=background)
    >>> found.values.round(6).tolist(), found.predictions.round(6).tolist()
    ([[2.0, -3.0]], [-1.0])
    """

    x: NDArray[Any]
    values: NDArray[Any]  # (rows, features), the Shapley values
    errors: NDArray[Any]  # their standard errors; 0 where they are exact
    base_values: NDArray[Any]  # (rows), the mean prediction of the background
    feature_names: tuple[str, ...]
    attribution: Attribution = field(compare=False)

    @property
    def predictions(self) -> NDArray[Any]:
        """The model's output for each row, the sum of base value and attributions."""
        total: NDArray[Any] = self.base_values + self.values.sum(1)
        return total

    def plot(self, row: int | None = None) -> InlineFigure:
        """A waterfall of one row, by default of the only row; for several rows a beeswarm of all."""
        if row is None and len(self.values) > 1:
            return InlineFigure(plot_beeswarm(self.values, self.x, self.feature_names, x_label="Shapley value"))
        index = row or 0
        return InlineFigure(
            plot_waterfall(
                float(self.base_values[index]), self.values[index], self.feature_names, errors=self.errors[index]
            )
        )

    def __repr__(self) -> str:
        largest = self.feature_names[int(np.abs(self.values).mean(0).argmax())]
        rows, features = self.values.shape
        return f"Explanation({rows} rows × {features} features, largest on average: {largest})"

    def _repr_html_(self) -> str:
        return self.plot()._repr_html_()


def explain(
    model: object,
    x: ArrayLike,
    *,
    background: ArrayLike | None = None,
    output: int | None = None,
    feature_names: Sequence[str] = (),
    max_evals: int = MAX_EVALS,
    random_state: int = 0,
) -> Explanation:
    """Shapley values of a module, an estimator or a function, for the rows of x (book sec. 17.3).

    Unknown features are drawn from the `background`, by default up to 100 rows of x. `output` is the column of the
    model's outputs, by default the one that is largest for most rows. Names are taken from a data frame.

    >>> import numpy as np
    >>> from parnassus.estimators import explain
    >>> x = np.random.default_rng(0).normal(size=(20, 3))
    >>> explanation = explain(lambda rows: rows[:, 0] - 2 * rows[:, 1], x)
    >>> np.allclose(explanation.values[:, 1], -2 * (x[:, 1] - x[:, 1].mean()))
    True
    """
    rows = _as_rows(x, "x")
    if background is None:
        order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(random_state))
        others = rows[order[:MAX_BACKGROUND]]
    else:
        others = _as_rows(background, "background")
    if len(others) < 2:
        raise ValueError("the background must have at least two rows; got one: give background=…")
    value = interventional_value_function(model, others)
    found = estimate_attribution(value, rows, max_evals, generator=torch.Generator().manual_seed(random_state))
    column = int(found.prediction.argmax(1).mode().values) if output is None else output
    if not -found.values.shape[1] <= column < found.values.shape[1]:
        raise ValueError(f"output must be from 0 to {found.values.shape[1] - 1}; got output={output}")
    return Explanation(
        x=rows.numpy(),
        values=found.values[:, column].cpu().numpy(),
        errors=found.errors[:, column].cpu().numpy(),
        base_values=found.base_values[:, column].cpu().numpy(),
        feature_names=_feature_names(x, feature_names, rows.shape[1]),
        attribution=found,
    )


def _as_rows(x: ArrayLike, name: str) -> torch.Tensor:
    rows = as_tensor(x, name)
    if rows.dim() != 2 or not len(rows):
        raise ValueError(
            f"{name} must have the axes (rows, features); got shape {tuple(rows.shape)}: use {name}[None] for one row"
        )
    return rows.detach().cpu().double()


def _feature_names(x: ArrayLike, given: Sequence[str], count: int) -> tuple[str, ...]:
    names = tuple(map(str, given)) or tuple(map(str, getattr(x, "columns", ())))
    if names and len(names) != count:
        raise ValueError(f"feature_names must have one name per feature; got {len(names)} for {count} features")
    return names or tuple(f"x{index}" for index in range(count))
