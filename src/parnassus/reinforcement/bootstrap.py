"""How sure a number about a few learners is, found by drawing among them again and again (Efron 1979)."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor


def bootstrap_interval(
    scores: Float[Tensor, " learners"],
    statistic: Callable[[Float[Tensor, " learners"]], Float[Tensor, ""]],
    *,
    level: float = 0.95,
    draws: int = 2_000,
    generator: torch.Generator | None = None,
) -> tuple[float, float]:
    """Between which numbers the statistic of so many learners, drawn from these with repetition, lies `level` often.

    Learners differ by their seeds alone, so the interval says how far other seeds might lead. From five of them it is
    somewhat too short; one says nothing of the others, and is refused.
    """
    if len(scores) < 2:
        raise ValueError(f"how much learners differ shows from two on; got {len(scores)}")
    if not 0 < level < 1:
        raise ValueError(f"the level must be between 0 and 1; got level={level}")
    drawn = torch.randint(len(scores), (draws, len(scores)), generator=generator).to(scores.device)
    found = torch.stack([statistic(each) for each in scores[drawn]])
    low, high = torch.quantile(found, torch.tensor([(1 - level) / 2, (1 + level) / 2]).to(found)).tolist()
    return low, high
