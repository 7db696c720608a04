"""The decorators `@claim`, `@erratum` and `@probe`: read by the index from the source, without effect at run time."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from parnassus.atlas.evidence import Correction, Evidence

ClaimFunction = TypeVar("ClaimFunction", bound="Callable[[], Evidence]")
ErratumFunction = TypeVar("ErratumFunction", bound="Callable[[], Correction]")
ProbeFunction = TypeVar("ProbeFunction", bound=Callable[..., object])


def claim(*ids: str, slow: bool = False) -> Callable[[ClaimFunction], ClaimFunction]:
    """Mark a function as the check of a statement about `ids`; its docstring is the statement.

    A claim that takes more than 2 s is `slow`: `parnassus check` runs it, `make test` does not.
    """

    def mark(function: ClaimFunction) -> ClaimFunction:
        return function

    return mark


def erratum(*ids: str, printed: str, right: str) -> Callable[[ErratumFunction], ErratumFunction]:
    """Mark a function as the proof that `printed` is wrong and `right` is not; its docstring says where."""

    def mark(function: ErratumFunction) -> ErratumFunction:
        return function

    return mark


def probe(*experiments: str) -> Callable[[ProbeFunction], ProbeFunction]:
    """Mark an interactive view: its arguments are controls, its results are figures, animations and values.

    It shows trained runs of these `experiments` and takes one as its first argument; without any it needs no run.
    """

    def mark(function: ProbeFunction) -> ProbeFunction:
        return function

    return mark
