"""Bootstrap confidence intervals over few learners (Efron 1979)."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor


def bootstrap_interval(
    scores: Float[Tensor, " learners"],
    statistic: Callable[[Float[Tensor, " learners"]], Float[Tensor, ""]],
    *,
    level: float = 0.95,
    num_resamples: int = 2_000,
    generator: torch.Generator | None = None,
) -> tuple[float, float]:
    """Percentile bootstrap interval of a statistic over learners.

    Learners differ only by their seeds, so the interval estimates the variation over seeds. With five learners it is
    somewhat too short; with one it is undefined.
    """
    if len(scores) < 2:
        raise ValueError(f"a bootstrap interval needs at least two learners; got {len(scores)}")
    if not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1; got level={level}")
    resamples = torch.randint(len(scores), (num_resamples, len(scores)), generator=generator).to(scores.device)
    values = torch.stack([statistic(each) for each in scores[resamples]])
    low, high = torch.quantile(values, torch.tensor([(1 - level) / 2, (1 + level) / 2]).to(values)).tolist()
    return low, high
