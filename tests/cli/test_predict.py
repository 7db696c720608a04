"""`parnassus predict` and `parnassus evaluate`: files, folders, standard input, the order of arguments, and help."""

import csv
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from parnassus.cli.main import dispatch, main
from parnassus.cli.tables import TableOptions
from parnassus.cli.trained_run_command import read_options
from parnassus.runs import RunError
from parnassus.train.trained import TrainedRun

Rows = list[dict[str, object]]


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two images, a sub-folder with a third, and a file that is not an image."""
    folder = tmp_path_factory.mktemp("images")
    (folder / "more").mkdir()
    random = np.random.default_rng(0)
    for name in ("a.png", "b.png", "more/c.png"):
        Image.fromarray(random.integers(0, 256, (8, 8), dtype=np.uint8)).save(folder / name)
    (folder / "notes.txt").write_text("no image")
    return folder


@pytest.fixture
def predict(runs: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Rows]:
    """Run `parnassus predict … --json` for the run `seed-0` and return the rows."""

    def call(*arguments: str) -> Rows:
        capsys.readouterr()
        words = [str(runs / "seed-0") if word == "RUN" else word for word in arguments]
        assert dispatch(["predict", *words]) == 0
        rows: Rows = json.loads(capsys.readouterr().out)
        return rows

    return call


def test_arguments_are_accepted_in_any_order(predict: Callable[..., Rows], runs: Path, images: Path) -> None:
    photo, other = str(images / "a.png"), str(images / "b.png")
    expected = predict("RUN", photo, "--json", "--top-k", "2")
    assert [row["image"] for row in expected] == [photo, photo]
    for arguments in (
        ("RUN", "--json", photo, "--top-k", "2"),
        ("RUN", "--top-k", "2", "--json", photo),
        ("RUN", "--top-k=2", photo, "--json"),
        ("--json", "RUN", "--top-k", "2", photo),
        ("--json", "RUN", photo, "--top-k", "2"),
        ("--folder", str(runs), "seed-0", photo, "--json", "--top-k", "2"),
        ("--folder", str(runs), "--json", "seed-0", "--top-k", "2", photo),
        (f"--folder={runs}", "--json", "seed-0", photo, "--top-k", "2"),
    ):
        assert predict(*arguments) == expected, arguments
    split = predict("RUN", photo, "--json", other, "--top-k", "2", photo)
    assert [row["image"] for row in split] == [photo] * 2 + [other] * 2 + [photo] * 2
    assert split[:2] == expected


def test_folders_are_searched_for_images(predict: Callable[..., Rows], images: Path) -> None:
    rows = predict("RUN", "--json", "--top-k", "1", str(images))
    assert [row["image"] for row in rows] == [str(images / name) for name in ("a.png", "b.png", "more/c.png")]


def test_dash_reads_standard_input(predict: Callable[..., Rows], images: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = (images / "a.png").read_bytes()
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(content), isatty=lambda: False))
    (row,) = predict("RUN", "-", "--json", "--top-k", "1")
    (expected,) = predict("RUN", str(images / "a.png"), "--json", "--top-k", "1")
    assert row == {**expected, "image": "-"}


def test_predictions_are_printed_and_written(
    runs: Path, images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [str(runs / "seed-0"), "--out", str(tmp_path / "new" / "out.csv"), str(images), "--top-k", "1"]
    assert dispatch(["predict", *arguments]) == 0
    output = capsys.readouterr().out
    assert output.split()[:3] == ["image", "class", "probability"]
    assert output.splitlines()[-1] == f"written: {tmp_path / 'new' / 'out.csv'}"
    with (tmp_path / "new" / "out.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [Path(row["image"]).name for row in rows] == ["a.png", "b.png", "c.png"]
    assert all(0.1 <= float(row["probability"]) <= 1 for row in rows)
    arguments[2] = str(tmp_path / "out.json")
    assert dispatch(["predict", *arguments, "--json"]) == 0
    written = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert written == json.loads(capsys.readouterr().out)
    assert [row["class"] for row in written] == [row["class"] for row in rows]


def error_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Run a command, which exits with code 2, and return its one-line message."""
    capsys.readouterr()
    monkeypatch.setattr(sys, "argv", ["parnassus", *arguments])
    with pytest.raises(SystemExit) as exit_info:
        main()
    assert exit_info.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line.removeprefix("parnassus: ")


def test_invalid_arguments_exit_with_one_line(
    runs: Path, images: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run, photo, before = str(runs / "seed-0"), str(images / "a.png"), "write the run before the flags of its experiment"
    cases = [
        (["--top-k", "2", run, photo], f"{before}: parnassus predict RUN --top-k …"),
        (["--nope", run], f"{before}: parnassus predict RUN --nope …"),
        ([run, "x.png"], "file not found: x.png"),
        ([run, photo, "--top-k", "0"], "--top-k must be at least 1; got 0 (classes reported for each image)"),
        ([run, photo, "--out", "x.pdf"], "--out must end in .csv or .json; got x.pdf"),
        ([run, str(images / "notes.txt")], str(images / "notes.txt")),
        (["nobody", photo], "'nobody' is not a run in "),
    ]
    for arguments, message in cases:
        assert error_line(monkeypatch, capsys, "predict", *arguments).startswith(message), arguments


def test_missing_input_is_named_and_nothing_is_read(
    runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither from a terminal nor, for images, from a pipe."""
    for is_terminal in (True, False):
        monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda is_terminal=is_terminal: is_terminal))
        message = error_line(monkeypatch, capsys, "predict", str(runs / "seed-0"))
        assert message.startswith("no input: give files (.png, .jpg, ")
        assert message.endswith("), folders of files, or - for standard input")


def test_text_is_read_from_a_pipe_by_default(
    trained_run: Callable[..., TrainedRun], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = str(trained_run("transformer_translation").folder.path)
    monkeypatch.setattr("sys.stdin", io.StringIO("der hund sieht die katze.\n\n"))
    assert dispatch(["predict", run, "--json", "--num-beams", "1"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["source"] for row in rows] == ["der hund sieht die katze.", ""]
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True))
    assert error_line(monkeypatch, capsys, "predict", run).startswith("no input: give files (.txt), folders")


def help_page(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    with pytest.raises(SystemExit) as exit_info:
        dispatch([*arguments, "--help"])
    assert exit_info.value.code == 0
    return capsys.readouterr().out


def test_help_lists_the_flags_of_the_run(
    runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    for arguments in (("predict", str(runs / "seed-0")), ("predict", str(runs / "seed-0"), "x.png", "--json")):
        page = help_page(capsys, *arguments)
        assert page.count("usage:") == 1
        assert page.startswith("usage: parnassus predict seed-0 ")
        assert page.count("[INPUT ...]") == 2  # in the usage line and with its explanation
        for flag in ("--top-k", "--json", "--out", "--folder"):
            assert f"{flag} " in page or f"{flag}," in page


def test_options_before_the_run_are_read() -> None:
    options, rest = read_options("evaluate", ["--json", "a", "--data", "x", "--folder", "f", "-"], TableOptions())
    assert options == TableOptions(json=True, folder=Path("f"))
    assert rest == ["a", "--data", "x", "-"]


@pytest.fixture(scope="module")
def vaes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of a VAE and of an IWAE, which share their evaluation, and of PPO and A2C, which share another."""
    root = tmp_path_factory.mktemp("vaes")
    flags = ["--profile", "smoke", "--device", "cpu", "--quiet", "--folder", str(root), "--name"]
    for name in ("vae", "iwae", "ppo", "a2c"):
        assert dispatch(["run", name, *flags, name]) == 0
    return root


def test_runs_with_the_same_evaluation_are_compared(vaes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = {
        ("vae", "iwae"): ("--num-examples", "4", "--num-importance-samples", "2"),
        ("ppo", "a2c"): ("--n-eval-episodes", "2"),
    }
    for names, values in flags.items():
        capsys.readouterr()
        assert dispatch(["evaluate", "--folder", str(vaes), names[0], "--json", names[1], *values]) == 0
        assert [row["run"] for row in json.loads(capsys.readouterr().out)] == list(names)


def test_runs_with_different_evaluations_are_rejected(
    vaes: Path, runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    message = error_line(monkeypatch, capsys, "evaluate", "vae", "iwae", "ppo", "--folder", str(vaes))
    assert message == (
        "vae is a run of vae and ppo of ppo, which have different kinds of evaluation: evaluate them separately"
    )
    with pytest.raises(RunError, match="different kinds of evaluation"):
        dispatch(["evaluate", str(runs / "seed-0"), str(vaes / "vae")])
