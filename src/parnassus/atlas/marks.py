"""The marks `@claim`, `@erratum` and `@probe`: they say what a function is about, and do nothing else."""

from collections.abc import Callable
from typing import TypeVar

from parnassus.atlas.evidence import Correction, Evidence

ClaimFunction = TypeVar("ClaimFunction", bound=Callable[[], Evidence])
ErratumFunction = TypeVar("ErratumFunction", bound=Callable[[], Correction])
ProbeFunction = TypeVar("ProbeFunction", bound=Callable[..., object])


def claim(*ids: str) -> Callable[[ClaimFunction], ClaimFunction]:
    """Mark a function as the check of a statement about `ids`; its docstring is the statement."""

    def mark(function: ClaimFunction) -> ClaimFunction:
        return function

    return mark


def erratum(*ids: str, printed: str, right: str) -> Callable[[ErratumFunction], ErratumFunction]:
    """Mark a function as the proof that `printed` is wrong and `right` is not; its docstring says where."""

    def mark(function: ErratumFunction) -> ErratumFunction:
        return function

    return mark


def probe(*experiments: str) -> Callable[[ProbeFunction], ProbeFunction]:
    """Mark a function that a person can touch: its arguments are controls, what it returns are pictures and numbers.

    It is about trained runs of these `experiments` and takes one as its first argument; without any it needs no run.
    """

    def mark(function: ProbeFunction) -> ProbeFunction:
        return function

    return mark
