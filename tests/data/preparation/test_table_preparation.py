"""Text, dates and missing cells of a table as features, for training and for new rows."""

import json
from pathlib import Path

import pytest
import torch

from parnassus.data import DataError, TableSettings, csv_file
from parnassus.data.files.csv_table import CsvTable
from parnassus.data.preparation.table_preparation import TablePreparation
from parnassus.notices import pass_notices

PEOPLE = """name,sex,city,joined,age,pay
n1,f,Rome,2020-01-01,20,1.5
n2,m,Oslo,2020-01-03,,2.5
n3,m,,2020-01-02,40,3.5
n4,f,Bern,,30,4.5
n5,f,Rome,2020-01-05,50,
"""
DAYS_2020 = 18262.0  # from 1970-01-01 to 2020-01-01


def write(tmp_path: Path, text: str = PEOPLE) -> Path:
    path = tmp_path / "people.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_cells_become_features(tmp_path: Path) -> None:
    data = csv_file(write(tmp_path), drop=["name"], test=0.0)
    assert data.columns == ("sex=m", "city=Bern", "city=Oslo", "city=Rome", "joined", "age")
    assert data.train.x.tolist() == [
        [0, 0, 0, 1, DAYS_2020, 20],
        [1, 0, 1, 0, DAYS_2020 + 2, 30],  # the median age
        [1, 1, 0, 0, DAYS_2020 + 1, 40],  # the most frequent city, the first of equals
        [0, 1, 0, 0, DAYS_2020 + 1, 30],  # the median date
    ]
    assert data.target == "pay"


def test_ordinal_categories_and_dropped_rows(tmp_path: Path) -> None:
    data = csv_file(write(tmp_path), columns=["city", "sex"], categories="ordinal", missing="drop", test=0.0)
    assert data.columns == ("city", "sex")
    assert data.train.x.tolist() == [[2, 0], [1, 1], [0, 0]]


def test_missing_cells_are_imputed_from_training_rows_only(tmp_path: Path) -> None:
    lines = "\n".join(f"{n},{n / 2}" for n in range(40))
    data = csv_file(write(tmp_path, f"x,y\n{lines}\n,7.25\n"), test=0.5)
    assert data.table is not None
    known = data.train.x[data.train.y[:, 0] != 7.25] if data.train.y is not None else None
    assert known is not None
    assert data.table.columns[0].fill == float(known[:, 0].double().quantile(0.5, interpolation="midpoint"))


def test_preparation_applies_to_new_rows(tmp_path: Path) -> None:
    data = csv_file(write(tmp_path), drop=["name"], test=0.0)
    assert data.table is not None
    restored = TablePreparation.from_plain(json.loads(json.dumps(data.table.to_plain())))
    assert restored == data.table
    new = CsvTable.parse(b"age,extra,joined,city,sex\n,1,2020-01-02,Tokyo,?\n8,2,,Oslo,m\n", Path("new.csv"))
    lines: list[str] = []
    with pass_notices(lines.append):
        found = restored.encode(new)
    assert found.tolist() == [[0, 0, 0, 0, DAYS_2020 + 1, 30], [1, 0, 1, 0, DAYS_2020 + 1, 8]]
    assert lines == ["new.csv: column 'city' has values unknown in training, Tokyo: read as none of the known values"]
    assert restored.describe(new).endswith(
        "missing cells replaced: 1 in sex by f, 1 in joined by 2020-01-02, 1 in age by 30"
    )


def test_what_is_done_is_logged(tmp_path: Path) -> None:
    names = "".join(f"n{n},{'ab'[n % 2]},{n}.5\n" for n in range(60))
    lines: list[str] = []
    with pass_notices(lines.append):
        csv_file(write(tmp_path, f"name,kind,y\n{names}x,a,\n"), test=0.0)
    assert lines == [
        "people.csv: the first line has the column names",
        "people.csv: 1 row without the target 'y' left out",
        "people.csv: column 'name' is left out: it has 60 different texts",
        "people.csv: the target is y (a quantity); categories: kind (2 values, one-hot)",
    ]


@pytest.mark.parametrize(
    ("dates", "expected"),
    [
        (["2020-01-02 12:00", "2020-01-01 00:00"], [DAYS_2020 + 1.5, DAYS_2020]),
        (["01.02.2020", "15.01.2020"], [DAYS_2020 + 31, DAYS_2020 + 14]),
        (["2020/01/02", "2020/01/01"], [DAYS_2020 + 1, DAYS_2020]),
        (["25/01/2020", "01/01/2020"], [DAYS_2020 + 24, DAYS_2020]),
        (["01/25/2020", "01/01/2020"], [DAYS_2020 + 24, DAYS_2020]),
    ],
)
def test_dates_are_days(tmp_path: Path, dates: list[str], expected: list[float]) -> None:
    data = csv_file(write(tmp_path, f"d,y\n{dates[0]},1\n{dates[1]},2\n"), test=0.0)
    assert data.train.x[:, 0].tolist() == expected


def test_ambiguous_dates_are_left_out_with_the_reason(tmp_path: Path) -> None:
    lines: list[str] = []
    with pass_notices(lines.append):
        data = csv_file(write(tmp_path, "d,x,y\n01/02/2020,1,1\n03/04/2020,2,2\n"), test=0.0)
    assert data.columns == ("x",)
    assert any(
        "column 'd' is left out: it has dates whose day and month cannot be told apart" in line for line in lines
    )


def test_damaged_preparations_raise() -> None:
    column = {"kind": "category", "name": "a", "levels": ["x", "y"], "fill": "x", "encoding": "one_hot"}
    good = {"columns": [column], "target": "y", "missing": "impute"}
    assert TablePreparation.from_plain(good).features == ("a=y",)
    changes: list[dict[str, object]] = [
        {"columns": []},
        {"columns": [column, column]},
        {"columns": ["a"]},
        {"columns": [column | {"fill": "z"}]},
        {"columns": [column | {"levels": ["x", 1]}]},
        {"columns": [column | {"encoding": "binary"}]},
        {"columns": [{"kind": "number", "name": "a", "fill": float("nan")}]},
        {"columns": [{"kind": "colour", "name": "a"}]},
        {"missing": "ignore"},
        {"extra": 1},
    ]
    for change in changes:
        with pytest.raises(ValueError, match=r"must (be|have)"):
            TablePreparation.from_plain(good | change)


def test_duplicates_between_train_and_test_are_counted(tmp_path: Path) -> None:
    lines: list[str] = []
    with pass_notices(lines.append):
        csv_file(write(tmp_path, "x,y\n" + "1,0.5\n" * 10), test=0.3)
        csv_file(write(tmp_path, "x,y\n" + "".join(f"{n},{n}.5\n" for n in range(10))), test=0.3)
    assert sum("3 of 3 test examples also occur among the training examples" in line for line in lines) == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"target": "colour"}, "has no column 'colour'; its columns are name, sex, city, joined, age, pay"),
        ({"drop": ("pay",)}, "the last column, 'pay', is the target: name another with --target"),
        ({"columns": ("pay",)}, "the target 'pay' cannot be a feature too"),
        ({"data": "iris", "target": "species"}, "--target, --columns and --drop are for .csv and .tsv files"),
    ],
)
def test_invalid_columns_raise(tmp_path: Path, settings: dict[str, str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        TableSettings(**{"data": str(write(tmp_path)), **settings}).load_data()  # type: ignore[arg-type]


def test_settings_choose_the_target(tmp_path: Path) -> None:
    header, *people = PEOPLE.splitlines()
    path = write(tmp_path, "\n".join([header, *people * 3]))
    data = TableSettings(str(path), target="sex", drop=("name", "city"), missing="drop").load_data()
    assert (data.classes, data.columns) == (("f", "m"), ("joined", "age", "pay"))
    assert TableSettings("iris").load_data().train.x.equal(TableSettings().load_data().train.x)
    assert torch.isfinite(data.train.x).all()
