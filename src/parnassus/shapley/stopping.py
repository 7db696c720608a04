"""Sampling that stops at a wished error: rounds that grow until all standard errors are small (book sec. 17.4)."""

from collections.abc import Callable
from math import ceil
from typing import Protocol, TypeVar, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from parnassus.shapley.game import Worth


@runtime_checkable
class Judged(Protocol):
    """Values that know their standard errors: an Estimate, an Attribution."""

    @property
    def values(self) -> Float[Tensor, "*games players"]: ...

    @property
    def errors(self) -> Float[Tensor, "*games players"]: ...


Found = TypeVar("Found", bound=Judged)


def largest_error(found: Judged) -> float:
    """The largest standard error, of any player in any game."""
    return float(found.errors.max()) if found.errors.numel() else 0.0


def largest_share(found: Judged) -> float:
    """The same, each as a share of how far its game's values lie apart: a rule that does not know the unit."""
    if not found.errors.numel():
        return 0.0
    apart = found.values.amax(-1, keepdim=True) - found.values.amin(-1, keepdim=True)
    share = found.errors / apart
    return float(share.nan_to_num(0.0, posinf=float("inf")).max())  # nothing lies apart and nothing errs: 0 / 0


def until(
    grow: Callable[[int], Found],
    error: float,
    *,
    first: int,
    most: int,
    judge: Callable[[Judged], float] = largest_error,
) -> Found:
    """The first of ever better estimates that `judge` finds to err by at most `error`, or the last, from `most`.

    `grow(count)` gives the estimate from `count` questions in all, and must keep what it asked before. Errors fall like
    1/√count, so the next round asks (found / wished)² times as much, but at most twice: the first errors are guesses.
    Whether the wish was met is `judge(found) <= error`.
    """
    if not error > 0:
        raise ValueError(f"the error to stop at must be positive; got error={error}")
    if not 0 < first <= most:
        raise ValueError(f"the first round must ask something, and at most all; got first={first}, most={most}")
    count = first
    found = grow(count)
    while not judge(found) <= error and count < most:  # a NaN goes on too
        short = (judge(found) / error) ** 2
        count = min(most, ceil(count * (max(1.1, 1.05 * short) if short < 1.9 else 2.0)))
        found = grow(count)
    return found


class Remembered:
    """A game that is asked about no coalition twice: rounds that grow pay only for what is new."""

    def __init__(self, worth: Worth) -> None:
        self.worth = worth
        self._places: dict[bytes, int] = {}
        self._known: list[Tensor] = []

    @property
    def asked(self) -> int:
        """Different coalitions so far."""
        return len(self._places)

    def __call__(self, coalitions: Bool[Tensor, "count players"]) -> Float[Tensor, "*games count"]:
        keys = [row.tobytes() for row in np.packbits(coalitions.cpu().numpy(), axis=1)]
        new = {key: place for place, key in reversed(list(enumerate(keys))) if key not in self._places}
        if new:
            self._places |= {key: len(self._places) + place for place, key in enumerate(new)}
            self._known = [torch.cat([*self._known, self.worth(coalitions[list(new.values())])], -1)]
        return self._known[0][..., [self._places[key] for key in keys]]
