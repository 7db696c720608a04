"""The library: all runs on disk, newest first, each read once."""

import asyncio
import json
import os
import shutil
import time
from pathlib import Path

import pytest

from parnassus.lab.library import Library
from parnassus.runs import RunFolder


def create_run(root: Path, name: str, *, age: float = 0.0, **files: dict[str, object]) -> RunFolder:
    """A run folder manually, `age` seconds old; `result=…` writes its result.json."""
    folder = RunFolder.create(root, name, {"experiment": "pca_on_digits", "profile": "smoke"}, stamp=False)
    for file, content in files.items():
        folder.write_json(f"{file}.json", content)
    modified = time.time() - age
    os.utime(folder.path / "run.json", (modified, modified))
    return folder


def test_runs_are_sorted_newest_first(tmp_path: Path) -> None:
    for name, age in (("middle", 50.0), ("old", 100.0), ("new", 1.0)):
        create_run(tmp_path, name, age=age)
    assert [run.name for run in Library(tmp_path).runs()] == ["new", "middle", "old"]


def test_summary_has_the_values_of_the_run(lab_runs: Path) -> None:
    summaries = {run.name: run for run in Library(lab_runs).runs()}
    run, about = summaries["seed-1"], json.loads((lab_runs / "seed-1" / "run.json").read_text())
    result = json.loads((lab_runs / "seed-1" / "result.json").read_text())
    assert (run.experiment, run.profile, run.status) == ("classifier_on_digits", "smoke", "finished")
    assert run.title == "Dense classifier of handwritten digits with one hidden layer (book sec. 1.4)."
    numbers = {"width": 128, "epochs": 2, "batch_size": 32, "learning_rate": 1.0}
    assert run.settings == {"data": "digits", "image_size": None, **numbers}
    assert run.options["seed"] == 1
    assert run.started == about["started"]
    assert run.seconds == result["seconds"]
    assert run.result == result["result"]
    assert set(summaries) >= {"seed-0", "seed-1", "pca"}


def test_summary_follows_the_status_of_a_run(tmp_path: Path) -> None:
    library = Library(tmp_path)
    folder = create_run(tmp_path, "mine")
    assert [(run.status, run.result) for run in library.runs()] == [("interrupted", {})]
    with folder.lock():
        assert library.summary(folder).status == "running"
    folder.write_json("error.json", {"error": "no", "kind": "RunError"})
    assert library.summary(folder).status == "failed"
    folder.write_json("result.json", {"result": {"loss": 0.5}, "seconds": 3})
    assert library.summary(folder).status == "finished"
    assert library.summary(folder).result == {"loss": 0.5}
    folder.write_json("result.json", {"result": {"loss": 0.25}, "seconds": 4})
    assert library.summary(folder).result == {"loss": 0.25}
    assert library.summary(folder) is library.summary(folder)  # a finished run is not read again
    folder.delete()
    assert library.runs() == []


def test_recreated_run_is_read_again(tmp_path: Path) -> None:
    library = Library(tmp_path)
    create_run(tmp_path, "mine", age=10, result={"result": {"loss": 1.0}, "seconds": 1}).delete()
    create_run(tmp_path, "mine", age=10, result={"result": {"loss": 1.0}, "seconds": 1})
    assert library.runs()[0].result == {"loss": 1.0}
    shutil.rmtree(tmp_path / "mine")
    create_run(tmp_path, "mine", age=5, result={"result": {"loss": 2.0}, "seconds": 1})
    assert library.runs()[0].result == {"loss": 2.0}


def damage(kind: str, folder: RunFolder) -> None:
    about = folder.path / "run.json"
    match kind:
        case "cut off":
            about.write_text('{"experiment": "pca')
        case "a list":
            about.write_text("[1, 2]")
        case "empty":
            about.write_text("")
        case "no text":
            about.write_bytes(b'{"experiment": "\xff\xfe"}')
        case "too deep":
            about.write_text("[" * 100_000)
        case "too long a number":
            about.write_text('{"seconds": ' + "9" * 5000 + "}")
        case "a folder":
            about.unlink()
            about.mkdir()
        case "a link":
            about.unlink()
            about.symlink_to(folder.path / "nowhere")
        case "result":
            (folder.path / "result.json").write_text("{")


KINDS = ["cut off", "a list", "empty", "no text", "too deep", "too long a number", "a folder", "a link", "result"]


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_folders_are_skipped(tmp_path: Path, kind: str) -> None:
    create_run(tmp_path, "whole", result={"result": {"loss": 1.0}, "seconds": 1})
    damage(kind, create_run(tmp_path, "broken"))
    assert [run.name for run in Library(tmp_path).runs()] == ["whole"]


def test_too_large_numbers_do_not_hide_other_runs(tmp_path: Path) -> None:
    create_run(tmp_path, "whole")
    create_run(tmp_path, "broken", result={"result": {"loss": 10**400}, "seconds": 10**400})
    assert "whole" in [run.name for run in Library(tmp_path).runs()]


@pytest.mark.parametrize(
    "about",
    [
        {},
        {"experiment": None, "settings": [1], "options": "x", "started": 5, "profile": {}, "title": ["<b>"]},
        {"settings": {"a": {"b": [None]}}, "options": {"seed": "one"}},
    ],
)
def test_values_of_other_types_are_converted_or_skipped(tmp_path: Path, about: dict[str, object]) -> None:
    folder = RunFolder.create(tmp_path, "strange", about, stamp=False)
    folder.write_json("result.json", {"result": {"a": 1, "b": "two", "c": None, "d": [3]}, "seconds": "soon"})
    (run,) = Library(tmp_path).runs()
    assert run.status == "finished"
    assert run.result == {"a": 1}
    assert run.seconds is None
    assert isinstance(run.settings, dict)
    assert isinstance(run.options, dict)
    assert all(isinstance(text, str) for text in (run.experiment, run.title, run.profile, run.started))


def test_other_folders_are_not_runs(tmp_path: Path) -> None:
    create_run(tmp_path, "mine")
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / "empty").mkdir()
    (tmp_path / ".new-1-abc").mkdir()
    (tmp_path / ".new-1-abc" / "run.json").write_text("{}")
    (tmp_path / "deep" / "inside").mkdir(parents=True)
    (tmp_path / "deep" / "inside" / "run.json").write_text("{}")
    library = Library(tmp_path)
    assert [run.name for run in library.runs()] == ["mine"]
    for name in ("", ".", "..", "min", "mine/", "mine/../mine", "deep/inside", str(tmp_path / "mine"), ".new-1-abc"):
        assert library.run(name) is None
    found = library.run("mine")
    assert found is not None
    assert found.path == tmp_path / "mine"


def test_missing_folder_has_no_runs(tmp_path: Path) -> None:
    assert Library(tmp_path / "nowhere").runs() == []
    assert Library(tmp_path / "nowhere").run("x") is None
    assert not (tmp_path / "nowhere").exists()


def test_probes_list_the_finished_runs_of_their_experiments(lab_runs: Path, tmp_path: Path) -> None:
    library = Library(lab_runs)
    draw_probe, reconstruct_probe = (
        library.atlas.probes["draw_a_digit"],
        library.atlas.probes["reconstruct_from_components"],
    )
    assert {"seed-0", "seed-1"} <= {run.name for run in library.runs_for(draw_probe)}
    assert "pca" in [run.name for run in library.runs_for(reconstruct_probe)]
    assert not {run.name for run in library.runs_for(draw_probe)} & {
        run.name for run in library.runs_for(reconstruct_probe)
    }
    assert library.probes_for("classifier_on_digits") == [draw_probe]
    create_run(tmp_path, "unfinished")
    assert Library(tmp_path).runs_for(reconstruct_probe) == []


def test_unchanged_runs_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    about = {
        "experiment": "pca_on_digits",
        "settings": {"num_shown": 4},
        "options": {"seed": 0},
        "started": "2026-01-01",
    }
    for index in range(50):
        folder = tmp_path / f"run-{index:03d}"
        folder.mkdir()
        (folder / "run.json").write_text(json.dumps(about))
        (folder / "result.json").write_text('{"result": {"loss": 0.5}, "seconds": 1.0}')
        (folder / ".lock").touch()
    library = Library(tmp_path)
    first = library.runs()
    assert len(first) == 50

    def fail_on_read(*_: object) -> dict[str, object]:
        raise AssertionError("an unchanged run is read again")

    monkeypatch.setattr(RunFolder, "read_json", fail_on_read)
    assert library.runs() == first
    assert library.run("run-025") is not None


def test_claim_results_are_stored(tmp_path: Path) -> None:
    library = Library(tmp_path)
    mark = next(mark for mark in library.atlas.marks_of("B4.5-5") if mark.kind == "erratum")
    result = asyncio.run(library.check(mark))
    library.close()
    assert result.holds
    assert library.claim_results == {mark: result}
