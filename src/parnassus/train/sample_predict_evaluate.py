"""Protocols of the dataclasses Sample, Predict and Evaluate, which an experiment may declare for its trained runs.

Their typed fields are the flags of `parnassus sample`, `predict` and `evaluate`, and the form fields of the lab.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

from parnassus.runs.errors import RunError
from parnassus.train.trained import TrainedRun

if TYPE_CHECKING:
    from torch import Tensor, nn

ResultRow: TypeAlias = Mapping[str, str | float | int | list[float] | None]
"""One row of a table: a value for each column; lists are written to JSON and CSV but not shown in the terminal."""
TEXT_SUFFIXES = {".txt", ".csv"}
"""Suffixes of text files; predictions for text read a pipe by default."""


class Sample(Protocol):
    """Draws samples from a generative model; may define `columns`, the number of columns of the figure."""

    def __call__(self, model: "nn.Module", /) -> "Tensor": ...


@runtime_checkable
class IterativeSample(Protocol):
    """Draws samples in steps; `path` yields all intermediate states and finally the samples."""

    def __call__(self, model: "nn.Module", /) -> "Tensor": ...

    def path(self, model: "nn.Module", /) -> "Iterable[Tensor]": ...


@runtime_checkable
class TextSample(Protocol):
    """Generates text: yields pieces of text as they are generated."""

    def write(self, model: "nn.Module", /) -> Iterable[str]: ...


@runtime_checkable
class CompilableTextSample(TextSample, Protocol):
    """Generates text with a model whose layers can be compiled."""

    def compile_layers(self, model: "nn.Module", /) -> None:
        """Compile the layers of the model with torch.compile for faster generation."""


@dataclass(frozen=True)
class Input:
    """Input of a prediction: a file, or standard input (`path` is None)."""

    path: Path | None = None

    @property
    def name(self) -> str:
        return "-" if self.path is None else str(self.path)

    def read_bytes(self) -> bytes:
        return sys.stdin.buffer.read() if self.path is None else self.path.read_bytes()

    def lines(self) -> Iterator[str]:
        """The lines of a text, without line breaks."""
        if self.path is None:
            yield from (line.rstrip("\n") for line in sys.stdin)
            return
        try:
            with self.path.open(encoding="utf-8") as file:
                yield from (line.rstrip("\n") for line in file)
        except UnicodeDecodeError as error:
            raise RunError(f"{self.path} is not UTF-8 text: {error.reason} at byte {error.start}") from None


def non_empty_lines(inputs: Iterable[Input]) -> Iterator[str]:
    """The lines of all inputs that contain more than white space."""
    return (line for each in inputs for line in each.lines() if line.strip())


class Predict(Protocol):
    """Predictions for new input: rows of a table, one or more per input, as they are computed."""

    suffixes: tuple[str, ...]  # suffixes of the files to read from a folder

    def __call__(self, trained: TrainedRun, inputs: Sequence[Input], /) -> Iterable[ResultRow]: ...


class Evaluate(Protocol):
    """Evaluates trained runs on other data or over episodes: rows of a table, one or more per run."""

    def __call__(self, runs: Sequence[TrainedRun], /) -> Sequence[ResultRow]: ...


def find_inputs(names: Sequence[str], suffixes: tuple[str, ...]) -> list[Input]:
    """The inputs given by arguments: files, files of folders with matching suffixes, `-` for standard input.

    Without arguments, text is read from a pipe.
    """
    if not names:
        if not TEXT_SUFFIXES & set(suffixes) or sys.stdin is None or sys.stdin.isatty():
            raise RunError(f"no input: give files ({', '.join(suffixes)}), folders of files, or - for standard input")
        return [Input()]
    found: list[Input] = []
    for name in names:
        path = Path(name)
        if name == "-":
            found.append(Input())
        elif path.is_dir():
            files = sorted(file for file in path.rglob("*") if file.suffix.lower() in suffixes)
            if not files:
                raise RunError(f"{path} has no files that end in {', '.join(suffixes)}")
            found += map(Input, files)
        elif path.is_file():
            found.append(Input(path))
        else:
            raise RunError(f"file not found: {path}")
    return found
