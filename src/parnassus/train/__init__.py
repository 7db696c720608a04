"""Run and descend: the infrastructure of a training loop, independent of the method."""

from parnassus.atlas.bands import Band, at_least, at_most, between, no_band
from parnassus.setting_types import (
    AtLeast,
    Between,
    BuiltIn,
    Correlation,
    DeviceName,
    GreaterThan,
    NonNegative,
    Positive,
    StrictlyBetween,
    Text,
    UnitInterval,
)
from parnassus.train.descend import descend
from parnassus.train.model_collection import ModelCollection
from parnassus.train.options import Options
from parnassus.train.run import Run

__all__ = [
    "AtLeast",
    "Band",
    "Between",
    "BuiltIn",
    "Correlation",
    "DeviceName",
    "GreaterThan",
    "ModelCollection",
    "NonNegative",
    "Options",
    "Positive",
    "Run",
    "StrictlyBetween",
    "Text",
    "UnitInterval",
    "at_least",
    "at_most",
    "between",
    "descend",
    "no_band",
]
