"""`runs` lists, compares, opens and keeps runs."""

import json
import shutil
import webbrowser
from pathlib import Path

import pytest

from parnassus.cli.main import dispatch
from parnassus.runs import RunError


def runs_output(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert dispatch(["runs", *arguments]) == 0
    return capsys.readouterr().out


def test_empty_folder_prints_how_to_start(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = " ".join(runs_output(capsys, "--folder", str(tmp_path / "none")).split())
    assert text.endswith("yet; start one with: parnassus run NAME")
    assert not (tmp_path / "none").exists()


def test_runs_are_listed_with_their_results(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = runs_output(capsys, "--folder", str(runs)).splitlines()
    assert lines[0].split() == ["run", "status", "profile", "seconds"]
    assert [line.split()[:3] for line in lines if line.startswith("seed-")] == [
        ["seed-0", "finished", "smoke"],
        ["seed-1", "finished", "smoke"],
    ]
    assert "accuracy" in " ".join(lines)
    assert max(map(len, lines)) <= 80


def test_compare_prints_differences_and_plots_curves(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = runs_output(capsys, "compare", "seed-0", "seed-1", "--folder", str(runs))
    lines = [line.split() for line in text.splitlines()]
    assert ["seed-0", "seed-1"] in lines
    assert ["seed", "0", "1"] in lines
    assert not [line for line in lines if line[:1] == ["precision"]]  # the same in both
    assert (runs / "comparison.png").stat().st_size > 0
    assert ">seed-1<" in (runs / "comparison.svg").read_text()


@pytest.mark.parametrize("names", [[], ["seed-0"]])
def test_compare_with_fewer_than_two_runs_raises_run_error(names: list[str], runs: Path) -> None:
    with pytest.raises(RunError, match=f"compare needs at least two runs; got {len(names)}"):
        dispatch(["runs", "compare", *names, "--folder", str(runs)])


def test_unknown_metric_raises_with_available_metrics(runs: Path) -> None:
    with pytest.raises(RunError, match=r"none of these runs has a metric 'joy'; choose --metric from .*loss"):
        dispatch(["runs", "compare", "seed-0", "seed-1", "--metric", "joy", "--folder", str(runs)])


def test_ambiguous_prefix_raises_with_matching_runs(runs: Path) -> None:
    with pytest.raises(RunError, match=r"'seed' matches several runs in .*; the latest are: seed-1 \(20.*\), seed-0"):
        dispatch(["runs", "compare", "seed", "seed-1", "--folder", str(runs)])


def test_open_opens_the_report(runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    assert runs_output(capsys, "open", "--folder", str(runs)).strip() == str(
        runs / "seed-1" / "report.html"
    )  # the latest run
    runs_output(capsys, "open", "seed-0", "--folder", str(runs))
    assert opened == [(runs / name / "report.html").resolve().as_uri() for name in ("seed-1", "seed-0")]


def test_open_without_a_report_raises_run_error(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare" / "run.json").write_text("{}")
    with pytest.raises(RunError, match="bare has no report: it is interrupted"):
        dispatch(["runs", "open", "--folder", str(tmp_path)])


def test_keep_stores_the_result_with_its_provenance(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    runs_output(capsys, "keep", "seed-0", "--note", "from copies", "--folder", str(runs))
    kept = json.loads((tmp_path / "results" / "seed-0.json").read_text(encoding="utf-8"))
    assert {"experiment", "settings", "options", "command", "machine", "versions", "result", "seconds"} <= set(kept)
    assert kept["note"] == "from copies"


def test_keep_of_a_damaged_run_raises_run_error(runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(runs / "seed-0", tmp_path / "runs" / "copy")
    shutil.copy(tmp_path / "runs" / "copy" / "story.json", tmp_path / "runs" / "copy" / "run.json")
    with pytest.raises(RunError, match=r"run\.json is damaged: it must name the experiment; got None"):
        dispatch(["runs", "keep", "copy"])
    assert not (tmp_path / "results").exists()


def test_keep_of_an_unfinished_run_raises_run_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "bare").mkdir(parents=True)
    (tmp_path / "runs" / "bare" / "run.json").write_text("{}")
    with pytest.raises(RunError, match="bare has no result to keep: it is interrupted"):
        dispatch(["runs", "keep", "--folder", "runs"])
    assert not (tmp_path / "results").exists()


DAMAGED = {
    "cut": ("run.json", "{", "is damaged: Expecting property name"),
    "empty": ("run.json", "{}", "is damaged: it must name the experiment; got None"),
    "text": ("result.json", '{"result": {"loss": "small"}}', "is damaged: its results must be numbers; got {'loss': "),
    "nested": ("result.json", "[" * 100_000, "is damaged: maximum recursion depth exceeded"),
    "edited": ("run.json", '{"experiment": "vae", "crc32": 1}', "its content does not match its checksum"),
}
"""A file of a run, its content, and the reason that `runs` prints."""


def test_damaged_runs_are_listed_with_the_reason_between_the_others(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("seed-0", "seed-1"):
        shutil.copytree(runs / name, tmp_path / name)
    for name, (file, content, _) in DAMAGED.items():
        shutil.copytree(runs / "seed-0", tmp_path / name)
        (tmp_path / name / file).write_text(content)
    (tmp_path / "loop").mkdir()
    (tmp_path / "loop" / "run.json").symlink_to(tmp_path / "loop" / "run.json")
    (tmp_path / "folder" / "run.json").mkdir(parents=True)
    (tmp_path / "headless").mkdir()
    shutil.copy(runs / "seed-0" / "weights.safetensors", tmp_path / "headless")
    text = runs_output(capsys, "--folder", str(tmp_path))
    listed = {line.split()[0]: line.split()[1] for line in text.splitlines() if line[:1].strip()}
    damaged = [*DAMAGED, "loop", "folder", "headless"]
    assert listed == {"run": "status", "seed-0": "finished", "seed-1": "finished", **dict.fromkeys(damaged, "damaged")}
    reasons = " ".join(text.split())
    for reason in (*(each for _, _, each in DAMAGED.values()), "is a link to no file", "Is a directory"):
        assert " ".join(reason.split()) in reasons


def test_compare_of_results_that_are_not_numbers_raises_run_error(runs: Path, tmp_path: Path) -> None:
    for name in ("one", "other"):
        shutil.copytree(runs / "seed-0", tmp_path / name)
    (tmp_path / "other" / "result.json").write_text('{"result": {"test_loss": "small"}}')
    with pytest.raises(RunError, match=r"other.result\.json is damaged: its results must be numbers"):
        dispatch(["runs", "compare", "one", "other", "--folder", str(tmp_path)])
