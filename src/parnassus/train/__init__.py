"""Run and descend: everything around a training loop, and nothing about any method."""

from parnassus.train.bands import Band, at_least, at_most, between, reported
from parnassus.train.descend import descend
from parnassus.train.errors import Interrupted, NotFiniteError, RunError
from parnassus.train.folder import RunFolder, find_run, run_folders
from parnassus.train.options import Options
from parnassus.train.run import Run

__all__ = [
    "Band",
    "Interrupted",
    "NotFiniteError",
    "Options",
    "Run",
    "RunError",
    "RunFolder",
    "at_least",
    "at_most",
    "between",
    "descend",
    "find_run",
    "reported",
    "run_folders",
]
