"""Run and descend: everything around a training loop, and nothing about any method."""

from parnassus.atlas.bands import Band, at_least, at_most, between, reported
from parnassus.train.descend import descend
from parnassus.train.options import Options
from parnassus.train.run import Run

__all__ = [
    "Band",
    "Options",
    "Run",
    "at_least",
    "at_most",
    "between",
    "descend",
    "reported",
]
