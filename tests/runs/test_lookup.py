"""One lookup of runs for all verbs: by path, name, `last` or an unambiguous beginning; commands that find a run."""

import os
import shlex
from pathlib import Path

import pytest

from parnassus.runs import RunError, RunFolder, command_for, find_run, run_folders
from parnassus.runs.lookup import AmbiguousRunError, UnknownRunError


def create(root: Path, name: str, started: int = 0) -> RunFolder:
    """A run in `root` that was started at a time in seconds."""
    folder = RunFolder.create(root, name, {"experiment": "vae"}, stamp=False)
    os.utime(folder.path / "run.json", (started, started))
    return folder


def test_runs_are_found_by_path_name_last_and_beginning(tmp_path: Path) -> None:
    beta, alpha = create(tmp_path, "beta", started=20), create(tmp_path, "alpha", started=10)
    assert [each.path for each in run_folders(tmp_path)] == [alpha.path, beta.path]
    assert find_run(tmp_path, "alpha").path == alpha.path
    assert find_run(tmp_path, "al").path == alpha.path
    assert find_run(tmp_path, "last").path == beta.path
    assert find_run(tmp_path / "nowhere", str(alpha.path)).path == alpha.path
    assert find_run(tmp_path / "nowhere", f"{alpha.path}/").path == alpha.path


def test_the_exact_name_takes_precedence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over longer names, over a folder of the current directory, and over the keyword `last`."""
    monkeypatch.chdir(tmp_path)
    for name in ("vae", "vae-2", "last", "zeta"):
        create(tmp_path / "runs", name)
    create(tmp_path, "vae")
    create(tmp_path, "here")
    assert find_run(Path("runs"), "vae").path == Path("runs/vae")
    assert find_run(Path("runs"), "./vae").path == Path("vae")
    assert find_run(Path("runs"), "here").path == Path("here")
    assert find_run(Path("runs"), "last").path == Path("runs/last")


def test_unknown_and_ambiguous_names_list_the_latest_runs_with_dates(tmp_path: Path) -> None:
    for day in range(1, 8):
        create(tmp_path, f"vae-{day}", started=86_400 * day)
    dates = (
        r"vae-7 \(1970-01-0\d \d\d:\d\d\), vae-6 \(.*\), vae-5 \(.*\), vae-4 \(.*\), vae-3 \(1970-01-0\d \d\d:\d\d\)$"
    )
    with pytest.raises(AmbiguousRunError, match=rf"'va' matches several runs in .*; the latest are: {dates}"):
        find_run(tmp_path, "va")
    for name in ("gpt", ""):
        with pytest.raises(UnknownRunError, match=rf"'{name}' is not a run in .*; the latest are: {dates}"):
            find_run(tmp_path, name)
    with pytest.raises(UnknownRunError, match=r"the latest are: none$"):
        find_run(tmp_path / "empty", "last")
    with pytest.raises(UnknownRunError, match=r"gpt is not a run: it has no file run\.json"):
        find_run(tmp_path, str(tmp_path / "gpt"))


def test_a_date_beyond_the_calendar_is_unknown(tmp_path: Path) -> None:
    folder = create(tmp_path, "late")
    os.utime(folder.path / "run.json", ns=(2**62, 2**62))
    with pytest.raises(UnknownRunError, match=r"late \((unknown date|\d+-\d\d-\d\d \d\d:\d\d)\)$"):
        find_run(tmp_path, "gpt")


def test_a_file_or_a_loop_as_folder_of_runs_raises_run_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name in ("file", "loop"):
        with pytest.raises(RunError, match=rf"--folder must be a folder of runs; got .*{name}, which is not a folder"):
            run_folders(tmp_path / name)


@pytest.mark.parametrize("name", ["ck", "a b", "-dash", "größe", "$(touch x)"])
@pytest.mark.parametrize("root", ["runs", "cr", "with space/cr"])
def test_a_printed_command_finds_the_run_again(
    name: str, root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = create(Path(root), name)
    parnassus, verb, run, *flags = shlex.split(command_for(folder, "resume"))
    assert (parnassus, verb) == ("parnassus", "resume")
    assert not run.startswith("-")
    found = Path(flags[1]) if flags[:1] == ["--folder"] else Path("runs")
    assert find_run(found, run).path.samefile(folder.path)
    if root == "runs" and not name.startswith("-"):
        assert flags == []
