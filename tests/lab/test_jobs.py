"""Runs started by the lab: independent processes that are found by their folder, stopped and resumed."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from cli.conftest import clean_environment

from lab.conftest import wait_for
from parnassus.lab.jobs import Job, Jobs, stop
from parnassus.runs import RunError, RunFolder, run_folders

FLAGS = ("--device", "cpu", "--threads", "1", "--quiet")
LONG = ("run", "classifier_on_digits", "--epochs", "100000", *FLAGS)


class StartedJobs:
    """Jobs in a folder, with their processes."""

    def __init__(self, root: Path) -> None:
        self.jobs, self.all = Jobs(root), list[Job]()

    def start(self, *words: str) -> Job:
        return self.keep(self.jobs.start(words))

    def keep(self, job: Job) -> Job:
        self.all.append(job)
        return job

    def folder(self, job: Job) -> RunFolder:
        wait_for(lambda: job.folder or job.is_finished, "the folder of a run")
        found = job.folder
        assert found is not None, job.failure()
        return found


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StartedJobs]:
    for name in set(os.environ) - set(clean_environment()):
        monkeypatch.delenv(name)
    started = StartedJobs(tmp_path / "runs")
    yield started
    for job in started.all:
        if not job.is_finished:
            job.process.kill()
        job.process.wait(10)
        job.stderr.close()


def test_job_finds_the_folder_of_its_process(started: StartedJobs) -> None:
    """Also if two runs with the same name start in the same second."""
    jobs = [started.start(*LONG, "--seed", str(seed)) for seed in (0, 1)]
    folders = [started.folder(job) for job in jobs]
    assert len({folder.path for folder in folders}) == 2
    for seed, (job, folder) in enumerate(zip(jobs, folders, strict=True)):
        assert folder.path.parent == started.jobs.root
        assert folder.owner == folder.process == job.process.pid
        options = folder.read_json("run.json")["options"]
        assert isinstance(options, dict)
        assert options["seed"] == seed


def test_stopped_run_is_saved_and_resumed(started: StartedJobs) -> None:
    """Also if another run is the latest."""
    words = ("run", "classifier_on_digits", "--epochs", "60", "--save-seconds", "0.2", *FLAGS)
    job = started.start(*words, "--name", "late")
    folder = started.folder(job)
    wait_for((folder.path / "checkpoint.safetensors").exists, "the first steps")
    assert status_of(folder) == "running"
    with pytest.raises(RunError, match="late is running: it cannot be resumed"):
        started.jobs.resume(folder)

    stop(folder)
    wait_for(lambda: job.is_finished, "the end of a stopped run")
    assert job.process.returncode == 130
    assert status_of(folder) == "interrupted"
    assert folder.process is None
    assert (folder.path / "checkpoint.safetensors").exists()
    with pytest.raises(RunError, match="late is interrupted: it cannot be stopped"):
        stop(folder)

    RunFolder.create(started.jobs.root, "newer", {"experiment": "pca_on_digits"}, stamp=False)
    resumed = started.keep(started.jobs.resume(folder))
    wait_for(lambda: folder.status == "running" or resumed.is_finished, "the resumed run")
    assert started.folder(resumed).path == folder.path
    assert started.jobs.find("late") is resumed
    assert started.jobs.find("newer") is None
    wait_for(lambda: resumed.is_finished, "the end of a run")
    assert resumed.process.returncode == 0, resumed.failure()
    assert status_of(folder) == "finished"
    assert [line.split()[1] for line in (folder.path / "log.txt").read_text().splitlines()][-1] == "finished"
    assert "resumed by process" in (folder.path / "log.txt").read_text()
    assert not (started.jobs.root / "newer" / "log.txt").exists()
    for action, participle in ((stop, "stopped"), (started.jobs.resume, "resumed")):
        with pytest.raises(RunError, match=f"late is finished: it cannot be {participle}"):
            action(folder)


def status_of(folder: RunFolder) -> str:
    return folder.status


STARTER = """
import sys, time
from pathlib import Path
from parnassus.lab.jobs import Jobs
job = Jobs(Path(sys.argv[1])).start(sys.argv[2:])
print(job.process.pid, flush=True)
time.sleep(600)
"""


def test_run_continues_after_its_starter_is_killed(tmp_path: Path) -> None:
    root, pid = tmp_path / "runs", None
    words = [sys.executable, "-c", STARTER, str(root), *LONG]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=clean_environment()) as starter:
        try:
            assert starter.stdout is not None
            pid = int(starter.stdout.readline())
            session = os.getsid(pid)
        finally:
            starter.send_signal(signal.SIGKILL)
    try:
        assert session == pid  # its own session: Ctrl-C in the terminal of the lab does not reach it
        wait_for(lambda: steps_done(root) > 0, "a step of a run whose starter was killed")
        before = steps_done(root)
        wait_for(lambda: steps_done(root) > before, "another step")
        (folder,) = run_folders(root)
        assert folder.process == pid
        stop(folder)
        wait_for(lambda: folder.process is None, "the end of a stopped run")
        assert folder.status == "interrupted"
    except BaseException:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        raise


def steps_done(root: Path) -> int:
    return max((progress.done for folder in run_folders(root) if (progress := folder.progress) is not None), default=0)


def test_failed_start_stores_its_error_message(started: StartedJobs, tmp_path: Path) -> None:
    missing = tmp_path / "none.csv"
    messages = {
        ("run", "no_such_thing"): "unknown experiment: 'no_such_thing'",
        ("run", "pca_on_digits", "--data", str(missing), *FLAGS): f"{missing} does not exist: give the path of ",
    }
    jobs = [started.start(*words) for words in messages]
    for job, message in zip(jobs, messages.values(), strict=True):
        assert job.process.wait(60) == 2
        assert job.failure().startswith(message)
        assert job.failure() == job.failure()
        assert job.folder is None
    assert not list(started.jobs.root.glob("*"))
