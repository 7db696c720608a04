"""Tables of the user: CSV files and NumPy's .npy and .npz files."""

import csv
import math
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from parnassus.data.errors import DataError
from parnassus.data.idx import read_gzipped
from parnassus.data.partition import hold_out
from parnassus.data.splits import Dataset, Split

MOST_CLASSES = 20  # a column with more distinct integers is a quantity, not a class
MOST_NAMES = 10_000

Value = TypeVar("Value", str, int)
Row = tuple[int, list[str]]  # its line in the file, its cells


def csv_file(path: Path | str, *, target: str | None = None, test: float = 0.2, seed: int = 0) -> Dataset:
    """A table of numbers; the column `target`, or else the last one, is the target.

    The first line may name the columns. Words and up to 20 different whole numbers in the target are classes, anything
    else is a quantity.
    """
    table = Table.read(path)
    if len(table.rows) < 2:
        raise DataError(f"{path} has one row of data; at least two are needed, for training and testing.")
    column = table.width - 1 if target is None else table.place(target)
    features = [place for place in range(table.width) if place != column]
    if not features:
        raise DataError(f"{path} has one column only: features and a target are needed.")
    x = table.numbers(features).float()
    y, classes = table.target(column)
    return hold_out(
        x,
        y,
        name=table.path.stem,
        test=round(test * len(x)),
        classes=classes,
        columns=tuple(table.columns[place] for place in features) if table.columns else (),
        target=table.columns[column] if table.columns else "",
        seed=seed,
    )


@dataclass(frozen=True)
class Table:
    """A CSV file as it stands: the cells of every row, with its line in the file, under the names of the columns.

    Without names in the first line `columns` is empty. One row is enough: it may be what is to be explained.
    """

    path: Path
    columns: tuple[str, ...]
    rows: list[Row]

    @classmethod
    def read(cls, path: Path | str) -> "Table":
        header, rows = _rows(Path(path))
        return cls(Path(path), tuple(header), rows)

    @property
    def width(self) -> int:
        """How many columns there are."""
        return len(self.rows[0][1])

    def place(self, name: str) -> int:
        """Where the column of this name is, counted from 0."""
        if name not in self.columns:
            known = ", ".join(self.columns) or "not named"
            raise DataError(f"{self.path} has no column {name!r}; its columns are {known}.")
        return self.columns.index(name)

    def numbers(self, places: Sequence[int]) -> Float[Tensor, "rows columns"]:
        """These columns in double precision; a cell that is not a finite number is reported with its line."""
        for line, cells in self.rows:
            for place in places:
                if not (_is_number(cells[place]) and math.isfinite(float(cells[place]))):
                    name, cell = repr(self.columns[place]) if self.columns else place + 1, cells[place]
                    raise DataError(
                        f"{self.path}, line {line}, column {name}: {cell or 'an empty cell'} is not a finite number."
                    )
        return torch.tensor([[float(cells[place]) for place in places] for _, cells in self.rows], dtype=torch.float64)

    def target(self, place: int) -> tuple[Tensor, tuple[str, ...]]:
        """A column as a target: class indices with the names of the classes, or a quantity without names."""
        cells = [(line, row[place]) for line, row in self.rows]
        for line, cell in cells:
            if not cell or (_is_number(cell) and not math.isfinite(float(cell))):
                raise DataError(f"{self.path}, line {line}: the target is {cell or 'empty'}.")
        if not all(_is_number(cell) for _, cell in cells):
            return _class_indices([cell for _, cell in cells])
        values = [float(cell) for _, cell in cells]
        if len(set(values)) <= MOST_CLASSES and all(value.is_integer() for value in values):
            return _class_indices([int(value) for value in values])
        return torch.tensor(values, dtype=torch.float32)[:, None], ()


def array_file(path: Path | str, *, test: float = 0.2, seed: int = 0) -> Dataset:
    """A .npy of examples, or a .npz with x and perhaps y, or with x_train, x_test and perhaps y_train, y_test.

    Bytes are pixels and come out in [0, 1]; pictures may have their channels last or none. Whole-number y are classes.
    """
    path = Path(path)
    arrays = _arrays(path)
    if "x" in arrays:
        split = _split(arrays, "x", "y", path)
        classes = _class_names(split)
        return hold_out(split.x, split.y, name=path.stem, test=round(test * len(split)), classes=classes, seed=seed)
    if {"x_train", "x_test"} <= arrays.keys():
        train, held_out = (_split(arrays, f"x_{part}", f"y_{part}", path) for part in ("train", "test"))
        return Dataset(path.stem, train, held_out, _class_names(train))
    raise DataError(f"{path} must hold x, or x_train and x_test; it holds {', '.join(sorted(arrays)) or 'nothing'}.")


def _rows(path: Path) -> tuple[list[str], list[Row]]:
    """The names of the columns, or none, and the rows."""
    try:
        text = read_gzipped(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 text: byte {error.start} is invalid.") from error
    first = text.split("\n", maxsplit=1)[0]
    reader = csv.reader(text.splitlines(), delimiter=max(",;\t", key=first.count))
    rows = [(reader.line_num, [cell.strip() for cell in cells]) for cells in reader if cells]
    header = rows.pop(0)[1] if rows and not any(_is_number(cell) for cell in rows[0][1]) else []
    if not rows:
        raise DataError(f"{path} has no rows of data.")
    width = len(header or rows[0][1])
    for line, cells in rows:
        if len(cells) != width:
            raise DataError(f"{path}, line {line}: {len(cells)} columns, but {width} above.")
    return header, rows


def _class_indices(values: Sequence[Value]) -> tuple[Int[Tensor, " rows"], tuple[str, ...]]:
    """The index of each value among the sorted distinct values, and their names."""
    number = {value: number for number, value in enumerate(sorted(set(values)))}
    return torch.tensor([number[value] for value in values]), tuple(str(value) for value in number)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _arrays(path: Path) -> dict[str, NDArray[np.generic]]:
    try:
        with path.open("rb") as file:  # np.load leaves a damaged file open that it opened itself
            content = np.load(file, allow_pickle=False)
            return {"x": content} if isinstance(content, np.ndarray) else dict(content)
    except ValueError as error:
        raise DataError(f"{path} holds Python objects or is damaged: save plain arrays of numbers.") from error
    except (OSError, EOFError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"{path} is not a complete NumPy file ({error}).") from error


def _split(arrays: dict[str, NDArray[np.generic]], x_name: str, y_name: str, path: Path) -> Split:
    x, y = arrays[x_name], arrays.get(y_name)
    for name, array in ((x_name, x), (y_name, y)):
        if array is not None and (array.dtype.kind not in "biuf" or array.ndim == 0 or not array.size):
            raise DataError(
                f"{path}: {name} must be an array of numbers; it has type {array.dtype}, shape {array.shape}."
            )
        if array is not None and not np.isfinite(array).all():
            raise DataError(f"{path}: {name} holds NaN or infinite numbers.")
    if y is not None and len(y) != len(x):
        raise DataError(f"{path}: {x_name} has {len(x)} rows and {y_name} {len(y)}.")
    if y is not None and y.dtype.kind != "f" and y.ndim == 1 and int(y.min()) < 0:
        raise DataError(f"{path}: integers in {y_name} are class indices from 0; one is {int(y.min())}.")
    return Split(_examples(x), None if y is None else _targets(y))


def _examples(x: NDArray[np.generic]) -> Tensor:
    examples = torch.from_numpy(x.astype(np.float32)) / (255 if x.dtype == np.uint8 else 1)
    if examples.ndim == 4 and examples.shape[3] in (1, 3) and examples.shape[1] not in (1, 3):
        return examples.permute(0, 3, 1, 2).contiguous()
    return examples[:, None] if x.dtype == np.uint8 and examples.ndim == 3 else examples


def _targets(y: NDArray[np.generic]) -> Tensor:
    return torch.from_numpy(y.astype(np.float32 if y.dtype.kind == "f" else np.int64))


def _class_names(split: Split) -> tuple[str, ...]:
    """0, 1, 2, … where y holds labels."""
    if split.y is None or split.y.is_floating_point() or split.y.ndim != 1:
        return ()
    count = int(split.y.max()) + 1
    return tuple(str(label) for label in range(count)) if count <= MOST_NAMES else ()
