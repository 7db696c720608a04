"""Files of a run, read and written without torch: its folder, its metrics and its progress."""

from parnassus.runs.errors import NotFiniteError, RunError, RunInterrupted
from parnassus.runs.folder import RunFolder, Status
from parnassus.runs.lookup import command_for, find_run, run_folders
from parnassus.runs.metrics import MetricHistory, read_metrics
from parnassus.runs.progress import Progress

__all__ = [
    "MetricHistory",
    "NotFiniteError",
    "Progress",
    "RunError",
    "RunFolder",
    "RunInterrupted",
    "Status",
    "command_for",
    "find_run",
    "read_metrics",
    "run_folders",
]
