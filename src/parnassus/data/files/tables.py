"""User tables: CSV files as features and a target."""

from collections.abc import Sequence
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import TypeVar

import torch
from jaxtyping import Int
from torch import Tensor

from parnassus.data.errors import DataError
from parnassus.data.files.cells import is_missing, is_number, looks_like_date
from parnassus.data.files.csv_table import CsvTable
from parnassus.data.preparation.duplicates import notify_duplicates
from parnassus.data.preparation.partition import mix_sorted_classes, train_test_dataset
from parnassus.data.preparation.table_columns import CategoryEncoding
from parnassus.data.preparation.table_preparation import MissingCells, TablePreparation
from parnassus.data.splits import Dataset
from parnassus.notices import notify

MAX_CLASSES = 20  # a column with more distinct integers is a quantity, not a class

Value = TypeVar("Value", str, int)


def csv_file(
    path: Path | str,
    *,
    target: str | None = None,
    columns: Sequence[str] = (),
    drop: Sequence[str] = (),
    missing: MissingCells = "impute",
    categories: CategoryEncoding = "one_hot",
    test: float = 0.2,
    seed: int = 0,
) -> Dataset:
    """A table with features and a target, the column `target`, by default the last one.

    The features are `columns`, by default all others, without those in `drop`. Text columns become categories and dates
    become days; missing cells are imputed from the training rows, or their rows dropped. A target of words, or of
    integers with up to 20 distinct values, is a class; any other target is a quantity. The first line may contain the
    column names. What is done is stored as `Dataset.table`, so that it can be done to new rows.
    """
    table = CsvTable.read(path)
    features, column = choose_columns(table, target, columns, drop)
    table = _with_known_target(table, column)
    if missing == "drop":
        table = _without_missing_cells(table, features)
    if len(table.rows) < 2:
        raise DataError(f"{path} has one row of data; at least two are required, for training and testing.")
    y, classes = parse_target(table, column)
    name, held_out = table.path.stem, round(test * len(table.rows))
    rows = train_test_dataset(torch.arange(len(y)), y, name=name, test=held_out, classes=classes, seed=seed)
    preparation = TablePreparation.fit(
        table.take(rows.train.x.tolist()),
        features,
        target=table.columns[column],
        missing=missing,
        categories=categories,
        are_requested=bool(columns),
    )
    x = preparation.encode(table).float()
    kind = f"{len(classes)} class{'es' * (len(classes) != 1)}" if classes else "a quantity"
    notify(f"{table.path.name}: the target is {preparation.target} ({kind}); {preparation.describe(table)}")
    dataset = replace(
        rows.map(lambda chosen: x[chosen]), columns=preparation.features, target=preparation.target, table=preparation
    )
    notify_duplicates(dataset)
    return mix_sorted_classes(dataset, seed)


def choose_columns(
    table: CsvTable, target: str | None, columns: Sequence[str] = (), drop: Sequence[str] = ()
) -> tuple[list[int], int]:
    """The indices of the feature columns, and of the target."""
    column = table.width - 1 if target is None else table.column_index(target)
    left_out = {column, *map(table.column_index, drop)}
    if target is None and not columns and column in map(table.column_index, drop):
        raise DataError(f"the last column, {table.columns[column]!r}, is the target: name another with --target.")
    if column in map(table.column_index, columns):
        raise DataError(f"the target {table.columns[column]!r} cannot be a feature too: name another with --target.")
    chosen = map(table.column_index, columns) if columns else range(table.width)
    features = [index for index in dict.fromkeys(chosen) if index not in left_out]
    if not features:
        raise DataError(f"{table.path} has only one column; features and a target are required.")
    return features, column


def parse_target(table: CsvTable, index: int) -> tuple[Tensor, tuple[str, ...]]:
    """A column as a target: class indices with the names of the classes, or a quantity without names."""
    cells = list(enumerate(table.cells(index)))
    words = [(row, cell) for row, cell in cells if not is_number(cell)]
    for row, cell in cells:
        if is_missing(cell) or (is_number(cell) and not isfinite(float(cell))):
            raise DataError(f"{table.path}, line {table.rows[row][0]}: the target is {cell or 'empty'}.")
    if words and all(looks_like_date(cell) for _, cell in cells):
        raise DataError(f"{table.path}: the target {table.columns[index]!r} has dates: name another with --target.")
    if words and 2 * len(words) < len(cells):
        row, cell = words[0]
        raise DataError(f"{table.place(row, index)}: the target is {cell}, and most of its values are numbers.")
    if words:
        return class_indices([cell for _, cell in cells])
    values = [float(cell) for _, cell in cells]
    if len(set(values)) <= MAX_CLASSES and all(value.is_integer() for value in values):
        return class_indices([int(value) for value in values])
    return torch.tensor(values, dtype=torch.float32)[:, None], ()


def class_indices(values: Sequence[Value]) -> tuple[Int[Tensor, " rows"], tuple[str, ...]]:
    """The index of each value among the sorted distinct values, and their names."""
    number = {value: number for number, value in enumerate(sorted(set(values)))}
    return torch.tensor([number[value] for value in values]), tuple(str(value) for value in number)


def count_rows(count: int) -> str:
    return f"{count} row{'s' * (count != 1)}"


def _with_known_target(table: CsvTable, column: int) -> CsvTable:
    known = [row for row, cell in enumerate(table.cells(column)) if not is_missing(cell)]
    if not known:
        raise DataError(f"{table.path}: the target {table.columns[column]!r} is empty in all rows.")
    count = len(table.rows) - len(known)
    if count:
        notify(f"{table.path.name}: {count_rows(count)} without the target {table.columns[column]!r} left out")
    return table.take(known)


def _without_missing_cells(table: CsvTable, features: Sequence[int]) -> CsvTable:
    complete = [
        row for row, (_, cells) in enumerate(table.rows) if not any(is_missing(cells[index]) for index in features)
    ]
    if not complete:
        raise DataError(f"{table.path} has no row without missing cells: leave columns out, or use --missing impute.")
    count = len(table.rows) - len(complete)
    if count:
        notify(f"{table.path.name}: {count_rows(count)} with missing cells left out")
    return table.take(complete)
