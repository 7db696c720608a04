"""Attributions: a prediction as a base value and a part for each feature (book eqs. 17.1-17.2, 17.7-17.8)."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.shapley.coalitions import drawn_coalitions
from parnassus.shapley.game import MOST, members
from parnassus.shapley.kernel_shap import regressed
from parnassus.shapley.masking import ValueFunction
from parnassus.shapley.model import ModelError
from parnassus.shapley.values import shapley_values


@dataclass(frozen=True)
class Attribution:
    """f(x) = base + Σ_j values_j, for every row and output, with the standard errors of the values (book eq. 17.2)."""

    base: Float[Tensor, "rows outputs"]
    values: Float[Tensor, "rows outputs players"]
    errors: Float[Tensor, "rows outputs players"]
    coalitions: int

    @property
    def prediction(self) -> Float[Tensor, "rows outputs"]:
        """What the model says of each row: the parts sum to it exactly (local accuracy)."""
        return self.base + self.values.sum(-1)

    @property
    def importance(self) -> Float[Tensor, "outputs players"]:
        """Over all rows: the mean of |φ_j|."""
        return self.values.abs().mean(0)


def explain_exactly(value: ValueFunction, x: Float[Tensor, "rows features"]) -> Attribution:
    """Shapley values of every row by all 2^M coalitions; M up to about 20 (book eq. 17.3)."""
    if value.players > MOST:
        raise ValueError(
            f"{value.players} features have 2^{value.players} coalitions; use explain, or group them: at most {MOST}"
        )
    demand_steady(value, x)
    worth = value(x, members(value.players))
    values = shapley_values(worth - worth[..., :1])
    return Attribution(worth[..., 0], values, torch.zeros_like(values), worth.shape[-1])


def explain(
    value: ValueFunction, x: Float[Tensor, "rows features"], budget: int, *, generator: torch.Generator | None = None
) -> Attribution:
    """Shapley values of every row from about `budget` coalitions, the same for all rows: Kernel SHAP (book sec. 17.4).

    With a budget of 2^M or more they are exact.
    """
    if value.players <= MOST and budget >= 2**value.players:
        return explain_exactly(value, x)
    demand_steady(value, x)
    ends = value(x, torch.tensor([[False], [True]]).expand(2, value.players))
    asked = drawn_coalitions(value.players, budget, generator=generator)
    found = regressed(asked, value(x, asked.coalitions), ends[..., 0], ends[..., 1])
    return Attribution(ends[..., 0], found.values, found.errors, len(asked.coalitions) + 2)


def demand_steady(value: ValueFunction, x: Float[Tensor, "rows features"]) -> None:
    """Refuse a model that answers one question in two ways: no parts sum to both."""
    everything = torch.ones(1, value.players, dtype=torch.bool)
    first, second = value(x[:1], everything), value(x[:1], everything)
    if not torch.equal(first, second):
        raise ModelError(
            f"the model is not deterministic: asked twice about one row it said {first.flatten()[0]:.6g} and "
            f"{second.flatten()[0]:.6g}; fix its seed, or average it"
        )
