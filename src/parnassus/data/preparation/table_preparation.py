"""How the columns of a table become features: fitted to training rows, saved with a run, applied to new rows."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.data.errors import DataError
from parnassus.data.files.cells import is_missing
from parnassus.data.files.csv_table import CsvTable
from parnassus.data.preparation.table_columns import CategoryEncoding, PreparedColumn, column_from_plain, fit_column
from parnassus.notices import notify

MissingCells: TypeAlias = Literal["impute", "drop"]


@dataclass(frozen=True)
class TablePreparation:
    """The features of a table, in order, and the column that is predicted.

    `missing` says whether missing cells are imputed, or their rows dropped.
    """

    columns: tuple[PreparedColumn, ...]
    target: str = ""
    missing: MissingCells = "impute"

    @classmethod
    def fit(
        cls,
        table: CsvTable,
        features: Sequence[int],
        *,
        target: str = "",
        missing: MissingCells = "impute",
        categories: CategoryEncoding = "one_hot",
        are_requested: bool = False,
    ) -> "TablePreparation":
        """Fit the columns with the indices `features` to the rows of a table; unusable columns are left out."""
        fitted = {index: fit_column(table, index, categories, is_requested=are_requested) for index in features}
        for index, column in fitted.items():
            if isinstance(column, str):
                notify(f"{table.path.name}: column {table.columns[index]!r} is left out: {column}")
        columns = tuple(column for column in fitted.values() if not isinstance(column, str))
        if not columns:
            raise DataError(f"{table.path} has no column that can be a feature.")
        return cls(columns, target, missing)

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the features."""
        return tuple(name for column in self.columns for name in column.features)

    def indices(self, table: CsvTable) -> list[int]:
        """The indices of the columns in a table, which may be in another order and have others beside them."""
        return [table.column_index(column.name) for column in self.columns]

    def complete_rows(self, table: CsvTable) -> list[int]:
        """The indices of the rows that are used: all of them, or those without missing cells."""
        indices = self.indices(table)
        if self.missing == "impute":
            return list(range(len(table.rows)))
        return [
            row for row, (_, cells) in enumerate(table.rows) if not any(is_missing(cells[index]) for index in indices)
        ]

    def encode(self, table: CsvTable) -> Float[Tensor, "rows features"]:
        """The features of all rows, in double precision."""
        parts = [column.encode(table, index) for column, index in zip(self.columns, self.indices(table), strict=True)]
        rows = [[value for part in parts for value in part[row]] for row in range(len(table.rows))]
        return torch.tensor(rows, dtype=torch.float64).view(len(rows), len(self.features))

    def describe(self, table: CsvTable) -> str:
        """What is done with the columns of a table, in one line."""
        kinds = {"number": "numbers", "category": "categories", "date": "dates"}
        plain = [(str(column.to_plain()["kind"]), column.describe()) for column in self.columns]
        parts = [
            f"{kinds[kind]}: {', '.join(text for each, text in plain if each == kind)}"
            for kind in kinds
            if any(each == kind for each, _ in plain)
        ]
        return "; ".join([*parts, *self._describe_missing(table)])

    def _describe_missing(self, table: CsvTable) -> list[str]:
        missing = {
            column.name: (count, column.fill_text)
            for column, index in zip(self.columns, self.indices(table), strict=True)
            if (count := sum(map(is_missing, table.cells(index))))
        }
        if not missing or self.missing == "drop":
            return []
        filled = (f"{count} in {name} by {fill}" for name, (count, fill) in missing.items())
        return [f"missing cells replaced: {', '.join(filled)}"]

    def to_plain(self) -> dict[str, object]:
        """The preparation in a form that JSON can represent."""
        return {
            "columns": [column.to_plain() for column in self.columns],
            "target": self.target,
            "missing": self.missing,
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, object]) -> "TablePreparation":
        """The preparation that `to_plain` describes; raises a ValueError for any other content."""
        match dict(plain):
            case {
                "columns": [*columns],
                "target": str(target),
                "missing": "impute" | "drop" as missing,
                **rest,
            } if columns and not rest:
                prepared = tuple(column_from_plain(column) for column in columns if isinstance(column, dict))
                repeated = [name for name, count in Counter(each.name for each in prepared).items() if count > 1]
                if repeated or len(prepared) < len(columns):
                    raise ValueError(f"columns must be distinct mappings; got {columns}")
                return cls(prepared, target, missing)
        raise ValueError(f"a preparation must have columns, a target and a rule for missing cells; got {dict(plain)}")
