"""The index of methods, claims and experiments, and the decorators and evidence that claims are written with.

The evidence needs NumPy and is loaded when it is first used: the index alone, as `parnassus list` needs it, is not to
wait for it.
"""

from typing import TYPE_CHECKING

from parnassus.atlas.decorators import claim, erratum

if TYPE_CHECKING:
    from parnassus.atlas.evidence import (
        Correction,
        Evidence,
        accepts,
        all_of,
        close,
        exponent,
        greater_equal,
        less_equal,
        raises,
        rate,
        rejects,
        runs,
    )

__all__ = [
    "Correction",
    "Evidence",
    "accepts",
    "all_of",
    "claim",
    "close",
    "erratum",
    "exponent",
    "greater_equal",
    "less_equal",
    "raises",
    "rate",
    "rejects",
    "runs",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from parnassus.atlas import evidence

    return getattr(evidence, name)
