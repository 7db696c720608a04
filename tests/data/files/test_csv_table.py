"""Reading of CSV files: headers, delimiters, quotes and line breaks."""

from pathlib import Path

import pytest

from parnassus.data import csv_file
from parnassus.data.files.csv_table import CsvTable, is_header
from parnassus.notices import pass_notices


def parse(text: str) -> CsvTable:
    return CsvTable.parse(text.encode(), Path("table.csv"))


def rows(text: str) -> list[list[str]]:
    return [cells for _, cells in parse(text).rows]


@pytest.mark.parametrize(
    "text",
    [
        "0,1,2,label\n0.1,0.2,0.3,4\n0.3,0.5,0.1,7\n",  # pandas, a numeric target
        "0,1,2,label\n0.1,0.2,3,a\n0.3,0.5,7,b\n0.3,0.5,7,a\n",  # pandas, words as target
        "0,1,2\n0.5,1.5,0\n1.5,0.5,1\n",  # pandas, no names at all
        "country,2019,2020\nFR,5,7\nIT,8,9\nFR,1,2\n",  # years
        "a,b\n1,2\nthree,4\n",  # a wrong cell below
        "p,cap,edible\nx,flat,yes\ny,flat,no\n",  # words only
        "id,joined\nA,2020-01-01\nB,2020-02-01\n",  # dates below
        "name,age\nAnn,\nBob,3\n",  # a missing cell
        "x,y\n1,2\n",
    ],
)
def test_header_is_recognised_by_its_types(text: str) -> None:
    table = parse(text)
    assert table.has_header
    assert list(table.columns) == text.split("\n", maxsplit=1)[0].split(",")


@pytest.mark.parametrize(
    "text",
    [
        "5.1,3.5,setosa\n4.9,3.0,setosa\n7.0,3.2,virginica\n",
        "1,2,red\n3,4,blue\n5,6,red\n",
        "1,2,x\n3,4,y\n",  # consecutive by chance
        "0,1,2\n3,5,7\n1,1,4\n",  # integers below too
        "2020-01-01,5\n2020-01-02,6\n",
        "p,x,yes\ne,x,no\np,y,yes\n",  # words that occur again
        "7,a\n7,a\n",
        "1,2,x\n",
    ],
)
def test_data_are_not_taken_for_a_header(text: str) -> None:
    table = parse(text)
    assert not table.has_header
    assert len(table.rows) == text.count("\n")
    assert table.columns[0] == "column 1"


def test_decision_on_the_header_is_logged() -> None:
    lines: list[str] = []
    with pass_notices(lines.append):
        parse("a,b\n1,2\n3,4\n")
        parse("1,2\n3,4\n")
        parse("1,2\n3,4\n")
    assert lines == [
        "table.csv: the first line has the column names",
        "table.csv: the first line is data, not column names",
    ]


def test_line_breaks_in_quotes_are_kept() -> None:
    table = parse('city,n\n"Oslo\nNorway",1\n"a\r\nb",2\nRome,3\n')
    assert table.cells(0) == ["Oslo\nNorway", "a\r\nb", "Rome"]
    assert [line for line, _ in table.rows] == [2, 4, 6]


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x0b", "\x0c", "\x1c", "\x85"])
def test_only_line_feeds_end_a_row(separator: str) -> None:
    assert rows(f"a,b\nx{separator}y,1\nz,2\n") == [[f"x{separator}y", "1"], ["z", "2"]]


def test_quoted_delimiters_and_quotes() -> None:
    assert rows('a,b\n"Paris, FR",1\n"say ""hi""", 2\n') == [["Paris, FR", "1"], ['say "hi"', "2"]]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiter_gives_rows_of_equal_length(delimiter: str) -> None:
    text = 'a,b,c\n"x;1|\t2",5,6\ny,7,8\n'.replace(",", delimiter)
    assert rows(text) == [["x;1|\t2", "5", "6"], ["y", "7", "8"]] or delimiter == "\t"
    assert parse(text).columns == ("a", "b", "c")


def test_decimal_commas_beside_semicolons() -> None:
    table = parse("a;b\n1,5;-2\n,25;1e3\n")
    assert table.numbers([0, 1]).tolist() == [[1.5, -2], [0.25, 1000]]
    assert parse('a;b\n"1,5";2.5\n"3,5";2\n').cells(0) == ["1,5", "3,5"]  # points too: the comma may group digits


def test_row_numbers_of_pandas_are_left_out() -> None:
    table = parse(",a,b\n0,5,6\n1,7,8\n")
    assert (table.columns, rows(",a,b\n0,5,6\n1,7,8\n")) == (("a", "b"), [["5", "6"], ["7", "8"]])
    assert parse(",a,b\n3,5,6\n1,7,8\n").columns == ("column 1", "a", "b")


def test_repeated_names_are_distinguished() -> None:
    assert parse("a,a,b\n1,2,3\n4,5,6\n").columns == ("a 1", "a 2", "b")


def test_numeric_header_does_not_turn_a_regression_into_classes(tmp_path: Path) -> None:
    path = tmp_path / "frame.csv"
    path.write_text("0,1,label\n" + "".join(f"{n}.5,{n % 3},{n}.25\n" for n in range(30)), encoding="utf-8")
    data = csv_file(path)
    assert (data.columns, data.target, data.classes) == (("0", "1"), "label", ())


def test_empty_header_cells_and_rows() -> None:
    assert parse("a,,c\n1,2,3\n\n,,\n4,5,6\n").columns == ("a", "column 2", "c")
    assert len(parse("a,b\n1,2\n,\n3,4\n").rows) == 2
    assert not is_header([""], [])
