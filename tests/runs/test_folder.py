"""A folder is complete or absent, and has one writer."""

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

from parnassus.runs.errors import Interrupted, RunError
from parnassus.runs.folder import RunFolder, find_run, run_folders
from parnassus.runs.progress import Progress
from parnassus.train import Options, Run
from parnassus.train.execute import Recipe, execute


def test_a_folder_appears_with_its_description(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "tiny", {"experiment": "tiny"})
    assert folder.read_json("run.json") == {"experiment": "tiny"}
    assert folder.status == "interrupted"
    assert [each.path for each in run_folders(tmp_path)] == [folder.path]


def test_folders_made_in_the_same_second_differ(tmp_path: Path) -> None:
    assert len({RunFolder.create(tmp_path, "tiny", {}).path for _ in range(5)}) == 5


def test_a_name_is_taken_once(tmp_path: Path) -> None:
    RunFolder.create(tmp_path, "mine", {}, stamp=False)
    with pytest.raises(RunError, match="exists already"):
        RunFolder.create(tmp_path, "mine", {}, stamp=False)
    assert not list(tmp_path.glob(".new-*"))


def test_what_a_killed_creation_left_behind_is_swept(tmp_path: Path) -> None:
    dead = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True, check=True
    )
    (tmp_path / f".new-{dead.stdout.strip()}-abcd").mkdir()
    (tmp_path / f".new-{os.getpid()}-abcd").mkdir()
    RunFolder.create(tmp_path, "tiny", {})
    assert [path.name for path in tmp_path.glob(".new-*")] == [f".new-{os.getpid()}-abcd"]


@contextmanager
def held(folder: RunFolder) -> Iterator[int]:
    """Another process writes in the folder, until it is killed."""
    code = (
        "import sys, time; from pathlib import Path; from parnassus.runs.folder import RunFolder\n"
        "with RunFolder(Path(sys.argv[1])).lock():\n    print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(folder.path)], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        try:
            yield holder.pid
        finally:
            holder.kill()


def test_a_folder_in_use_is_refused_until_its_writer_dies(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "tiny", {})
    with held(folder):
        assert folder.status == "running"
        with pytest.raises(RunError, match="in use by another run"), folder.lock(patience=0.1):
            pass
    with folder.lock():
        pass


def test_runs_are_found_by_beginning_path_and_last(tmp_path: Path) -> None:
    first = RunFolder.create(tmp_path, "alpha", {}, stamp=False)
    second = RunFolder.create(tmp_path, "beta", {}, stamp=False)
    os.utime(second.path / "run.json", ns=(2**62, 2**62))
    assert find_run(tmp_path, "al").path == first.path
    assert find_run(tmp_path, "last").path == second.path
    assert find_run(tmp_path, str(first.path)).path == first.path
    with pytest.raises(RunError, match="'gamma' is not a run"):
        find_run(tmp_path, "gamma")


def test_the_process_is_known_while_it_runs_and_the_owner_after(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "tiny", {})
    assert (folder.owner, folder.process) == (None, None)
    with held(folder) as pid:
        assert (folder.owner, folder.process) == (pid, pid)
    assert (folder.owner, folder.process) == (pid, None)
    for text in ("", "abc", "1.5", "12 13"):
        (folder.path / ".pid").write_text(text)
        assert folder.owner is None


def test_asking_for_the_status_disturbs_nobody(tmp_path: Path) -> None:
    """A run that begins while others look again and again gets its lock."""
    folder = RunFolder.create(tmp_path, "tiny", {})
    with folder.lock():
        pass
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            assert folder.status in ("interrupted", "running")

    lookers = [threading.Thread(target=look) for _ in range(3)]
    for looker in lookers:
        looker.start()
    for _ in range(20):
        with folder.lock():
            assert folder.status == "running"
    done.set()
    for looker in lookers:
        looker.join()


def test_a_run_is_deleted_at_once_but_not_while_it_runs(tmp_path: Path) -> None:
    folder, other = RunFolder.create(tmp_path, "mine", {}, stamp=False), RunFolder.create(tmp_path, "other", {})
    (folder.path / "figures" / "a.svg").write_text("<svg/>")
    with held(folder), pytest.raises(RunError, match="mine is running: stop it first"):
        folder.delete()
    assert (folder.path / "figures" / "a.svg").exists()
    folder.delete()
    assert [path.name for path in tmp_path.iterdir()] == [other.path.name]


def test_what_a_killed_deletion_left_behind_is_no_run_and_is_swept(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "mine", {}, stamp=False)
    with held(folder) as pid:
        pass
    folder.path.rename(tmp_path / f".gone-{pid}-abcd")
    assert run_folders(tmp_path) == []
    RunFolder.create(tmp_path, "other", {}, stamp=False)
    assert [path.name for path in tmp_path.iterdir()] == ["other"]


def state(folder: RunFolder) -> str:
    return folder.status


def test_a_result_outweighs_an_error(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "tiny", {})
    folder.write_json("error.json", {"error": "no"})
    assert state(folder) == "failed"
    with held(folder):
        assert state(folder) == "running"
    folder.write_json("result.json", {"result": {}})
    assert state(folder) == "finished"


def test_the_log_has_a_line_with_the_time_for_everything(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "tiny", {})
    folder.log("began")
    folder.log("größer als π")
    lines = (folder.path / "log.txt").read_text(encoding="utf-8").splitlines()
    assert [line[10:] for line in lines] == ["began", "größer als π"]
    assert all(re.fullmatch(r"\d\d:\d\d:\d\d  ", line[:10]) for line in lines)


def test_progress_is_whole_whenever_one_looks(tmp_path: Path) -> None:
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
    seen: list[Progress | None] = []
    while not done.is_set():
        seen.append(folder.progress)
    writer.join()
    assert None not in seen
    steps = [progress.done for progress in seen if progress is not None]
    assert steps == sorted(steps)
    assert folder.progress == Progress("training" * 50, 1_999, 2_000, 0, 199.9)


STRANGE = ["{", "[]", "{}", '{"title": "x"}', '{"title": "x", "done": 1, "total": 2, "more": 3}']


@pytest.mark.parametrize("text", STRANGE)
def test_a_strange_progress_is_none(tmp_path: Path, text: str) -> None:
    folder = RunFolder.create(tmp_path, "tiny", {})
    (folder.path / "progress.json").write_text(text)
    assert folder.progress is None


# a run and what it leaves


@dataclass(frozen=True)
class Counting:
    """Counts, and may fail or be stopped at a step."""

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
            run.record(step, seen=_done(run))
        return {"counted": float(self.steps)}


def _done(run: Run) -> float:
    """What somebody else reads in the folder at this moment."""
    folder = RunFolder(run.folder)
    assert state(folder) == "running"
    return -1.0 if folder.progress is None else folder.progress.done


def count(folder: RunFolder, experiment: Counting) -> dict[str, float]:
    recipe = Recipe("counting", "Counting.", experiment, {})
    return execute(recipe, Options(device="cpu", quiet=True), folder)


def test_a_run_that_fails_says_why_and_can_be_resumed(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "tiny", {"command": "x"})
    with pytest.raises(ArithmeticError):
        count(folder, Counting(fails_at=3))
    assert state(folder) == "failed"
    assert folder.process is None
    assert folder.read_json("error.json") == {"error": "step 3 is one too many", "kind": "ArithmeticError"}
    log = (folder.path / "log.txt").read_text()
    assert f"started by process {os.getpid()}" in log
    assert "ArithmeticError: step 3 is one too many" in log
    assert "Traceback" in log
    assert count(folder, Counting()) == {"counted": 5.0}
    assert state(folder) == "finished"
    assert not (folder.path / "error.json").exists()
    assert (folder.path / "log.txt").read_text().endswith("finished\n")


def test_a_run_that_is_stopped_has_not_failed(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "tiny", {"command": "x"})
    with pytest.raises(Interrupted):
        count(folder, Counting(stops_at=2))
    assert state(folder) == "interrupted"
    assert not (folder.path / "error.json").exists()
    assert (folder.path / "log.txt").read_text().endswith("stopped; everything so far is saved\n")


def test_progress_can_be_read_while_a_run_trains(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "tiny", {"command": "x"})
    count(folder, Counting(steps=14, pause=0.1))
    (row,) = {line.split(",")[1] for line in (folder.path / "metrics.csv").read_text().splitlines()[1:]}
    seen = [float(line.split(",")[2]) for line in (folder.path / "metrics.csv").read_text().splitlines()[1:]]
    assert row == "seen"
    assert seen == sorted(seen)
    assert seen[0] == -1.0
    assert seen[-1] >= 5  # twice a second
    progress = folder.progress
    assert progress is not None
    assert (progress.title, progress.done, progress.total, progress.first) == ("training", 14, 14, 0)
    assert 2 < progress.rate <= 10.1
    assert progress.left == 0
