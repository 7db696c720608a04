"""`runs` lists, compares and opens."""

import json
import webbrowser
from pathlib import Path

import pytest

from parnassus.cli.main import dispatch
from parnassus.runs import RunError


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert dispatch(["runs", *arguments]) == 0
    return capsys.readouterr().out


def test_an_empty_folder_says_how_to_start(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = " ".join(shown(capsys, "--folder", str(tmp_path / "none")).split())
    assert text.endswith("yet; start one with: parnassus run NAME")
    assert not (tmp_path / "none").exists()


def test_runs_are_listed_with_their_numbers(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys, "--folder", str(runs)).splitlines()
    assert lines[0].split() == ["run", "status", "profile", "seconds"]
    assert [line.split()[:3] for line in lines if line.startswith("seed-")] == [
        ["seed-0", "finished", "smoke"],
        ["seed-1", "finished", "smoke"],
    ]
    assert "accuracy" in " ".join(lines)
    assert max(map(len, lines)) <= 80


def test_comparing_shows_what_differs_and_draws_a_curve(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "compare", "seed-0", "seed-1", "--folder", str(runs))
    lines = [line.split() for line in text.splitlines()]
    assert ["seed-0", "seed-1"] in lines
    assert ["seed", "0", "1"] in lines
    assert not [line for line in lines if line[:1] == ["precision"]]  # the same in both
    assert (runs / "comparison.png").stat().st_size > 0
    assert ">seed-1<" in (runs / "comparison.svg").read_text()


@pytest.mark.parametrize("names", [[], ["seed-0"]])
def test_comparing_needs_two(names: list[str], runs: Path) -> None:
    with pytest.raises(RunError, match=f"compare needs at least two runs; got {len(names)}"):
        dispatch(["runs", "compare", *names, "--folder", str(runs)])


def test_an_unknown_metric_names_those_there_are(runs: Path) -> None:
    with pytest.raises(RunError, match=r"none of these runs has a metric 'joy'; choose --metric from .*loss"):
        dispatch(["runs", "compare", "seed-0", "seed-1", "--metric", "joy", "--folder", str(runs)])


def test_an_ambiguous_beginning_names_the_runs(runs: Path) -> None:
    with pytest.raises(RunError, match=r"'seed' fits several runs in .*; the latest are: seed-0, seed-1"):
        dispatch(["runs", "compare", "seed", "seed-1", "--folder", str(runs)])


def test_open_shows_the_report(runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    assert shown(capsys, "open", "--folder", str(runs)).strip() == str(runs / "seed-1" / "report.html")  # the last
    shown(capsys, "open", "seed-0", "--folder", str(runs))
    assert opened == [(runs / name / "report.html").resolve().as_uri() for name in ("seed-1", "seed-0")]


def test_a_run_without_a_report_is_not_opened(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare" / "run.json").write_text("{}")
    with pytest.raises(RunError, match="bare has no report: it is interrupted"):
        dispatch(["runs", "open", "--folder", str(tmp_path)])


def test_a_result_is_kept_with_what_made_it(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    shown(capsys, "keep", "seed-0", "--note", "from copies", "--folder", str(runs))
    kept = json.loads((tmp_path / "results" / "seed-0.json").read_text(encoding="utf-8"))
    assert {"experiment", "settings", "options", "command", "machine", "versions", "result", "seconds"} <= set(kept)
    assert kept["note"] == "from copies"


def test_only_a_finished_run_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "bare").mkdir(parents=True)
    (tmp_path / "runs" / "bare" / "run.json").write_text("{}")
    with pytest.raises(RunError, match="bare has no result to keep: it is interrupted"):
        dispatch(["runs", "keep", "--folder", "runs"])
    assert not (tmp_path / "results").exists()


def test_a_damaged_run_is_named(tmp_path: Path) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "run.json").write_text("{")
    with pytest.raises(RunError, match=r"broken.run\.json is damaged"):
        dispatch(["runs", "--folder", str(tmp_path)])
