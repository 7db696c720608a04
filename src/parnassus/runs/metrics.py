"""Metrics: a CSV file that can be truncated to the length at a checkpoint, and the same values for TensorBoard."""

import time
from pathlib import Path
from typing import IO, TypeAlias

from parnassus.runs.errors import RunError

MetricHistory: TypeAlias = dict[str, tuple[list[int], list[float]]]
HEADER = "step,metric,value\n"


class Metrics:
    """Append lines `step,metric,value`; floats are written so that they are read back bit-exactly."""

    def __init__(self, folder: Path, size: int | None = None) -> None:
        """Open for writing; `size` truncates the file to its length at a checkpoint."""
        self.path = folder / "metrics.csv"
        if not self.path.exists():
            self.path.write_text(HEADER)
        self._file: IO[str] = self.path.open("r+")
        self._file.truncate(len(HEADER) if size is None else size)
        self._file.seek(0, 2)
        self._events = Events(folder, read_metrics(self.path))
        self.latest: dict[str, float] = {}

    def append(self, step: int, values: dict[str, float]) -> None:
        for name, value in values.items():
            if "," in name or "\n" in name:
                raise ValueError(f"the name of a metric must not contain a comma or a line break; got {name!r}")
            self._file.write(f"{step},{name},{value!r}\n")
        self._events.pending.append((time.time(), step, values))
        self.latest.update(values)

    def show(self) -> None:
        """Flush the CSV file, so that readers see the appended values."""
        self._file.flush()

    def flush(self) -> int:
        """Flush everything to disk; returns the length of the CSV file."""
        self._file.flush()
        self._events.write()
        return self._file.tell()

    def close(self) -> None:
        self.flush()
        self._file.close()


class Events:
    """The same values for TensorBoard, in one event file that is rewritten in each session of a run."""

    def __init__(self, folder: Path, earlier: MetricHistory) -> None:
        self.path = folder / f"events.out.tfevents.{time.time_ns()}"
        for old in folder.glob("events.out.tfevents.*"):
            old.unlink()
        self.pending: list[tuple[float, int, dict[str, float]]] = [
            (time.time(), step, {name: value})
            for name, (steps, values) in earlier.items()
            for step, value in zip(steps, values, strict=True)
        ]

    def write(self) -> None:
        from tensorboard.compat.proto.event_pb2 import Event  # 0.2 s of imports
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.summary.writer.record_writer import RecordWriter

        with self.path.open("ab") as file:
            records = RecordWriter(file)
            if file.tell() == 0:
                records.write(Event(wall_time=time.time(), file_version="brain.Event:2").SerializeToString())
            for now, step, values in self.pending:
                summary = Summary(value=[Summary.Value(tag=name, simple_value=value) for name, value in values.items()])
                records.write(Event(wall_time=now, step=step, summary=summary).SerializeToString())
        self.pending.clear()


def read_metrics(path: Path) -> MetricHistory:
    """Steps and values of each metric; an incomplete last line is ignored."""
    curves: MetricHistory = {}
    if not path.exists():
        return curves
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise RunError(f"{path} is damaged: it is not UTF-8 text") from None
    for number, line in enumerate(text.split("\n")[1:-1], start=2):
        try:
            step, name, value = line.split(",")
            steps, values = curves.setdefault(name, ([], []))
            steps.append(int(step))
            values.append(float(value))
        except ValueError:
            raise RunError(f"{path} is damaged in line {number}: {line[:60]!r}") from None
    return curves
