"""Do parts say what matters? What a model says while features go, the weightiest first (book sec. 17.0)."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.shapley.masking import ValueFunction


def deletion_curve(
    value: ValueFunction,
    x: Float[Tensor, "rows features"],
    output: Int[Tensor, " rows"],
    scores: Float[Tensor, "rows players"],
) -> Float[Tensor, "rows steps"]:
    """Of each row, v of one output with 0, 1, 2, … M players gone, in falling order of their scores.

    The faster it falls, the better the scores; its mean over the steps is the area that is compared (Petsiuk et al.
    2018). It begins at the prediction and ends at the base value.
    """
    if scores.shape != (len(x), value.players) or len(output) != len(x):
        raise ValueError(
            f"an output and {value.players} scores are needed for each of {len(x)} rows; "
            f"got {len(output)} and {tuple(scores.shape)}"
        )
    rank = scores.argsort(1, descending=True).argsort(1)
    known = rank[:, None] >= torch.arange(value.players + 1, device=rank.device)[:, None]
    each = [value(x[row : row + 1], known[row])[0, int(output[row])] for row in range(len(x))]
    return torch.stack(each)
