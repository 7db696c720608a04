"""`parnassus predict` with a table: columns by name, standard input, classes and quantities."""

import csv
import gzip
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor

from parnassus.data import DataError, open_data
from parnassus.runs.errors import RunError
from parnassus.shapley.commands.evaluate_rows import EvaluateRows
from parnassus.shapley.commands.predict_rows import PredictRows
from parnassus.shapley.experiments.shap_rent import NAMES, sample_flats
from parnassus.train.sample_predict_evaluate import Input
from parnassus.train.trained import TrainedRun

PATIENTS = open_data("breast_cancer").test.x[:3]


def write_table(path: Path, columns: Sequence[str], rows: Tensor) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(rows.tolist())
    return path


def test_columns_are_matched_by_name(trained_run: Callable[..., TrainedRun], tmp_path: Path) -> None:
    run, columns = trained_run("shap_breast_cancer"), open_data("breast_cancer").columns
    shuffled = torch.randperm(len(columns), generator=torch.Generator().manual_seed(0)).tolist()
    table = torch.cat([torch.zeros(3, 1), PATIENTS[:, shuffled]], 1)
    path = write_table(tmp_path / "patients.csv", ["id", *(columns[index] for index in shuffled)], table)
    rows = list(PredictRows()(run, [Input(path)]))
    with torch.no_grad():
        expected = run.model(PATIENTS).softmax(1).max(1)
    classes = open_data("breast_cancer").classes
    assert [row["line"] for row in rows] == [2, 3, 4]
    assert [row["class"] for row in rows] == [classes[index] for index in expected.indices.tolist()]
    assert [row["probability"] for row in rows] == pytest.approx(expected.values.tolist(), rel=1e-5)


def test_regression_reads_files_and_standard_input(
    trained_run: Callable[..., TrainedRun], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, flats = trained_run("shap_rent"), sample_flats(4, seed=5)[0]
    path = write_table(tmp_path / "flats.csv", NAMES, flats)
    (tmp_path / "flats.csv.gz").write_bytes(gzip.compress(path.read_bytes()))
    with torch.no_grad():
        expected = run.model(flats)[:, 0].tolist()
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(path.read_bytes())))
    for source in (Input(path), Input(tmp_path / "flats.csv.gz"), Input()):
        rows = list(PredictRows()(run, [source]))
        assert [row["prediction"] for row in rows] == pytest.approx(expected, rel=1e-5)


def test_missing_column_raises_data_error(trained_run: Callable[..., TrainedRun], tmp_path: Path) -> None:
    path = write_table(tmp_path / "flats.csv", NAMES[1:], sample_flats(2, seed=5)[0][:, 1:])
    with pytest.raises(DataError, match=r"flats\.csv has no column 'area', with which .* was trained"):
        list(PredictRows()(trained_run("shap_rent"), [Input(path)]))


def write_messy_table(path: Path, rows: int, *, seed: int) -> Path:
    """Words, dates and missing cells; the class depends on the kind."""
    generator = torch.Generator().manual_seed(seed)
    kinds = torch.randint(3, (rows,), generator=generator).tolist()
    lines = [
        f"p{row},{'abc'[kind]},2020-01-{1 + row % 28:02},{row % 7 if row % 5 else ''},{'yes' if kind else 'no'}"
        for row, kind in enumerate(kinds)
    ]
    path.write_text("\n".join(["name,kind,day,size,class", *lines]), encoding="utf-8")
    return path


def test_new_rows_are_prepared_as_in_training(trained_run: Callable[..., TrainedRun], tmp_path: Path) -> None:
    run = trained_run("shap_breast_cancer", data=str(write_messy_table(tmp_path / "t.csv", 120, seed=0)), steps=200)
    new = write_messy_table(tmp_path / "new.csv", 40, seed=1)
    (own,), (other,) = EvaluateRows()([run]), EvaluateRows(str(new))([run])
    result = run.folder.read_json("result.json")["result"]
    assert isinstance(result, dict)
    assert (own["rows"], other["rows"]) == (24, 40)
    assert own["accuracy"] == pytest.approx(result["test_score"])
    assert other["accuracy"] == pytest.approx(1.0)
    rows = list(PredictRows()(run, [Input(new)]))
    truth = [line.rsplit(",", 1)[1] for line in new.read_text(encoding="utf-8").splitlines()[1:]]
    assert [row["class"] for row in rows] == truth
    (tmp_path / "bad.csv").write_text("kind,day,size,class\na,2020-01-01,3,perhaps\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"has the class 'perhaps', which .* was not trained on"):
        EvaluateRows(str(tmp_path / "bad.csv"))([run])
    (run.folder.path / "table.json").write_text('{"columns": []}', encoding="utf-8")
    with pytest.raises(RunError, match=r"table\.json is damaged"):
        EvaluateRows(str(new))([run])
