"""What can be done with a trained run: the dataclasses that an experiment declares beside `Experiment`.

Their typed fields are the flags of `parnassus sample`, `predict` and `evaluate`; the lab uses the same.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

from parnassus.runs.errors import RunError
from parnassus.train.trained import Trained

if TYPE_CHECKING:
    from torch import Tensor, nn

Row: TypeAlias = Mapping[str, str | float | int | list[float] | None]
"""One line of a table: a value for each column; lists stand in JSON and CSV only."""


class Sample(Protocol):
    """Draws samples from a generative model; may have the `columns` of the figure.

    One that draws step by step may have a `path(model)`, which yields every state on the way and last the samples.
    """

    def __call__(self, model: "nn.Module", /) -> "Tensor": ...


@runtime_checkable
class TextSample(Protocol):
    """Generates text: yields pieces as they come."""

    def write(self, model: "nn.Module", /) -> Iterable[str]: ...


@dataclass(frozen=True)
class Input:
    """Something to predict for: a file, or what standard input holds (`path` is None)."""

    path: Path | None = None

    @property
    def name(self) -> str:
        return "-" if self.path is None else str(self.path)

    def read_bytes(self) -> bytes:
        return sys.stdin.buffer.read() if self.path is None else self.path.read_bytes()

    def lines(self) -> Iterator[str]:
        """The lines of a text, without their ends."""
        if self.path is None:
            yield from (line.rstrip("\n") for line in sys.stdin)
            return
        try:
            yield from self.path.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError as error:
            raise RunError(f"{self.path} is not UTF-8 text: {error.reason} at byte {error.start}") from None


class Predict(Protocol):
    """Answers for new input: rows of a table, one or more for each input, as they are worked out."""

    suffixes: tuple[str, ...]  # of the files it takes from a folder

    def __call__(self, trained: Trained, inputs: Sequence[Input], /) -> Iterable[Row]: ...


class Evaluate(Protocol):
    """Measures trained runs, on other data or over episodes: rows of a table, one or more for each run."""

    def __call__(self, runs: Sequence[Trained], /) -> Sequence[Row]: ...


def find_inputs(names: Sequence[str], suffixes: tuple[str, ...]) -> list[Input]:
    """The inputs that arguments stand for: files, the fitting files of folders, `-` for standard input."""
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
            raise RunError(f"there is no file {path}")
    return found
