"""What a run leaves on disk, read and written without torch: its folder, its curves, its progress."""

from parnassus.runs.errors import Interrupted, NotFiniteError, RunError
from parnassus.runs.folder import RunFolder, Status, find_run, run_folders
from parnassus.runs.metrics import Curves, read_metrics
from parnassus.runs.progress import Progress

__all__ = [
    "Curves",
    "Interrupted",
    "NotFiniteError",
    "Progress",
    "RunError",
    "RunFolder",
    "Status",
    "find_run",
    "read_metrics",
    "run_folders",
]
