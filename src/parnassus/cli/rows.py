"""Which rows to explain: the features of a table for a predictor, rows by their number, and a background."""

from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.cli.predictor import Predictor
from parnassus.data import DataError, Split, open_data
from parnassus.data.tables import Table
from parnassus.runs.errors import RunError

TABLES = (".csv", ".tsv", ".csv.gz", ".tsv.gz")


@dataclass(frozen=True)
class Features:
    """Rows to choose from, rows for a background, and the names of the features and of the classes."""

    about: str
    rows: Float[Tensor, "rows features"]
    others: Float[Tensor, "others features"]
    columns: tuple[str, ...]
    classes: tuple[str, ...] = ()
    truths: tuple[str, ...] = ()
    """What was to be predicted of each row, where it is known."""
    lines: tuple[int, ...] = ()
    """Where each row stands in its file."""

    def chosen(self, spec: str) -> list[int]:
        """Row numbers from 1 as a person writes them: 17, or 1,2,5-9, or all."""
        if spec == "all":
            return list(range(1, len(self.rows) + 1))
        found: list[int] = []
        for part in spec.split(","):
            first, dash, last = part.strip().partition("-")
            if not first.isdecimal() or (dash and not (last.isdecimal() and int(first) <= int(last))):
                raise RunError(f"--row takes a number such as 17, several such as 1,2,5-9, or all; got {spec!r}")
            numbers = range(int(first), int(last or first) + 1)
            if not 1 <= numbers[0] <= numbers[-1] <= len(self):
                raise RunError(f"there is no row {part.strip()}: {self.about} has rows 1 to {len(self)}")
            found.extend(numbers)
        return list(dict.fromkeys(found))

    def __len__(self) -> int:
        return len(self.rows)


def open_features(spec: str, predictor: Predictor, targets: tuple[str, ...] = ()) -> Features:
    """The features that a predictor takes: of all rows of a CSV file in its order; of any other data the test rows."""
    if spec.lower().endswith(TABLES):
        if not Path(spec).expanduser().is_file():
            raise DataError(f"there is no file {spec}")
        return _from_table(Table.read(Path(spec).expanduser()), predictor, targets)
    data = open_data(spec)
    if targets:
        raise DataError(f"--target names columns of a .csv file; {spec} is none")
    others = data.train.x.flatten(1).double()
    columns = data.columns or tuple(f"feature {place}" for place in range(1, others.shape[1] + 1))
    _demand_count(predictor, others.shape[1], spec)
    chosen = data.test if len(data.test) else data.train
    return Features(
        data.name, chosen.x.flatten(1).double(), others, columns, data.classes, _truths(chosen, data.classes)
    )


def drawn(others: Float[Tensor, "others features"], count: int, *, seed: int) -> Float[Tensor, "count features"]:
    """`count` of these rows without replacement, or all of them."""
    if count < 1:
        raise RunError(f"a background needs at least one row; got --background {count}")
    order = torch.randperm(len(others), generator=torch.Generator().manual_seed(seed))
    return others[order[:count]]


def _truths(split: Split, classes: tuple[str, ...]) -> tuple[str, ...]:
    if split.y is None or (not classes and split.y.flatten(1).shape[1] != 1):
        return ()
    return tuple(classes[int(y)] if classes else f"{float(y):.5g}" for y in split.y)


def _from_table(table: Table, predictor: Predictor, targets: tuple[str, ...]) -> Features:
    places = _features(table, predictor, targets)
    try:
        rows = table.numbers(places)
    except DataError as error:
        hint = "" if predictor.columns else ": name columns that are no features with --target"
        raise DataError(f"{str(error).rstrip('.')}, and features must be numbers{hint}") from None
    columns = tuple(table.columns[place] if table.columns else f"column {place + 1}" for place in places)
    rest = [place for place in range(table.width) if place not in places]
    truths = tuple(cells[rest[0]] for _, cells in table.rows) if len(rest) == 1 else ()
    classes = table.target(rest[0])[1] if truths and all(truths) else ()
    return Features(table.path.name, rows, rows, columns, classes, truths, tuple(line for line, _ in table.rows))


def _features(table: Table, predictor: Predictor, targets: tuple[str, ...]) -> list[int]:
    """Those that the model names; else all but the targets; else all that it takes; else all but the last."""
    left_out = {table.place(name) for name in targets}
    if predictor.columns and table.columns:
        missing = [name for name in predictor.columns if name not in table.columns]
        if missing:
            raise DataError(f"{table.path} has no column {missing[0]!r}, which {predictor.name} was trained with")
        return [table.place(name) for name in predictor.columns]
    if not targets and predictor.features != table.width:
        left_out = {table.width - 1}
    places = [place for place in range(table.width) if place not in left_out]
    _demand_count(predictor, len(places), str(table.path))
    return places


def _demand_count(predictor: Predictor, found: int, where: str) -> None:
    if predictor.features is not None and found < predictor.features:
        raise DataError(
            f"{predictor.name} takes {predictor.features} features, and {where} has only {found} columns for them"
        )
    if predictor.features not in (None, found):
        raise DataError(
            f"{predictor.name} takes {predictor.features} features, and {where} has {found}; "
            "name the columns that are none with --target"
        )
