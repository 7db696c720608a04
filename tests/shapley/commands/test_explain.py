"""`parnassus explain`: known SHAP values, every kind of model, and error messages."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest
import torch

from parnassus.cli.main import dispatch, main
from parnassus.data import csv_file
from parnassus.runs import RunFolder
from parnassus.train.trained import TrainedRun

MODELS = """
import math, random
import numpy as np
import torch
from torch import nn

WEIGHTS = np.array([3.0, -2.0, 0.5])

def linear(x):
    return np.asarray(x) @ WEIGHTS

def wide(x):
    return torch.as_tensor(x).sin().prod(1) + torch.as_tensor(x)[:, 0]

torch.manual_seed(0)
network = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))

def network_function(x):
    return network(torch.as_tensor(x)).detach()

class Estimator:
    classes_ = np.array(["ill", "well"])
    n_features_in_ = 2
    feature_names_in_ = np.array(["weight", "height"])

    def predict_proba(self, x):
        p = 1 / (1 + np.exp(-(np.asarray(x) @ np.array([0.1, -0.2]))))
        return np.stack([p, 1 - p], 1)

estimator = Estimator()

from sklearn.pipeline import make_pipeline
from sklearn.linear_model import LinearRegression
from sklearn.preprocessing import StandardScaler
table = np.random.default_rng(0).normal(size=(30, 3))
pipeline = make_pipeline(StandardScaler(), LinearRegression()).fit(table, linear(table))
company = lambda x: np.asarray(x).sum(1) - np.asarray(x).mean()
words = lambda x: np.array(["ill"] * len(x))
square = lambda x: np.asarray(x)[:, 0] ** 2
dice = lambda x: [random.random() for _ in x]
nothing = lambda x: np.full(len(x), math.nan)
picky = lambda x: 1 / 0
one = lambda x: np.ones(3)
silent = lambda x: None

def failing(x):
    if len(x) > 2:
        raise ZeroDivisionError("no more")
    return np.zeros(len(x))

from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.tree import DecisionTreeRegressor
table[::3, 1] = np.nan
boosted = HistGradientBoostingRegressor(min_samples_leaf=2, max_iter=5).fit(table, table[:, 0])
tree = DecisionTreeRegressor(max_depth=3, random_state=0).fit(table, np.isnan(table[:, 1]) + table[:, 0])

number = 17
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with models and a table."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "models.py").write_text(MODELS, encoding="utf-8")
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(40, 3, generator=generator).tolist()
    lines = [",".join([*(f"{number:.4f}" for number in row), "well" if row[0] > 0 else "ill"]) for row in rows]
    (tmp_path / "my.csv").write_text("\n".join(["height,age,weight,state", *lines]) + "\n", encoding="utf-8")
    return tmp_path


Output = dict[str, object]


@pytest.fixture
def explain(capsys: pytest.CaptureFixture[str]) -> Callable[..., Output]:
    """Run `parnassus explain … --json` and return its output."""

    def call(*arguments: str) -> Output:
        capsys.readouterr()
        assert dispatch(["explain", *arguments, "--device", "cpu", "--json"]) == 0
        return cast("Output", json.loads(capsys.readouterr().out))

    return call


def shap_values(result: Output, row: int = 0) -> dict[str, float]:
    features = cast("list[dict[str, list[dict[str, object]]]]", result["rows"])[row]["features"]
    return {str(feature["name"]): cast("float", feature["shap_value"]) for feature in features}


def test_shap_values_of_a_linear_function_are_exact(folder: Path, explain: Callable[..., Output]) -> None:
    result = explain("--model", "models.py:linear", "--data", "my.csv", "--row", "17", "--background", "40")
    table = csv_file("my.csv", test=0.0).train.x.double()
    expected = torch.tensor([3.0, -2.0, 0.5]) * (table[16] - table.mean(0))
    assert list(shap_values(result)) == ["height", "age", "weight"]
    torch.testing.assert_close(
        torch.tensor(list(shap_values(result).values()), dtype=torch.float64), expected, atol=1e-6, rtol=0
    )
    assert result["exact"]
    assert result["evaluations"] == 8
    assert cast("float", result["gap"]) < 1e-9
    assert (folder / "explanation-17.png").stat().st_size > 5_000


def test_row_shap_values_and_cost_are_printed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--data", "my.csv", "--row", "2", "--target", "state", "--out", "pictures/why.svg", "--max-display", "2"]
    assert dispatch(["explain", "--model", "models.py:linear", *flags]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "my.csv, row 2 (line 3): models.py:linear predicts" in out
    assert "; true value " in out
    assert "the mean over 40 rows of the background" in out
    assert "1 other " in out
    assert "exact, from all 8 coalitions of 3 features" in out
    assert "figure: pictures/why.png" in out
    assert {path.name for path in (folder / "pictures").iterdir()} == {"why.png", "why.svg"}


def test_estimator_uses_the_columns_it_was_fitted_to(folder: Path, explain: Callable[..., Output]) -> None:
    result = explain("--model", "models.py:estimator", "--data", "my.csv", "--row", "5", "--output", "ill")
    assert list(shap_values(result)) == ["weight", "height"]
    assert result["output"] == "ill"
    other = explain("--model", "models.py:estimator", "--data", "my.csv", "--row", "5", "--output", "well")
    for name, part in shap_values(result).items():
        assert shap_values(other)[name] == pytest.approx(-part, abs=1e-12)  # the two probabilities sum to 1
    default = explain("--model", "models.py:estimator", "--data", "my.csv", "--row", "5")
    predictions = [cast("list[dict[str, float]]", each["rows"])[0]["prediction"] for each in (result, other, default)]
    assert predictions[2] == max(predictions)


@pytest.mark.parametrize("model", ["network", "network_function"])
def test_network_and_function_that_calls_it(folder: Path, explain: Callable[..., Output], model: str) -> None:
    (folder / "plain.csv").write_text("\n".join(f"{k},{k % 3},{k % 5},0.5" for k in range(20)), encoding="utf-8")
    result = explain("--model", f"models:{model}", "--data", "plain.csv", "--row", "3", "--output", "1")
    assert list(shap_values(result)) == ["column 1", "column 2", "column 3"]
    assert cast("float", result["gap"]) < 1e-6


def test_forest_is_explained_by_tree_shap(folder: Path, explain: Callable[..., Output]) -> None:
    """No model evaluations; equal to the enumeration over all coalitions."""
    source = """
from sklearn.ensemble import RandomForestClassifier
from parnassus.data import csv_file
data = csv_file("my.csv", test=0.0)
forest = RandomForestClassifier(5, random_state=0).fit(data.train.x.numpy(), data.train.y.numpy())
asked = lambda x: forest.predict_proba(x)
"""
    (folder / "trees.py").write_text(source, encoding="utf-8")
    flags = ("--data", "my.csv", "--row", "3", "--background", "10")
    closed, enumerated = (explain("--model", f"trees.py:{name}", *flags) for name in ("forest", "asked"))
    assert (closed["model_rows"], closed["exact"], enumerated["exact"]) == (0, True, True)
    for name, part in shap_values(enumerated).items():
        assert shap_values(closed)[name] == pytest.approx(part, abs=1e-9)


def test_many_features_have_errors_within_a_tolerance(folder: Path, explain: Callable[..., Output]) -> None:
    rows = torch.rand(30, 17, generator=torch.Generator().manual_seed(1)).add(0.8).tolist()
    (folder / "wide.csv").write_text("\n".join(",".join(map(str, row)) for row in rows), encoding="utf-8")
    flags = ("--model", "models.py:wide", "--data", "wide.csv", "--row", "1", "--background", "5")

    def max_error(result: Output) -> float:
        features = cast("list[dict[str, list[dict[str, float]]]]", result["rows"])[0]["features"]
        return max(feature["error"] for feature in features)

    coarse, fine = explain(*flags, "--max-evals", "100"), explain(*flags, "--max-evals", "1000")
    assert not coarse["exact"]
    assert 0 < max_error(fine) < max_error(coarse)
    tolerance = max_error(coarse) / 2
    converged = explain(*flags, "--tolerance", str(tolerance))
    assert (
        cast("float", converged["max_standard_error"])
        == max_error(converged)
        <= cast("float", converged["tolerance"])
        == tolerance
    )
    assert cast("int", converged["model_rows"]) < cast(
        "int", explain(*flags, "--tolerance", str(tolerance / 4))["model_rows"]
    )
    for result in (coarse, fine, converged):
        assert cast("float", result["gap"]) < 1e-6
    assert shap_values(explain(*flags, "--max-evals", "100")) == shap_values(coarse)  # deterministic for a seed


def test_reached_and_missed_tolerances_are_reported(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = torch.rand(30, 17, generator=torch.Generator().manual_seed(1)).add(0.8).tolist()
    (folder / "wide.csv").write_text("\n".join(",".join(map(str, row)) for row in rows), encoding="utf-8")
    flags = ["--model", "models.py:wide", "--data", "wide.csv", "--row", "1", "--background", "5"]
    assert dispatch(["explain", *flags, "--tolerance", "0.01"]) == 0
    assert ", within the tolerance of 0.01; " in " ".join(capsys.readouterr().out.split())
    assert dispatch(["explain", *flags, "--tolerance", "1e-9", "--max-evals", "200"]) == 0
    assert ", above the tolerance of 1e-09: raise --max-evals; " in " ".join(capsys.readouterr().out.split())


def test_pipeline_without_probabilities_uses_predict(folder: Path, explain: Callable[..., Output]) -> None:
    """The class has `predict_proba`, this instance has not."""
    flags = ("--data", "my.csv", "--row", "17")
    result, reference = (explain("--model", f"models.py:{name}", *flags) for name in ("pipeline", "linear"))
    for name, part in shap_values(reference).items():
        assert shap_values(result)[name] == pytest.approx(part, abs=1e-9)


def test_one_feature_and_one_background_row(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "one.csv").write_text("size,price\n2,1\n3,1\n", encoding="utf-8")
    assert (
        dispatch(["explain", "--model", "models.py:square", "--data", "one.csv", "--row", "2", "--background", "1"])
        == 0
    )
    out = " ".join(capsys.readouterr().out.split())
    assert "the mean over 1 row of the background" in out
    assert "all 2 coalitions of 1 feature;" in out


def test_several_rows_are_ranked_and_drawn_as_a_beeswarm(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for rows, count in (
        (["--row", "1,3-5"], 4),
        ([], 40),
        (["--row", "all", "--feature-perturbation", "conditional"], 40),
    ):
        assert dispatch(["explain", "--model", "models.py:linear", "--data", "my.csv", *rows]) == 0
        out = capsys.readouterr().out
        assert f"my.csv, {count} rows" in out
        lines = [line.split()[0] for line in out.splitlines() if line.startswith(("height", "age", "weight"))]
        assert set(lines) == {"height", "age", "weight"}
        assert lines[-1] == "weight"  # the least important
        assert (folder / "explanation.png").exists()


def test_conditional_values_have_another_base_value(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--data", "my.csv", "--row", "2", "--feature-perturbation", "conditional"]
    assert dispatch(["explain", "--model", "models.py:linear", *flags]) == 0
    assert "the mean over a Gaussian fitted to 40 rows" in capsys.readouterr().out


def test_conditional_values_have_errors_with_all_coalitions(
    folder: Path, explain: Callable[..., Output], capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--model", "models.py:wide", "--data", "my.csv", "--row", "2", "--feature-perturbation", "conditional"]
    coarse, many = explain(*flags), explain(*flags, "--tolerance", "0.005")
    assert (coarse["exact"], coarse["evaluations"]) == (False, 8)
    assert 0.005 >= cast("float", many["max_standard_error"]) > 0
    assert cast("int", many["model_rows"]) > cast("int", coarse["model_rows"])
    for name, part in shap_values(coarse).items():
        assert part == pytest.approx(shap_values(many)[name], abs=4 * cast("float", coarse["max_standard_error"]))
    assert dispatch(["explain", *flags, "--tolerance", "1e-9"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "8 coalitions of 3 features, unknown features sampled" in out
    assert "above the tolerance of 1e-09;" in out


def test_background_can_be_another_file(folder: Path, explain: Callable[..., Output]) -> None:
    (folder / "others.csv").write_text("height,age,weight,state\n0,0,0,ill\n0,0,0,well\n", encoding="utf-8")
    result = explain("--model", "models.py:linear", "--data", "my.csv", "--row", "1", "--background", "others.csv")
    row = csv_file("my.csv", test=0.0).train.x[0].tolist()
    for part, weight, number in zip(shap_values(result).values(), (3.0, -2.0, 0.5), row, strict=True):
        assert part == pytest.approx(weight * number, abs=1e-6)


def test_run_explains_rows_of_its_table(folder: Path, explain: Callable[..., Output]) -> None:
    """The model standardises its inputs as in training."""
    flags = ["--profile", "smoke", "--device", "cpu", "--quiet", "--folder", str(folder / "runs")]
    assert dispatch(["run", "shap_breast_cancer", "--data", "my.csv", *flags, "--name", "mine"]) == 0
    result = explain("--model", "mine", "--folder", "runs", "--data", "my.csv", "--row", "7", "--output", "well")
    trained = TrainedRun.open(RunFolder(folder / "runs" / "mine"))
    with torch.no_grad():
        logits = trained.model(csv_file("my.csv", test=0.0).train.x[6:7])
    predictions = cast("list[dict[str, float]]", result["rows"])[0]["prediction"]
    assert predictions == pytest.approx(float(logits.softmax(1)[0, 1]), abs=1e-6)
    assert list(shap_values(result)) == ["height", "age", "weight"]
    shuffled = "state,weight,height,age\n,1,2,3\n,4,5,6\n"
    (folder / "new.csv").write_text(shuffled, encoding="utf-8")
    other = explain("--model", "mine", "--folder", "runs", "--data", "new.csv", "--row", "2")
    features = cast("list[dict[str, list[dict[str, float]]]]", other["rows"])[0]["features"]
    assert [feature["value"] for feature in features] == [5, 6, 4]


@pytest.mark.parametrize("model", ["boosted", "tree"])
def test_missing_cells_are_passed_to_models_that_take_them(
    explain: Callable[..., Output], folder: Path, model: str
) -> None:
    lines = (folder / "my.csv").read_text(encoding="utf-8").splitlines()
    holes = [
        ",".join("" if k == 1 and n % 2 else cell for k, cell in enumerate(line.split(",")))
        for n, line in enumerate(lines)
    ]
    (folder / "holes.csv").write_text("\n".join([lines[0], *holes[1:]]), encoding="utf-8")
    result = explain("--model", f"models.py:{model}", "--data", "holes.csv", "--row", "1", "--background", "20")
    features = cast("list[dict[str, list[dict[str, object]]]]", result["rows"])[0]["features"]
    assert [each["value"] is None for each in features] == [False, True, False]
    assert cast("float", result["gap"]) < 1e-6
    assert result["model_rows"]  # not the closed form, which does not know where missing values go
    several = explain("--model", f"models.py:{model}", "--data", "holes.csv", "--background", "20")
    assert len(cast("list[object]", several["rows"])) == 40


@pytest.fixture
def error_message(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Run `parnassus explain …`, which exits with code 2, and return its one-line message."""

    def call(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["parnassus", "explain", *arguments, "--device", "cpu"])
        with pytest.raises(SystemExit) as exit_info:
            main()
        assert exit_info.value.code == 2
        *_, line = capsys.readouterr().err.splitlines()  # after the messages on the data
        assert line.startswith("parnassus: ")
        return line.removeprefix("parnassus: ")

    return call


@pytest.mark.parametrize(
    ("model", "flags", "message"),
    [
        ("nobody", (), "'nobody' is not a run in runs"),
        ("models.py", (), "for a model in your own file use --model models.py:name"),
        ("forest.joblib", (), "forest.joblib is not loaded, since a pickle can execute code"),
        ("absent.py:model", (), "there is no file absent.py"),
        ("absent.module:model", (), "absent.module cannot be imported: No module named 'absent'"),
        ("broken.py:model", (), "broken.py fails when it is imported: ZeroDivisionError: division by zero"),
        ("models.py:forest", (), "models.py has no 'forest'; available: linear, wide, network, network_function"),
        ("models.py:Estimator", (), "models.py:Estimator is a class; give a fitted object"),
        ("models.py:number", (), "models.py:number cannot be explained: a model must be a module, an estimator or"),
        ("models.py:dice", (), "the model must be deterministic"),
        ("models.py:nothing", (), "a model must return finite numbers"),
        ("models.py:picky", (), "models.py:picky fails on 1 row of 3 features: ZeroDivisionError"),
        (
            "models.py:company",
            (),
            "the model's output for a row must not depend on the other rows of its batch",
        ),
        ("models.py:words", (), "a model must return numbers, not labels such as 'ill'; use predict_proba or a score"),
        (
            "models.py:pipeline",
            ("--data", "short.csv"),
            "models.py:pipeline takes 3 features, and short.csv has only 1",
        ),
        (
            "models.py:one",
            (),
            "a model must return a number or a row of numbers for each input; got shape (3,) for 1 input",
        ),
        ("models.py:linear", ("--data", "absent.csv"), "there is no file absent.csv"),
        ("models.py:linear", ("--data", "diabetis"), "unknown data set diabetis: did you mean diabetes"),
        ("models.py:linear", ("--row", "0"), "there is no row 0: my.csv has rows 1 to 40"),
        ("models.py:linear", ("--row", "39-41"), "there is no row 39-41: my.csv has rows 1 to 40"),
        ("models.py:linear", ("--row", "last"), "--row must be a number such as 17, several such as 1,2,5-9, or all"),
        ("models.py:linear", ("--row", "9-7"), "several such as 1,2,5-9, or all; got '9-7'"),
        ("models.py:linear", ("--target", "age"), "my.csv, line 2, column 'state': "),
        ("models.py:linear", ("--target", "age"), "must be numbers: name columns that are not features with --target"),
        (
            "models.py:failing",
            (),
            "models.py:failing fails on 40 rows of 3 features: ZeroDivisionError",
        ),
        (
            "models.py:linear",
            ("--background", "2", "--feature-perturbation", "conditional"),
            "fails with 2 rows of the background: the observed values have probability 0",
        ),
        ("models.py:silent", (), "a model must return numbers; got NoneType"),
        ("models.py:linear", ("--target", "size"), "my.csv has no column 'size'; its columns are height, age, weight"),
        (
            "models.py:estimator",
            ("--data", "short.csv"),
            "short.csv has no column 'weight', with which models.py:estimator",
        ),
        ("models.py:estimator", ("--data", "bare.csv"), "models.py:estimator takes 2 features, and bare.csv has 3"),
        ("models.py:estimator", ("--output", "2"), "unknown output: '2'; available: ill, well"),
        ("models.py:network", ("--output", "2"), "unknown output: '2'; available: ill, well"),
        ("models.py:linear", ("--output", "1"), "unknown output: '1'; available: only 0"),
        ("models.py:linear", ("--background", "0"), "--background must be at least one row; got --background 0"),
        ("models.py:linear", ("--background", "bare.csv", "--target", "state"), "bare.csv has no column 'state'"),
        (
            "models.py:linear",
            ("--background", "1", "--feature-perturbation", "conditional"),
            "a background of at least two rows; got 1",
        ),
        ("models.py:linear", ("--max-evals", "1"), "--max-evals must be at least 6, twice the number of features"),
        ("models.py:linear", ("--tolerance", "0"), "--tolerance must be greater than 0; got 0.0"),
        ("models.py:linear", ("--max-display", "0"), "--max-display must be at least 1; got 0"),
        ("models.py:linear", ("--seed", "-1"), "--seed must be at least 0; got -1"),
        ("models.py:linear", ("--out", "why.pdf"), "--out must end in .png or .svg, or have no suffix; got why.pdf"),
    ],
)
def test_invalid_arguments_exit_with_one_line(
    folder: Path, error_message: Callable[..., str], model: str, flags: tuple[str, ...], message: str
) -> None:
    (folder / "broken.py").write_text("model = 1 / 0\n", encoding="utf-8")
    (folder / "short.csv").write_text("height,state\n1,ill\n2,well\n", encoding="utf-8")
    (folder / "bare.csv").write_text("1,2,3,4\n5,6,7,8\n", encoding="utf-8")
    assert message in error_message("--model", model, "--data", "my.csv", "--row", "1", *flags)
    assert not list(folder.glob("explanation*"))


def test_run_without_predictions_is_rejected(folder: Path, error_message: Callable[..., str]) -> None:
    RunFolder.create(folder / "runs", "game", {"experiment": "shapley_small_games", "settings": {}}, stamp=False)
    message = error_message("--model", "game", "--folder", "runs", "--data", "my.csv", "--row", "1")
    assert message == "game is a run of shapley_small_games, whose model does not predict from rows of a table"
