"""`parnassus explain`: known SHAP values, every kind of model, and one sentence for what cannot be explained."""

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
from parnassus.train.trained import Trained

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

def around_the_network(x):
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

def tired(x):
    if len(x) > 2:
        raise ZeroDivisionError("no more")
    return np.zeros(len(x))

number = 17
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with models and a table, in which the command is given."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "models.py").write_text(MODELS, encoding="utf-8")
    source = torch.Generator().manual_seed(0)
    rows = torch.randn(40, 3, generator=source).tolist()
    lines = [",".join([*(f"{number:.4f}" for number in row), "well" if row[0] > 0 else "ill"]) for row in rows]
    (tmp_path / "my.csv").write_text("\n".join(["height,age,weight,state", *lines]) + "\n", encoding="utf-8")
    return tmp_path


Told = dict[str, object]


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]) -> Callable[..., Told]:
    """What `parnassus explain … --json` prints."""

    def call(*arguments: str) -> Told:
        capsys.readouterr()
        assert dispatch(["explain", *arguments, "--device", "cpu", "--json"]) == 0
        return cast("Told", json.loads(capsys.readouterr().out))

    return call


def parts(told: Told, row: int = 0) -> dict[str, float]:
    found = cast("list[dict[str, list[dict[str, object]]]]", told["rows"])[row]["features"]
    return {str(feature["name"]): cast("float", feature["shap_value"]) for feature in found}


def test_shap_values_of_a_linear_function_are_exact(place: Path, told: Callable[..., Told]) -> None:
    found = told("--model", "models.py:linear", "--data", "my.csv", "--row", "17", "--background", "40")
    table = csv_file("my.csv", test=0.0).train.x.double()
    expected = torch.tensor([3.0, -2.0, 0.5]) * (table[16] - table.mean(0))
    assert list(parts(found)) == ["height", "age", "weight"]
    torch.testing.assert_close(
        torch.tensor(list(parts(found).values()), dtype=torch.float64), expected, atol=1e-6, rtol=0
    )
    assert found["exact"]
    assert found["evaluations"] == 8
    assert cast("float", found["gap"]) < 1e-9
    assert (place / "explanation-17.png").stat().st_size > 5_000


def test_the_row_its_shap_values_and_their_cost_are_printed(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--data", "my.csv", "--row", "2", "--target", "state", "--out", "pictures/why.svg", "--max-display", "2"]
    assert dispatch(["explain", "--model", "models.py:linear", *flags]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "my.csv, row 2 (line 3): models.py:linear predicts" in out
    assert "; true value " in out
    assert "the mean over 40 rows of the background" in out
    assert "1 other " in out
    assert "exact, from all 8 coalitions of 3 features" in out
    assert "figure: pictures/why.png" in out
    assert {path.name for path in (place / "pictures").iterdir()} == {"why.png", "why.svg"}


def test_an_estimator_takes_the_columns_it_was_fitted_to(place: Path, told: Callable[..., Told]) -> None:
    found = told("--model", "models.py:estimator", "--data", "my.csv", "--row", "5", "--output", "ill")
    assert list(parts(found)) == ["weight", "height"]
    assert found["output"] == "ill"
    other = told("--model", "models.py:estimator", "--data", "my.csv", "--row", "5", "--output", "well")
    for name, part in parts(found).items():
        assert parts(other)[name] == pytest.approx(-part, abs=1e-12)  # two classes: what one gains the other loses
    likelier = told("--model", "models.py:estimator", "--data", "my.csv", "--row", "5")
    said = [cast("list[dict[str, float]]", each["rows"])[0]["prediction"] for each in (found, other, likelier)]
    assert said[2] == max(said)


@pytest.mark.parametrize("model", ["network", "around_the_network"])
def test_a_network_and_a_function_around_it(place: Path, told: Callable[..., Told], model: str) -> None:
    (place / "plain.csv").write_text("\n".join(f"{k},{k % 3},{k % 5},0.5" for k in range(20)), encoding="utf-8")
    found = told("--model", f"models:{model}", "--data", "plain.csv", "--row", "3", "--output", "1")
    assert list(parts(found)) == ["column 1", "column 2", "column 3"]
    assert cast("float", found["gap"]) < 1e-6


def test_a_forest_is_explained_by_its_trees(place: Path, told: Callable[..., Told]) -> None:
    """Without a question, and to the same parts as by all coalitions of a function around it."""
    forest = """
from sklearn.ensemble import RandomForestClassifier
from parnassus.data import csv_file
data = csv_file("my.csv", test=0.0)
forest = RandomForestClassifier(5, random_state=0).fit(data.train.x.numpy(), data.train.y.numpy())
asked = lambda x: forest.predict_proba(x)
"""
    (place / "trees.py").write_text(forest, encoding="utf-8")
    flags = ("--data", "my.csv", "--row", "3", "--background", "10")
    closed, asked = (told("--model", f"trees.py:{name}", *flags) for name in ("forest", "asked"))
    assert (closed["model_rows"], closed["exact"], asked["exact"]) == (0, True, True)
    for name, part in parts(asked).items():
        assert parts(closed)[name] == pytest.approx(part, abs=1e-9)


def test_many_features_have_errors_within_a_tolerance(place: Path, told: Callable[..., Told]) -> None:
    rows = torch.rand(30, 17, generator=torch.Generator().manual_seed(1)).add(0.8).tolist()
    (place / "wide.csv").write_text("\n".join(",".join(map(str, row)) for row in rows), encoding="utf-8")
    flags = ("--model", "models.py:wide", "--data", "wide.csv", "--row", "1", "--background", "5")

    def largest(found: Told) -> float:
        features = cast("list[dict[str, list[dict[str, float]]]]", found["rows"])[0]["features"]
        return max(feature["error"] for feature in features)

    few, more = told(*flags, "--max-evals", "100"), told(*flags, "--max-evals", "1000")
    assert not few["exact"]
    assert 0 < largest(more) < largest(few)
    wished = largest(few) / 2
    until = told(*flags, "--tolerance", str(wished))
    assert cast("float", until["max_standard_error"]) == largest(until) <= cast("float", until["tolerance"]) == wished
    assert cast("int", until["model_rows"]) < cast("int", told(*flags, "--tolerance", str(wished / 4))["model_rows"])
    for found in (few, more, until):
        assert cast("float", found["gap"]) < 1e-6
    assert parts(told(*flags, "--max-evals", "100")) == parts(few)  # the seed decides


def test_it_reports_whether_the_tolerance_was_reached(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = torch.rand(30, 17, generator=torch.Generator().manual_seed(1)).add(0.8).tolist()
    (place / "wide.csv").write_text("\n".join(",".join(map(str, row)) for row in rows), encoding="utf-8")
    flags = ["--model", "models.py:wide", "--data", "wide.csv", "--row", "1", "--background", "5"]
    assert dispatch(["explain", *flags, "--tolerance", "0.01"]) == 0
    assert ", within the tolerance of 0.01; " in " ".join(capsys.readouterr().out.split())
    assert dispatch(["explain", *flags, "--tolerance", "1e-9", "--max-evals", "200"]) == 0
    assert ", above the tolerance of 1e-09: raise --max-evals; " in " ".join(capsys.readouterr().out.split())


def test_a_pipeline_without_probabilities_predicts(place: Path, told: Callable[..., Told]) -> None:
    """Its class has `predict_proba`; it has not."""
    flags = ("--data", "my.csv", "--row", "17")
    found, same = (told("--model", f"models.py:{name}", *flags) for name in ("pipeline", "linear"))
    for name, part in parts(same).items():
        assert parts(found)[name] == pytest.approx(part, abs=1e-9)


def test_one_feature_and_one_other_row(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "one.csv").write_text("size,price\n2,1\n3,1\n", encoding="utf-8")
    assert (
        dispatch(["explain", "--model", "models.py:square", "--data", "one.csv", "--row", "2", "--background", "1"])
        == 0
    )
    out = " ".join(capsys.readouterr().out.split())
    assert "the mean over 1 row of the background" in out
    assert "all 2 coalitions of 1 feature;" in out


def test_several_rows_are_ranked_and_drawn_as_a_swarm(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
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
        assert lines[-1] == "weight"  # it matters least
        assert (place / "explanation.png").exists()


def test_conditional_values_have_another_base_value(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--data", "my.csv", "--row", "2", "--feature-perturbation", "conditional"]
    assert dispatch(["explain", "--model", "models.py:linear", *flags]) == 0
    assert "the mean over a Gaussian fitted to 40 rows" in capsys.readouterr().out


def test_conditional_values_have_errors_with_all_coalitions(
    place: Path, told: Callable[..., Told], capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--model", "models.py:wide", "--data", "my.csv", "--row", "2", "--feature-perturbation", "conditional"]
    few, many = told(*flags), told(*flags, "--tolerance", "0.005")
    assert (few["exact"], few["evaluations"]) == (False, 8)
    assert 0.005 >= cast("float", many["max_standard_error"]) > 0
    assert cast("int", many["model_rows"]) > cast("int", few["model_rows"])
    for name, part in parts(few).items():
        assert part == pytest.approx(parts(many)[name], abs=4 * cast("float", few["max_standard_error"]))
    assert dispatch(["explain", *flags, "--tolerance", "1e-9"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "8 coalitions of 3 features, unknown features sampled" in out
    assert "above the tolerance of 1e-09;" in out


def test_another_file_as_background(place: Path, told: Callable[..., Told]) -> None:
    (place / "others.csv").write_text("height,age,weight,state\n0,0,0,ill\n0,0,0,well\n", encoding="utf-8")
    found = told("--model", "models.py:linear", "--data", "my.csv", "--row", "1", "--background", "others.csv")
    row = csv_file("my.csv", test=0.0).train.x[0].tolist()
    for part, weight, number in zip(parts(found).values(), (3.0, -2.0, 0.5), row, strict=True):
        assert part == pytest.approx(weight * number, abs=1e-6)


def test_a_run_takes_rows_of_its_table(place: Path, told: Callable[..., Told]) -> None:
    """What the network standardises it standardises itself: its answer is the one it gave in training."""
    flags = ["--profile", "smoke", "--device", "cpu", "--quiet", "--folder", str(place / "runs")]
    assert dispatch(["run", "shap_breast_cancer", "--data", "my.csv", *flags, "--name", "mine"]) == 0
    found = told("--model", "mine", "--folder", "runs", "--data", "my.csv", "--row", "7", "--output", "well")
    trained = Trained.open(RunFolder(place / "runs" / "mine"))
    with torch.no_grad():
        logits = trained.model(csv_file("my.csv", test=0.0).train.x[6:7])
    said = cast("list[dict[str, float]]", found["rows"])[0]["prediction"]
    assert said == pytest.approx(float(logits.softmax(1)[0, 1]), abs=1e-6)
    assert list(parts(found)) == ["height", "age", "weight"]
    shuffled = "state,weight,height,age\n,1,2,3\n,4,5,6\n"
    (place / "new.csv").write_text(shuffled, encoding="utf-8")
    other = told("--model", "mine", "--folder", "runs", "--data", "new.csv", "--row", "2")
    first = cast("list[dict[str, list[dict[str, float]]]]", other["rows"])[0]["features"]
    assert [feature["value"] for feature in first] == [5, 6, 4]


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What `parnassus explain …` says when it says one sentence and gives code 2."""

    def call(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["parnassus", "explain", *arguments, "--device", "cpu"])
        with pytest.raises(SystemExit) as stopped:
            main()
        assert stopped.value.code == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("parnassus: ")
        return line.removeprefix("parnassus: ")

    return call


@pytest.mark.parametrize(
    ("model", "flags", "sentence"),
    [
        ("nobody", (), "'nobody' is not a run in runs"),
        ("models.py", (), "a model in a file of yours is --model models.py:name"),
        ("forest.joblib", (), "forest.joblib is not loaded, since a pickle can execute code"),
        ("absent.py:model", (), "there is no file absent.py"),
        ("absent.module:model", (), "absent.module cannot be imported: No module named 'absent'"),
        ("broken.py:model", (), "broken.py fails when it is imported: ZeroDivisionError: division by zero"),
        ("models.py:forest", (), "models.py has no 'forest'; there is linear, wide, network, around_the_network"),
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
        ("models.py:linear", ("--data", "diabetis"), "there is no data set diabetis: did you mean diabetes"),
        ("models.py:linear", ("--row", "0"), "there is no row 0: my.csv has rows 1 to 40"),
        ("models.py:linear", ("--row", "39-41"), "there is no row 39-41: my.csv has rows 1 to 40"),
        ("models.py:linear", ("--row", "last"), "--row must be a number such as 17, several such as 1,2,5-9, or all"),
        ("models.py:linear", ("--row", "9-7"), "several such as 1,2,5-9, or all; got '9-7'"),
        ("models.py:linear", ("--target", "age"), "my.csv, line 2, column 'state': "),
        ("models.py:linear", ("--target", "age"), "must be numbers: name columns that are not features with --target"),
        (
            "models.py:tired",
            (),
            "models.py:tired fails on 40 rows of 3 features: ZeroDivisionError",
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
        ("models.py:estimator", ("--output", "2"), "the model has no output '2'; there is ill, well"),
        ("models.py:network", ("--output", "2"), "the model has no output '2'; there is ill, well"),
        ("models.py:linear", ("--output", "1"), "the model has no output '1'; there is 0 alone"),
        ("models.py:linear", ("--background", "0"), "--background must be at least one row; got --background 0"),
        ("models.py:linear", ("--background", "bare.csv", "--target", "state"), "bare.csv has no column 'state'"),
        (
            "models.py:linear",
            ("--background", "1", "--feature-perturbation", "conditional"),
            "a background of at least two rows; got 1",
        ),
        ("models.py:linear", ("--max-evals", "1"), "--max-evals must be at least 6, twice the number of features"),
        ("models.py:linear", ("--tolerance", "0"), "--tolerance must be positive; got 0.0"),
        ("models.py:linear", ("--max-display", "0"), "--max-display must be positive; got 0"),
        ("models.py:linear", ("--seed", "-1"), "--seed must be between 0 and 2⁶³ − 1; got -1"),
        ("models.py:linear", ("--out", "why.pdf"), "--out must end in .png or .svg, or have no suffix; got why.pdf"),
    ],
)
def test_what_cannot_be_explained_is_one_sentence(
    place: Path, refused: Callable[..., str], model: str, flags: tuple[str, ...], sentence: str
) -> None:
    (place / "broken.py").write_text("model = 1 / 0\n", encoding="utf-8")
    (place / "short.csv").write_text("height,state\n1,ill\n2,well\n", encoding="utf-8")
    (place / "bare.csv").write_text("1,2,3,4\n5,6,7,8\n", encoding="utf-8")
    assert sentence in refused("--model", model, "--data", "my.csv", "--row", "1", *flags)
    assert not list(place.glob("explanation*"))


def test_a_run_that_does_not_predict_is_rejected(place: Path, refused: Callable[..., str]) -> None:
    RunFolder.create(place / "runs", "game", {"experiment": "shapley_small_games", "settings": {}}, stamp=False)
    told = refused("--model", "game", "--folder", "runs", "--data", "my.csv", "--row", "1")
    assert told == "game is a run of shapley_small_games, whose model does not predict from rows of a table"
