"""Annealed Langevin dynamics: from the widest blur of the data to the narrowest (book sec. 13.2.7)."""

from collections.abc import Iterator
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.diffusion.langevin import langevin_path
from parnassus.diffusion.samplers import last_state
from parnassus.diffusion.score_matching import LevelledScore


def annealed_steps(levels: Float[Tensor, " levels"], factor: float = 0.1) -> Float[Tensor, " levels"]:
    """c_t = factor · σ_t²: a step moves by the same share of the blur at every level.

    Where the data blurred by σ look like N(m, σ²) a step shrinks x − m by 1 − factor; 2 and more would blow up.
    """
    if not 0 < factor < 2:
        raise ValueError(f"the steps are stable for 0 < factor < 2; got factor={factor}")
    return factor * levels.square()


def annealed_langevin_path(
    score: LevelledScore,
    levels: Float[Tensor, " levels"],
    start: Float[Tensor, "count *event"],
    *,
    steps: int = 100,
    factor: float = 0.1,
) -> Iterator[Float[Tensor, "count *event"]]:
    """The start, and the state at the end of each level, t = T, T − 1, …, 1 (Song and Ermon 2019).

    At each level `steps` steps of Langevin dynamics on the data blurred by σ_t, from where the level before ended;
    steps shrink with the level, c_t = factor · σ_t². With a learned score, `start` is σ_T ε or any wide cloud.
    """
    if bool((levels[1:] <= levels[:-1]).any()) or not bool((levels > 0).all()):
        raise ValueError(f"levels must be positive and rise from level 0 on; got levels={levels.tolist()}")
    sizes = annealed_steps(levels, factor).tolist()
    x = start
    yield x
    for number in reversed(range(len(levels))):
        t = torch.full((len(x),), number, device=x.device)
        x = last_state(langevin_path(partial(_at, score, t), x, step=sizes[number], steps=steps))
        yield x


def annealed_langevin(
    score: LevelledScore,
    levels: Float[Tensor, " levels"],
    start: Float[Tensor, "count *event"],
    *,
    steps: int = 100,
    factor: float = 0.1,
) -> Float[Tensor, "count *event"]:
    """Samples: the end of the path through all levels. They keep the last blur, σ_1; see `tweedie_mean`."""
    return last_state(annealed_langevin_path(score, levels, start, steps=steps, factor=factor))


def _at(score: LevelledScore, t: Tensor, x: Tensor) -> Tensor:
    return score(x, t)
