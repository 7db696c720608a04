"""Annealed Langevin dynamics over decreasing noise levels (Song and Ermon 2019; book sec. 13.2.7)."""

from collections.abc import Iterator
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.diffusion.samplers.langevin import langevin_path
from parnassus.diffusion.samplers.time_steps import last_state
from parnassus.diffusion.scores.noise_levels import check_levels
from parnassus.diffusion.scores.score_matching import NoiseConditionalScore


def annealed_step_sizes(levels: Float[Tensor, " levels"], factor: float = 0.1) -> Float[Tensor, " levels"]:
    """Step sizes c_t = factor · σ_t² (Song and Ermon 2019).

    For N(m, σ²) a step multiplies x − m by 1 − factor, so it diverges for factor ≥ 2.
    """
    if not 0 < factor < 2:
        raise ValueError(f"factor must lie between 0 and 2 for stable steps; got factor={factor}")
    return factor * levels.square()


def annealed_langevin_path(
    score: NoiseConditionalScore,
    levels: Float[Tensor, " levels"],
    start: Float[Tensor, "count *event"],
    *,
    steps: int = 100,
    factor: float = 0.1,
) -> Iterator[Float[Tensor, "count *event"]]:
    """The start, and the state at the end of each level, t = T, T − 1, …, 1 (Song and Ermon 2019).

    At each level `steps` Langevin steps of size c_t = factor · σ_t² for the density smoothed by σ_t, from the end of
    the previous level. For a learned score use `start` = σ_T ε or another wide distribution.
    """
    check_levels(levels)
    sizes = annealed_step_sizes(levels, factor).tolist()
    x = start
    yield x
    for level in reversed(range(len(levels))):
        t = torch.full((len(x),), level, device=x.device)
        x = last_state(langevin_path(partial(_score_at, score, t), x, step=sizes[level], steps=steps))
        yield x


def annealed_langevin(
    score: NoiseConditionalScore,
    levels: Float[Tensor, " levels"],
    start: Float[Tensor, "count *event"],
    *,
    steps: int = 100,
    factor: float = 0.1,
) -> Float[Tensor, "count *event"]:
    """The end of the path over all levels; samples contain noise σ_1, see `tweedie_mean`."""
    return last_state(annealed_langevin_path(score, levels, start, steps=steps, factor=factor))


def _score_at(score: NoiseConditionalScore, t: Tensor, x: Tensor) -> Tensor:
    return score(x, t)
