"""Run and descend: everything around a training loop, and nothing about any method."""

from parnassus.atlas.bands import Band, at_least, at_most, between, no_band
from parnassus.setting_types import AtLeast, Between, BuiltIn, GreaterThan, NonNegative, Positive, Text, UnitInterval
from parnassus.train.descend import descend
from parnassus.train.options import Options
from parnassus.train.run import Run
from parnassus.train.side_by_side import SideBySide

__all__ = [
    "AtLeast",
    "Band",
    "Between",
    "BuiltIn",
    "GreaterThan",
    "NonNegative",
    "Options",
    "Positive",
    "Run",
    "SideBySide",
    "Text",
    "UnitInterval",
    "at_least",
    "at_most",
    "between",
    "descend",
    "no_band",
]
