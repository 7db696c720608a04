"""Run folders are created atomically and have one writer."""

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from parnassus.runs.errors import RunError, RunInterrupted
from parnassus.runs.folder import RunFolder
from parnassus.runs.lookup import run_folders
from parnassus.runs.progress import Progress
from parnassus.train import Options, Run
from parnassus.train.execute import Recipe, execute


def test_created_folder_contains_its_description(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "tiny", {"experiment": "tiny"})
    assert folder.read_json("run.json") == {"experiment": "tiny"}
    assert folder.status == "interrupted"
    assert [each.path for each in run_folders(tmp_path)] == [folder.path]


def test_folders_created_in_the_same_second_are_distinct(tmp_path: Path) -> None:
    assert len({RunFolder.create(tmp_path, "tiny", {}).path for _ in range(5)}) == 5


def test_existing_name_raises_run_error(tmp_path: Path) -> None:
    RunFolder.create(tmp_path, "mine", {}, stamp=False)
    with pytest.raises(RunError, match="already exists"):
        RunFolder.create(tmp_path, "mine", {}, stamp=False)
    assert not list(tmp_path.glob(".new-*"))


def test_leftovers_of_a_killed_creation_are_removed(tmp_path: Path) -> None:
    exited = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True, check=True
    )
    (tmp_path / f".new-{exited.stdout.strip()}-abcd").mkdir()
    (tmp_path / f".new-{os.getpid()}-abcd").mkdir()
    RunFolder.create(tmp_path, "tiny", {})
    assert [path.name for path in tmp_path.glob(".new-*")] == [f".new-{os.getpid()}-abcd"]


@contextmanager
def locked_by_other_process(folder: RunFolder) -> Iterator[int]:
    """Hold the lock of the folder in another process."""
    code = (
        "import sys, time; from pathlib import Path; from parnassus.runs.folder import RunFolder\n"
        "with RunFolder(Path(sys.argv[1])).lock():\n    print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(folder.path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process.pid
        finally:
            process.kill()


def test_lock_is_exclusive_until_its_owner_exits(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "tiny", {})
    with locked_by_other_process(folder):
        assert folder.status == "running"
        with pytest.raises(RunError, match="in use by another run"), folder.lock(patience=0.1):
            pass
    with folder.lock():
        pass


def test_process_is_set_while_running_and_owner_afterwards(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "tiny", {})
    assert (folder.owner, folder.process) == (None, None)
    with locked_by_other_process(folder) as pid:
        assert (folder.owner, folder.process) == (pid, pid)
    assert (folder.owner, folder.process) == (pid, None)
    for text in ("", "abc", "1.5", "12 13"):
        (folder.path / ".pid").write_text(text)
        assert folder.owner is None


def test_reading_the_status_does_not_block_the_lock(tmp_path: Path) -> None:
    """A lock can be acquired while other threads poll the status."""
    folder = RunFolder.create(tmp_path, "tiny", {})
    with folder.lock():
        pass
    done = threading.Event()

    def poll_status() -> None:
        while not done.is_set():
            assert folder.status in ("interrupted", "running")

    threads = [threading.Thread(target=poll_status) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(20):
        with folder.lock():
            assert folder.status == "running"
    done.set()
    for thread in threads:
        thread.join()


def test_running_run_cannot_be_deleted(tmp_path: Path) -> None:
    folder, other = RunFolder.create(tmp_path, "mine", {}, stamp=False), RunFolder.create(tmp_path, "other", {})
    (folder.path / "figures" / "a.svg").write_text("<svg/>")
    with locked_by_other_process(folder), pytest.raises(RunError, match="mine is running: stop it first"):
        folder.delete()
    assert (folder.path / "figures" / "a.svg").exists()
    folder.delete()
    assert [path.name for path in tmp_path.iterdir()] == [other.path.name]


def test_leftovers_of_a_killed_deletion_are_removed(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "mine", {}, stamp=False)
    with locked_by_other_process(folder) as pid:
        pass
    folder.path.rename(tmp_path / f".gone-{pid}-abcd")
    assert run_folders(tmp_path) == []
    RunFolder.create(tmp_path, "other", {}, stamp=False)
    assert [path.name for path in tmp_path.iterdir()] == ["other"]


def status_of(folder: RunFolder) -> str:
    return folder.status


def test_result_takes_precedence_over_error(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "tiny", {})
    folder.write_json("error.json", {"error": "no"})
    assert status_of(folder) == "failed"
    with locked_by_other_process(folder):
        assert status_of(folder) == "running"
    folder.write_json("result.json", {"result": {}})
    assert status_of(folder) == "finished"


def test_log_lines_have_a_time_stamp(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "tiny", {})
    folder.log("began")
    folder.log("größer als π")
    lines = (folder.path / "log.txt").read_text(encoding="utf-8").splitlines()
    assert [line[10:] for line in lines] == ["began", "größer als π"]
    assert all(re.fullmatch(r"\d\d:\d\d:\d\d  ", line[:10]) for line in lines)


def test_progress_is_written_atomically(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "tiny", {})
    assert folder.progress is None
    folder.show_progress(Progress("training", 0, 2_000))
    done = threading.Event()

    def write() -> None:
        for step in range(2_000):
            folder.show_progress(Progress("training" * 50, step, 2_000, 0, step / 10))
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    observed: list[Progress | None] = []
    while not done.is_set():
        observed.append(folder.progress)
    writer.join()
    assert None not in observed
    steps = [progress.done for progress in observed if progress is not None]
    assert steps == sorted(steps)
    assert folder.progress == Progress("training" * 50, 1_999, 2_000, 0, 199.9)


INVALID = ["{", "[]", "{}", '{"title": "x"}', '{"title": "x", "done": 1, "total": 2, "more": 3}']


@pytest.mark.parametrize("text", INVALID)
def test_invalid_progress_is_none(tmp_path: Path, text: str) -> None:
    folder = RunFolder.create(tmp_path, "tiny", {})
    (folder.path / "progress.json").write_text(text)
    assert folder.progress is None


# execution of a run


@dataclass(frozen=True)
class CountingExperiment:
    """Counts steps; can fail or be stopped at a step."""

    steps: int = 5
    fails_at: int = -1
    stops_at: int = -1
    pause: float = 0.0

    def __call__(self, run: Run) -> dict[str, float]:
        for step, _ in run.steps(self.steps):
            if step == self.fails_at:
                raise ArithmeticError(f"step {step} is one too many")
            if step == self.stops_at:
                raise KeyboardInterrupt
            time.sleep(self.pause)
            run.record(step, seen=_progress_in_folder(run))
        return {"counted": float(self.steps)}


def _progress_in_folder(run: Run) -> float:
    """The progress that another process reads from the folder."""
    folder = RunFolder(run.folder)
    assert status_of(folder) == "running"
    return -1.0 if folder.progress is None else folder.progress.done


def count(folder: RunFolder, experiment: CountingExperiment) -> dict[str, float]:
    recipe = Recipe("counting", "Counting.", experiment, {})
    return execute(recipe, Options(device="cpu", quiet=True), folder)


def test_failed_run_stores_its_error_and_can_be_resumed(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "tiny", {"command": "x"})
    with pytest.raises(ArithmeticError):
        count(folder, CountingExperiment(fails_at=3))
    assert status_of(folder) == "failed"
    assert folder.process is None
    assert folder.read_json("error.json") == {"error": "step 3 is one too many", "kind": "ArithmeticError"}
    log = (folder.path / "log.txt").read_text()
    assert f"started by process {os.getpid()}" in log
    assert "ArithmeticError: step 3 is one too many" in log
    assert "Traceback" in log
    assert count(folder, CountingExperiment()) == {"counted": 5.0}
    assert status_of(folder) == "finished"
    assert not (folder.path / "error.json").exists()
    assert (folder.path / "log.txt").read_text().endswith("finished\n")


def test_stopped_run_is_interrupted_without_error(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "tiny", {"command": "x"})
    with pytest.raises(RunInterrupted):
        count(folder, CountingExperiment(stops_at=2))
    assert status_of(folder) == "interrupted"
    assert not (folder.path / "error.json").exists()
    assert (folder.path / "log.txt").read_text().endswith("stopped; the state is saved\n")


def test_progress_can_be_read_during_training(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "tiny", {"command": "x"})
    count(folder, CountingExperiment(steps=14, pause=0.1))
    (metric,) = {line.split(",")[1] for line in (folder.path / "metrics.csv").read_text().splitlines()[1:]}
    seen = [float(line.split(",")[2]) for line in (folder.path / "metrics.csv").read_text().splitlines()[1:]]
    assert metric == "seen"
    assert seen == sorted(seen)
    assert seen[0] == -1.0
    assert seen[-1] >= 5  # twice a second
    progress = folder.progress
    assert progress is not None
    assert (progress.title, progress.done, progress.total, progress.first) == ("training", 14, 14, 0)
    assert 2 < progress.rate <= 10.1
    assert progress.seconds_left == 0
