"""The data of `parnassus explain`: features of a table for a predictor, rows to explain, and a background."""

from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.data import DataError, Dataset, Split, open_data
from parnassus.data.files.cells import is_missing
from parnassus.data.files.csv_table import CsvTable
from parnassus.data.files.tables import count_rows, parse_target
from parnassus.data.preparation.table_preparation import TablePreparation
from parnassus.data.table_settings import is_table_file
from parnassus.notices import notify
from parnassus.runs.errors import RunError
from parnassus.shapley.commands.predictors import Predictor


@dataclass(frozen=True)
class FeatureTable:
    """Rows to explain, candidates for a background, and the names of features and classes."""

    source: str
    rows: Float[Tensor, "rows features"]
    candidates: Float[Tensor, "others features"]
    columns: tuple[str, ...]
    classes: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    """The true target of each row, where it is known."""
    lines: tuple[int, ...] = ()
    """The line of each row in its file."""

    @classmethod
    def from_csv(cls, table: CsvTable, predictor: Predictor, targets: tuple[str, ...] = ()) -> "FeatureTable":
        """The columns of a table that are the features of a predictor."""
        if predictor.table is not None:
            return cls._from_prepared(table, predictor.table, predictor.name)
        indices = _feature_columns(table, predictor, targets)
        try:
            rows = table.numbers(indices, allow_missing=True)
        except DataError as error:
            hint = "" if predictor.columns else ": name columns that are not features with --target"
            raise DataError(f"{str(error).rstrip('.')}, and features must be numbers{hint}") from None
        columns = tuple(table.columns[index] for index in indices)
        rest = [index for index in range(table.width) if index not in indices]
        true_values = tuple(table.cells(rest[0])) if len(rest) == 1 else ()
        classes = parse_target(table, rest[0])[1] if true_values and not any(map(is_missing, true_values)) else ()
        lines = tuple(line for line, _ in table.rows)
        return cls(table.path.name, rows, rows, columns, classes, true_values, lines)

    @classmethod
    def _from_prepared(cls, table: CsvTable, preparation: TablePreparation, predictor: str) -> "FeatureTable":
        """The features of a table whose columns are prepared as in the training of a run."""
        for column in preparation.columns:
            if column.name not in table.columns:
                raise DataError(f"{table.path} has no column {column.name!r}, with which {predictor} was trained")
        complete = preparation.complete_rows(table)
        if not complete:
            raise DataError(f"{table.path} has no row without missing cells, and {predictor} was trained without them")
        if len(complete) < len(table.rows):
            notify(f"{table.path.name}: {count_rows(len(table.rows) - len(complete))} with missing cells left out")
        kept = table.take(complete)
        rows, target = preparation.encode(kept), preparation.target
        notify(f"{table.path.name}: prepared as in training; {preparation.describe(kept)}")
        true_values = tuple(kept.cells(table.column_index(target))) if target in table.columns else ()
        lines = tuple(line for line, _ in kept.rows)
        return cls(table.path.name, rows, rows, preparation.features, (), true_values, lines)

    def select(self, spec: str) -> list[int]:
        """Row numbers, from 1, of a selection such as 17, or 1,2,5-9, or all."""
        if spec == "all":
            return list(range(1, len(self.rows) + 1))
        selected: list[int] = []
        for part in spec.split(","):
            first, dash, last = part.strip().partition("-")
            if not first.isdecimal() or (dash and not (last.isdecimal() and int(first) <= int(last))):
                raise RunError(f"--row must be a number such as 17, several such as 1,2,5-9, or all; got {spec!r}")
            numbers = range(int(first), int(last or first) + 1)
            if not 1 <= numbers[0] <= numbers[-1] <= len(self):
                raise RunError(f"there is no row {part.strip()}: {self.source} has rows 1 to {len(self)}")
            selected.extend(numbers)
        return list(dict.fromkeys(selected))

    def __len__(self) -> int:
        return len(self.rows)


def open_features(spec: str, predictor: Predictor, targets: tuple[str, ...] = ()) -> FeatureTable:
    """The features that a predictor takes: all rows of a CSV file in order, or the test rows of other data."""
    if is_table_file(spec):
        if not Path(spec).expanduser().is_file():
            raise DataError(f"there is no file {spec}")
        return FeatureTable.from_csv(CsvTable.read(Path(spec).expanduser()), predictor, targets)
    data = open_data(spec)
    if targets:
        raise DataError(f"--target names columns of a table; {spec} is not a .csv or .tsv file")
    return features_of_test_rows(data, predictor)


def features_of_test_rows(data: Dataset, predictor: Predictor) -> FeatureTable:
    """The test rows of a data set; without a test split, the training rows."""
    train = data.train.x.flatten(1).double()
    columns = data.columns or tuple(f"feature {index}" for index in range(1, train.shape[1] + 1))
    _check_count(predictor, train.shape[1], data.name)
    explained = data.test if len(data.test) else data.train
    return FeatureTable(
        data.name, explained.x.flatten(1).double(), train, columns, data.classes, _targets(explained, data.classes)
    )


def sample_rows(
    candidates: Float[Tensor, "others features"], count: int, *, seed: int
) -> Float[Tensor, "count features"]:
    """`count` of these rows without replacement, or all of them."""
    if count < 1:
        raise RunError(f"--background must be at least one row; got --background {count}")
    order = torch.randperm(len(candidates), generator=torch.Generator().manual_seed(seed))
    return candidates[order[:count]]


def _targets(split: Split, classes: tuple[str, ...]) -> tuple[str, ...]:
    if split.y is None or (not classes and split.y.flatten(1).shape[1] != 1):
        return ()
    return tuple(classes[int(y)] if classes else f"{float(y):.5g}" for y in split.y)


def _feature_columns(table: CsvTable, predictor: Predictor, targets: tuple[str, ...]) -> list[int]:
    """The model's named columns; otherwise all but the targets, as many as it takes, or all but the last."""
    excluded = {table.column_index(name) for name in targets}
    if predictor.columns and table.has_header:
        missing = [name for name in predictor.columns if name not in table.columns]
        if missing:
            raise DataError(f"{table.path} has no column {missing[0]!r}, with which {predictor.name} was trained")
        return [table.column_index(name) for name in predictor.columns]
    if not targets and predictor.features != table.width:
        excluded = {table.width - 1}
    indices = [index for index in range(table.width) if index not in excluded]
    _check_count(predictor, len(indices), str(table.path))
    return indices


def _check_count(predictor: Predictor, found: int, source: str) -> None:
    if predictor.features is not None and found < predictor.features:
        raise DataError(f"{predictor.name} takes {predictor.features} features, and {source} has only {found}")
    if predictor.features not in (None, found):
        raise DataError(
            f"{predictor.name} takes {predictor.features} features, and {source} has {found}; "
            "name columns that are not features with --target"
        )
