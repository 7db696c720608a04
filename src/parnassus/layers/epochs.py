"""What was measured on the way: one row an epoch, kept through interruptions."""

from collections.abc import Sequence
from typing import cast


class EpochLog:
    """Rows of named numbers that can be saved and restored like a module.

    A list would be lost when a run is interrupted; handed to `Run.keep`, this is saved with each checkpoint.
    """

    def __init__(self) -> None:
        self.rows: list[dict[str, float]] = []

    def add(self, **measured: float) -> None:
        self.rows.append({name: float(value) for name, value in measured.items()})

    def column(self, name: str) -> Sequence[float]:
        """The values of one name, in the order they were added."""
        return [row[name] for row in self.rows]

    def state_dict(self) -> dict[str, object]:
        return {"rows": self.rows}

    def load_state_dict(self, state: dict[str, object]) -> None:
        self.rows = [dict(row) for row in cast("list[dict[str, float]]", state["rows"])]
