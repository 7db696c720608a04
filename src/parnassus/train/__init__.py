"""Run and descend: everything around a training loop, and nothing about any method."""

from parnassus.atlas.bands import Band, at_least, at_most, between, reported
from parnassus.train.descend import descend
from parnassus.train.options import Options, Words
from parnassus.train.run import Run
from parnassus.train.side_by_side import SideBySide

__all__ = [
    "Band",
    "Options",
    "Run",
    "SideBySide",
    "Words",
    "at_least",
    "at_most",
    "between",
    "descend",
    "reported",
]
