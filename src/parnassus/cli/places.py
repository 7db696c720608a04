"""Where runs are kept."""

import os
from pathlib import Path

RUNS = Path(os.environ.get("PARNASSUS_RUNS", "runs"))
"""The folder `runs` of the current directory, or $PARNASSUS_RUNS."""
