"""User tables: CSV files and NumPy's .npy and .npz files."""

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
from parnassus.data.files.idx import read_gzipped
from parnassus.data.preparation.partition import train_test_dataset
from parnassus.data.splits import Dataset, Split

MAX_CLASSES = 20  # a column with more distinct integers is a quantity, not a class
MAX_CLASS_NAMES = 10_000

Value = TypeVar("Value", str, int)
CsvRow = tuple[int, list[str]]  # line in the file, cells


def csv_file(path: Path | str, *, target: str | None = None, test: float = 0.2, seed: int = 0) -> Dataset:
    """A table of numbers; the target is the column `target`, by default the last one.

    The first line may contain the column names. A target of words, or of integers with up to 20 distinct values, is a
    class; any other target is a quantity.
    """
    table = CsvTable.read(path)
    if len(table.rows) < 2:
        raise DataError(f"{path} has one row of data; at least two are required, for training and testing.")
    column = table.width - 1 if target is None else table.column_index(target)
    features = [index for index in range(table.width) if index != column]
    if not features:
        raise DataError(f"{path} has only one column; features and a target are required.")
    x = table.numbers(features).float()
    y, classes = table.target(column)
    return train_test_dataset(
        x,
        y,
        name=table.path.stem,
        test=round(test * len(x)),
        classes=classes,
        columns=tuple(table.columns[index] for index in features) if table.columns else (),
        target=table.columns[column] if table.columns else "",
        seed=seed,
    )


@dataclass(frozen=True)
class CsvTable:
    """A CSV file as text: the cells of every row with its line in the file, and the column names.

    `columns` is empty if the first line has no names. One row is enough, for `parnassus explain`.
    """

    path: Path
    columns: tuple[str, ...]
    rows: list[CsvRow]

    @classmethod
    def read(cls, path: Path | str) -> "CsvTable":
        return cls.parse(read_gzipped(Path(path)), Path(path))

    @classmethod
    def parse(cls, content: bytes, path: Path) -> "CsvTable":
        """The table in the bytes of a file; `path` appears in error messages."""
        header, rows = _rows(content, path)
        return cls(path, tuple(header), rows)

    @property
    def width(self) -> int:
        """Number of columns."""
        return len(self.rows[0][1])

    def column_index(self, name: str) -> int:
        """Index of the column with this name, from 0."""
        if name not in self.columns:
            known = ", ".join(self.columns) or "not named"
            raise DataError(f"{self.path} has no column {name!r}; its columns are {known}.")
        return self.columns.index(name)

    def numbers(self, indices: Sequence[int]) -> Float[Tensor, "rows columns"]:
        """The columns with these indices in double precision; errors name the line of a cell that is not finite."""
        for line, cells in self.rows:
            for index in indices:
                if not (_is_number(cells[index]) and math.isfinite(float(cells[index]))):
                    name, cell = repr(self.columns[index]) if self.columns else index + 1, cells[index]
                    raise DataError(
                        f"{self.path}, line {line}, column {name}: {cell or 'an empty cell'} is not a finite number."
                    )
        return torch.tensor([[float(cells[index]) for index in indices] for _, cells in self.rows], dtype=torch.float64)

    def target(self, index: int) -> tuple[Tensor, tuple[str, ...]]:
        """A column as a target: class indices with the names of the classes, or a quantity without names."""
        cells = [(line, row[index]) for line, row in self.rows]
        for line, cell in cells:
            if not cell or (_is_number(cell) and not math.isfinite(float(cell))):
                raise DataError(f"{self.path}, line {line}: the target is {cell or 'empty'}.")
        if not all(_is_number(cell) for _, cell in cells):
            return _class_indices([cell for _, cell in cells])
        values = [float(cell) for _, cell in cells]
        if len(set(values)) <= MAX_CLASSES and all(value.is_integer() for value in values):
            return _class_indices([int(value) for value in values])
        return torch.tensor(values, dtype=torch.float32)[:, None], ()


def array_file(path: Path | str, *, test: float = 0.2, seed: int = 0) -> Dataset:
    """A .npy of examples, or a .npz with x and optional y, or with x_train, x_test and optional y_train, y_test.

    Arrays of bytes are pixels, scaled to [0, 1]; images may have channels last or none. Integer y are classes.
    """
    path = Path(path)
    arrays = _arrays(path)
    if "x" in arrays:
        split = _split(arrays, "x", "y", path)
        classes = _class_names(split)
        return train_test_dataset(
            split.x, split.y, name=path.stem, test=round(test * len(split)), classes=classes, seed=seed
        )
    if {"x_train", "x_test"} <= arrays.keys():
        train, held_out = (_split(arrays, f"x_{part}", f"y_{part}", path) for part in ("train", "test"))
        return Dataset(path.stem, train, held_out, _class_names(train))
    raise DataError(
        f"{path} must contain x, or x_train and x_test; it contains {', '.join(sorted(arrays)) or 'nothing'}."
    )


def _rows(content: bytes, path: Path) -> tuple[list[str], list[CsvRow]]:
    """The column names, empty if there are none, and the rows."""
    try:
        text = content.decode("utf-8-sig")
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
            raise DataError(f"{path}, line {line}: expected {width} columns, got {len(cells)}.")
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
        with path.open("rb") as file:  # np.load does not close a damaged file that it has opened
            content = np.load(file, allow_pickle=False)
            return {"x": content} if isinstance(content, np.ndarray) else dict(content)
    except ValueError as error:
        raise DataError(f"{path} contains Python objects or is damaged: save plain arrays of numbers.") from error
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
            raise DataError(f"{path}: {name} contains NaN or infinite numbers.")
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
    """0, 1, 2, … if y contains class labels."""
    if split.y is None or split.y.is_floating_point() or split.y.ndim != 1:
        return ()
    count = int(split.y.max()) + 1
    return tuple(str(label) for label in range(count)) if count <= MAX_CLASS_NAMES else ()
