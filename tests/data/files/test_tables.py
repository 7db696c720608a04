import gzip
from pathlib import Path

import pytest
import torch

from parnassus.data import DataError, Split, csv_file, open_data, standardise_features
from parnassus.data.files.csv_table import CsvTable
from parnassus.data.files.tables import parse_target


def write_table(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "table.csv"
    path.write_text(text, encoding="utf-8")
    return path


def all_rows(split: Split, other: Split) -> set[tuple[float, ...]]:
    """The rows of both splits, with y as the last entry."""
    assert split.y is not None
    assert other.y is not None
    rows = torch.cat([split.x, other.x])
    return {(*row, float(y)) for row, y in zip(rows.tolist(), torch.cat([split.y, other.y]), strict=True)}


def test_last_column_is_the_default_target(tmp_path: Path) -> None:
    data = open_data(write_table(tmp_path, "1,2,red\n3,4,blue\n5,6,red\n7,8,blue\n9,10,red\n"))
    assert data.classes == ("blue", "red")
    assert all_rows(data.train, data.test) == {(1, 2, 1), (3, 4, 0), (5, 6, 1), (7, 8, 0), (9, 10, 1)}
    assert (len(data.train), len(data.test)) == (4, 1)


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_header_names_the_columns(tmp_path: Path, separator: str) -> None:
    text = "height,kind,width\n1,7,1.5\n2,9,2.5\n3,7,3.5\n".replace(",", separator)
    data = csv_file(write_table(tmp_path, text), target="kind", test=0.0)
    assert data.train.x.tolist() == [[1, 1.5], [2, 2.5], [3, 3.5]]
    assert data.train.y is not None
    assert data.train.y.tolist() == [0, 1, 0]
    assert data.classes == ("7", "9")
    with pytest.raises(DataError, match="has no column 'colour'; its columns are height, kind, width"):
        csv_file(write_table(tmp_path, text), target="colour")


def test_numeric_targets_are_not_classes(tmp_path: Path) -> None:
    data = csv_file(write_table(tmp_path, "x,y\n1,0.5\n2,1.5\n3,2\n"), test=0.0)
    assert data.train.y is not None
    assert data.train.y.tolist() == [[0.5], [1.5], [2]]
    many = csv_file(write_table(tmp_path, "\n".join(f"{n},{n}" for n in range(30))), test=0.0)
    assert many.train.y is not None
    assert many.train.y.is_floating_point()
    assert many.classes == ()


def test_equal_numbers_form_one_class(tmp_path: Path) -> None:
    assert csv_file(write_table(tmp_path, "1,1\n2,1.0\n3,2\n")).classes == ("1", "2")


def test_gzipped_table_with_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "table.csv.gz"
    path.write_bytes(gzip.compress("\ufeffa,b\r\n1,x\r\n2,y\r\n".encode()))
    assert csv_file(path, test=0.0).train.x.tolist() == [[1], [2]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1,2,3\n4,5,6\n7\n", r"table\.csv, line 3: expected 3 columns, got 1"),
        ("d,y\n2020-01-01,2021-01-01\n2020-01-02,2021-01-01\n", "the target 'y' has dates"),
        ('a,b\n1,"2\n3,4\n', "is not a valid CSV file: unexpected end of data"),
        ("a,b\n,1\n,2\n,3\n", "has no column that can be a feature"),
        ("a,b\n1,2\n2,3\n3,4\n4,x\n", "line 5, column 'b': the target is x, and most of its values are numbers"),
        ("a,b\n1,2\nthree,4\n", "line 3, column 'a': three is not a finite number"),
        ("a,b\n1,2\n1e999,4\n", "line 3, column 'a': 1e999 is not a finite number"),
        ("a,b\n1,2\n3,inf\n", "line 3: the target is inf"),
        ("a,b\n1,\n3,nan\n", "the target 'b' is empty in all rows"),
        ("1,2,3\n4,5\n6,7,8\n", "line 2: expected 3 columns, got 2"),
        ("a,b\n1,2\n", "has one row of data; at least two are required"),
        ("a,b\n", "has no rows of data"),
        ("", "has no rows of data"),
        ("1\n2\n3\n", "has only one column"),
    ],
)
def test_invalid_tables_raise_with_the_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        csv_file(write_table(tmp_path, text))


def test_file_that_is_not_utf_8_raises_data_error(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(b"1,2\n3,\xff\n")
    with pytest.raises(DataError, match="is not UTF-8 text: byte 6"):
        csv_file(path)


def test_column_names_are_kept(tmp_path: Path) -> None:
    data = csv_file(write_table(tmp_path, "height,kind,width\n1,7,1.5\n2,9,2.5\n3,7,3.5\n4,9,4.5\n"), target="kind")
    for kept in (data, data.to("cpu"), standardise_features(data)):
        assert (kept.columns, kept.target) == (("height", "width"), "kind")
    unnamed = csv_file(write_table(tmp_path, "1,2,0\n3,4,1\n"), test=0.0)
    assert (unnamed.columns, unnamed.target) == (("column 1", "column 2"), "column 3")


def test_table_keeps_line_numbers_and_precision(tmp_path: Path) -> None:
    parsed = CsvTable.read(write_table(tmp_path, "who,time,size\nAnn,1700000001,0.1\n\nBob,1700000002,0.2\n"))
    assert parsed.columns == ("who", "time", "size")
    assert [line for line, _ in parsed.rows] == [2, 4]
    assert parsed.numbers([2, 1]).tolist() == [[0.1, 1700000001], [0.2, 1700000002]]
    with pytest.raises(DataError, match="line 2, column 'who': Ann is not a finite number"):
        parsed.numbers([0])


@pytest.mark.parametrize("text", ["a,b,c\n1,2,x\n", "1,2,x\n"])
def test_single_row_is_accepted(tmp_path: Path, text: str) -> None:
    parsed = CsvTable.read(write_table(tmp_path, text))
    assert (parsed.width, len(parsed.rows)) == (3, 1)
    assert parsed.numbers([0, 1]).tolist() == [[1, 2]]
    labels, classes = parse_target(parsed, 2)
    assert (labels.tolist(), classes) == ([0], ("x",))
