"""The marks `@claim` and `@erratum`: they name the ids a function is about, and do nothing else."""

from collections.abc import Callable
from typing import TypeVar

from parnassus.atlas.evidence import Correction, Evidence

ClaimFunction = TypeVar("ClaimFunction", bound=Callable[[], Evidence])
ErratumFunction = TypeVar("ErratumFunction", bound=Callable[[], Correction])


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
