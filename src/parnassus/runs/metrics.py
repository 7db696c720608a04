"""Metrics: a CSV file that can be truncated to the length at a checkpoint, and the same values for TensorBoard."""

import os
import time
from pathlib import Path
from typing import IO, NamedTuple, TypeAlias
from zlib import crc32

from parnassus.runs.durable import open_file
from parnassus.runs.errors import RunError

MetricHistory: TypeAlias = dict[str, tuple[list[int], list[float]]]
HEADER = b"step,metric,value\n"


class Mark(NamedTuple):
    """The beginning of metrics.csv to which a checkpoint refers."""

    size: int  # bytes
    checksum: int


class Metrics:
    """Append lines `step,metric,value`; floats are written so that they are read back bit-exactly."""

    def __init__(self, folder: Path, mark: Mark | None = None) -> None:
        """Start a new file, or truncate the existing one to its length at a checkpoint."""
        self.path = folder / "metrics.csv"
        if mark is None:
            self._file = open_file(self.path, "w+b")
            self._file.write(HEADER)
            self._mark = Mark(len(HEADER), crc32(HEADER))
        else:
            self._file = self._continue(mark)
            self._mark = mark
        self._file.flush()
        self._events = Events(folder, read_metrics(self.path))
        self.latest: dict[str, float] = {}

    def append(self, step: int, values: dict[str, float]) -> None:
        for name, value in values.items():
            if "," in name or "\n" in name:
                raise ValueError(f"the name of a metric must not contain a comma or a line break; got {name!r}")
            line = f"{step},{name},{value!r}\n".encode()
            self._file.write(line)
            self._mark = Mark(self._mark.size + len(line), crc32(line, self._mark.checksum))
        self._events.pending.append((time.time(), step, values))
        self.latest.update(values)

    def show(self) -> None:
        """Flush the CSV file, so that readers see the appended values."""
        self._file.flush()

    def flush(self) -> None:
        """Flush the CSV file and the events."""
        self._file.flush()
        self._events.write()

    def sync(self) -> Mark:
        """Flush everything and wait until the CSV file is on the disk; returns its length and checksum."""
        self.flush()
        os.fsync(self._file.fileno())
        return self._mark

    def close(self) -> None:
        self.flush()
        self._file.close()

    def _continue(self, mark: Mark) -> IO[bytes]:
        """The existing file, truncated to `mark`; raises a RunError if its content up to there has changed."""
        try:
            file = open_file(self.path, "r+b")
        except FileNotFoundError:
            raise RunError(f"{self.path} is missing, but the checkpoint refers to it: start the run again") from None
        content = file.read(mark.size)
        if len(content) != mark.size or crc32(content) != mark.checksum:
            file.close()
            problem = "shorter than" if len(content) < mark.size else "different from what"
            raise RunError(f"{self.path} is damaged: it is {problem} the checkpoint refers to; start the run again")
        file.truncate(mark.size)
        return file


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

        with open_file(self.path, "ab") as file:
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
