"""The settings of experiments that read tables: the data, its target and features, and how cells become numbers."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from parnassus.data.errors import DataError
from parnassus.data.files.tables import csv_file
from parnassus.data.loading import check_parts, open_data
from parnassus.data.splits import Dataset
from parnassus.setting_types import TableData, Text

TABLE_SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz")


@dataclass(frozen=True)
class TableSettings:
    """The flags of an experiment that reads a table, as a base class of its settings.

    >>> TableSettings("wine").load_data().shape
    (13,)
    """

    data: TableData = "iris"  # name of a data set, or path of a .csv file
    target: Text | None = None  # column to predict, for a .csv file; by default the last one
    columns: tuple[Text, ...] = ()  # columns that are features, for a .csv file; by default all others
    drop: tuple[Text, ...] = ()  # columns to leave out
    missing: Literal["impute", "drop"] = "impute"  # missing cells: median or most frequent value, or drop their rows
    categories: Literal["one_hot", "ordinal"] = "one_hot"  # features for a column of text

    def load_data(self, image_size: int | None = None) -> Dataset:
        """The data set; the settings for columns apply to .csv files, `image_size` to folders of images."""
        if is_table_file(self.data) and Path(self.data).expanduser().exists():
            table = csv_file(
                Path(self.data).expanduser(),
                target=self.target,
                columns=self.columns,
                drop=self.drop,
                missing=self.missing,
                categories=self.categories,
            )
            return check_parts(table)
        if self.target is not None or self.columns or self.drop:
            raise DataError(f"--target, --columns and --drop are for .csv and .tsv files; the data are {self.data}.")
        return open_data(self.data, size=image_size)


def is_table_file(spec: str) -> bool:
    """Whether a name is that of a CSV file."""
    return spec.lower().endswith(TABLE_SUFFIXES)
