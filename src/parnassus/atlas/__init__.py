"""The index of methods, claims and experiments, and the decorators and evidence functions for writing claims.

The evidence functions need NumPy and are imported on first use, so that commands that only read the index, such as
`parnassus list`, start faster.
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
