"""The index of every method, claim and experiment, and the marks that join them."""

from parnassus.atlas.evidence import (
    Correction,
    Evidence,
    accepts,
    all_of,
    at_least,
    at_most,
    close,
    exponent,
    raises,
    rate,
    rejects,
    runs,
)
from parnassus.atlas.marks import claim, erratum

__all__ = [
    "Correction",
    "Evidence",
    "accepts",
    "all_of",
    "at_least",
    "at_most",
    "claim",
    "close",
    "erratum",
    "exponent",
    "raises",
    "rate",
    "rejects",
    "runs",
]
