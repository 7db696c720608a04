"""Deletion curves: a model's output while features are removed in order of their scores (book sec. 17.0)."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.shapley.attributions.value_functions import ValueFunction


def deletion_curve(
    value: ValueFunction,
    x: Float[Tensor, "rows features"],
    output: Int[Tensor, " rows"],
    scores: Float[Tensor, "rows players"],
) -> Float[Tensor, "rows steps"]:
    """The worth of one output per row with 0, 1, 2, … M players removed, in order of decreasing score.

    It begins at the prediction and ends at the base value. The faster it decreases, the better the scores; methods are
    compared by its mean over the steps (Petsiuk et al. 2018).
    """
    if scores.shape != (len(x), value.players) or len(output) != len(x):
        raise ValueError(
            f"an output and {value.players} scores are needed for each of {len(x)} rows; "
            f"got {len(output)} and {tuple(scores.shape)}"
        )
    rank = scores.argsort(1, descending=True).argsort(1)
    known = rank[:, None] >= torch.arange(value.players + 1, device=rank.device)[:, None]
    curves = [value(x[row : row + 1], known[row])[0, int(output[row])] for row in range(len(x))]
    return torch.stack(curves)
