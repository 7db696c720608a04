"""The decorators `@claim`, `@erratum` and `@probe`: the index reads them from the source; they return the function."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from parnassus.atlas.evidence import Correction, Evidence

ClaimFunction = TypeVar("ClaimFunction", bound="Callable[[], Evidence]")
ErratumFunction = TypeVar("ErratumFunction", bound="Callable[[], Correction]")
ProbeFunction = TypeVar("ProbeFunction", bound=Callable[..., object])


def claim(*ids: str, slow: bool = False) -> Callable[[ClaimFunction], ClaimFunction]:
    """Mark a function that checks a statement about the items `ids`; its docstring is the statement.

    A claim that takes more than 2 s must be marked `slow`: `parnassus check` runs it, `make test` does not.
    """

    def mark(function: ClaimFunction) -> ClaimFunction:
        return function

    return mark


def erratum(*ids: str, printed: str, right: str) -> Callable[[ErratumFunction], ErratumFunction]:
    """Mark a function that shows that `printed` is wrong and `right` is correct; its docstring states the place."""

    def mark(function: ErratumFunction) -> ErratumFunction:
        return function

    return mark


def probe(*experiments: str) -> Callable[[ProbeFunction], ProbeFunction]:
    """Mark an interactive view: its arguments are controls, its results are figures, animations and values.

    With `experiments`, the view shows trained runs of these experiments and takes a run as its first argument.
    """

    def mark(function: ProbeFunction) -> ProbeFunction:
        return function

    return mark
