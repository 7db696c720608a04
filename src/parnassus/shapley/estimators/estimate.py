"""The interface of estimators of Shapley values, and their estimates with standard errors."""

from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float
from scipy.special import ndtr, stdtrit
from torch import Tensor

from parnassus.errors import check_positive
from parnassus.shapley.games.cooperative_games import CharacteristicFunction


class ShapleyEstimate(NamedTuple):
    """Estimated Shapley values and their standard errors, adjusted by `small_sample_errors` for small samples.

    >>> ShapleyEstimate(values=torch.tensor([0.5, 0.25]), errors=torch.tensor([0.01, 0.02])).values.sum().item()
    0.75
    """

    values: Float[Tensor, "*games players"]
    errors: Float[Tensor, "*games players"]


@runtime_checkable
class Estimator(Protocol):
    """Shapley values from about `budget` coalitions: `kernel_shap`, `permutation_sampling`, `stratified_sampling`."""

    def __call__(
        self,
        worth: CharacteristicFunction,
        players: int,
        budget: int,
        *,
        generator: torch.Generator | None = None,
    ) -> ShapleyEstimate: ...


def small_sample_errors(
    errors: Float[Tensor, "*games players"], degrees_of_freedom: Float[Tensor, "*#games #players"] | int
) -> Float[Tensor, "*games players"]:
    """Standard errors times t/2, so that ± 2 of them covers 95.4 % despite few degrees of freedom (Student 1908).

    t is the quantile with P(|T| < t) = P(|Z| < 2). The factor is about 7 for one degree of freedom, 1.01 for a hundred.
    """
    degrees = torch.as_tensor(degrees_of_freedom, dtype=torch.float64).clamp(min=1.0)
    student = torch.from_numpy(np.asarray(stdtrit(degrees.cpu().numpy(), ndtr(2.0))))
    return errors * (student / 2).to(errors)


def empty_and_grand_worth(worth: CharacteristicFunction, players: int) -> Float[Tensor, "*games 2"]:
    """v(∅) and v(N), the worths of the empty and of the grand coalition."""
    check_positive(players=players)
    return worth(torch.tensor([[False], [True]]).expand(2, players))


def equal_split(ends: Float[Tensor, "*games 2"], players: int) -> ShapleyEstimate:
    """(v(N) − v(∅)) / M for every player, without error: exact for one player."""
    equal = (ends.diff(dim=-1) / players).expand(*ends.shape[:-1], players)
    return ShapleyEstimate(equal, torch.zeros_like(equal))
