"""A folder is complete or absent, and has one writer."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from parnassus.train.errors import RunError
from parnassus.train.folder import RunFolder, find_run, run_folders


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


def test_a_folder_in_use_is_refused_until_its_writer_dies(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "tiny", {})
    code = (
        "import sys, time; from pathlib import Path; from parnassus.train.folder import RunFolder\n"
        "with RunFolder(Path(sys.argv[1])).lock():\n    print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(folder.path)], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        assert folder.status == "running"
        with pytest.raises(RunError, match="in use by another run"), folder.lock(patience=0.1):
            pass
        holder.kill()
    with folder.lock():
        pass


def test_runs_are_found_by_beginning_path_and_last(tmp_path: Path) -> None:
    first = RunFolder.create(tmp_path, "alpha", {}, stamp=False)
    second = RunFolder.create(tmp_path, "beta", {}, stamp=False)
    os.utime(second.path / "run.json", ns=(2**62, 2**62))
    assert find_run(tmp_path, "al").path == first.path
    assert find_run(tmp_path, "last").path == second.path
    assert find_run(tmp_path, str(first.path)).path == first.path
    with pytest.raises(RunError, match="'gamma' is no run"):
        find_run(tmp_path, "gamma")
