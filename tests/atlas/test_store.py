"""The index on disk: files are read once per version, and a damaged index is rebuilt."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from parnassus.atlas import store
from parnassus.atlas.index import INDEXED, Atlas
from parnassus.atlas.reading import experiment_files
from parnassus.runs import RunFolder


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "cache_folder", lambda: tmp_path / "cache")


class Reader:
    """Parses files into lines and counts the reads of each file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.read: Counter[str] = Counter()

    def files(self) -> list[Path]:
        return sorted(self.folder.glob("*.txt"))

    def parse(self, path: Path) -> list[str]:
        self.read[path.name] += 1
        return path.read_text(encoding="utf-8").splitlines()

    def load(self) -> list[str]:
        return store.load("lines", self.files, self.parse)


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    (tmp_path / "a.txt").write_text("1\n2\n")
    (tmp_path / "b.txt").write_text("3\n")
    return Reader(tmp_path)


def write_with_mtime(path: Path, text: str, mtime: int) -> None:
    path.write_text(text)
    os.utime(path, ns=(mtime, mtime))


def test_changed_files_are_read_again(reader: Reader, tmp_path: Path) -> None:
    assert reader.load() == reader.load() == ["1", "2", "3"]
    assert reader.read == {"a.txt": 1, "b.txt": 1}
    write_with_mtime(tmp_path / "b.txt", "4\n", 10**18)
    assert reader.load() == ["1", "2", "4"]
    assert reader.read == {"a.txt": 1, "b.txt": 2}


def test_items_are_read_again_when_a_dependency_changes(reader: Reader, tmp_path: Path) -> None:
    base = tmp_path / "base.py"

    def load() -> list[str]:
        return store.load("lines", reader.files, reader.parse, lambda item: [base] if item == "3" else [])

    write_with_mtime(base, "one", 10**18)
    assert load() == load() == ["1", "2", "3"]
    assert reader.read == {"a.txt": 1, "b.txt": 1}
    write_with_mtime(base, "two", 2 * 10**18)
    load()
    assert reader.read == {"a.txt": 1, "b.txt": 2}
    base.unlink()
    load()
    assert reader.read == {"a.txt": 1, "b.txt": 3}


def test_added_and_removed_files_are_detected(reader: Reader, tmp_path: Path) -> None:
    reader.load()
    (tmp_path / "a.txt").unlink()
    (tmp_path / "c.txt").write_text("5\n")
    assert reader.load() == ["3", "5"]
    assert reader.read == {"a.txt": 1, "b.txt": 1, "c.txt": 1}


VERSION = json.dumps(store._version())
DAMAGES = [
    "",
    "{",
    "[]",
    "null",
    "3",
    '"text"',
    '{"version": 0, "files": {}}',
    '{"files": []}',
    f'{{"version": {VERSION}, "files": []}}',
    f'{{"version": {VERSION}, "files": 3}}',
    f'{{"version": {VERSION}, "files": {{"a.txt": 3}}}}',
    f'{{"version": {VERSION}, "files": {{"a.txt": [[], [{{}}]]}}}}',
    f'{{"version": {VERSION}}}',
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_index_is_rebuilt(reader: Reader, tmp_path: Path, damage: str) -> None:
    reader.load()
    (tmp_path / "cache" / "lines.json").write_text(damage)
    assert reader.load() == ["1", "2", "3"]
    assert reader.read == {"a.txt": 2, "b.txt": 2}
    assert json.loads((tmp_path / "cache" / "lines.json").read_text())["files"]


def test_index_with_a_changed_value_is_rebuilt(reader: Reader, tmp_path: Path) -> None:
    reader.load()
    path = tmp_path / "cache" / "lines.json"
    written = path.read_text()
    assert written.count('["1", "2"]') == 1
    path.write_text(written.replace('["1", "2"]', '["1", 222]'))
    assert reader.load() == ["1", "2", "3"]


@pytest.mark.parametrize("damage", [*DAMAGES, '{"items": 3}', "[{}]", "[3]"])
def test_damaged_shipped_index_is_replaced_by_the_cache(
    reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    monkeypatch.setattr(store, "SHIPPED", tmp_path / "shipped")
    (tmp_path / "shipped").mkdir()
    (tmp_path / "shipped" / "lines.json").write_text(damage)
    assert reader.load() == reader.load() == ["1", "2", "3"]
    assert reader.read == {"a.txt": 1, "b.txt": 1}


def test_atlas_is_rebuilt_from_a_malformed_index(tmp_path: Path) -> None:
    kinds = ("rows", "marks", "experiments", "probes", "commands")
    first, second = Atlas(), Atlas()
    expected = {kind: getattr(first, kind) for kind in kinds}
    for kind in kinds:
        path = tmp_path / "cache" / f"{kind}.json"
        assert path.exists()
        path.write_text('{"files": []}')
    assert {kind: getattr(second, kind) for kind in kinds} == expected


def test_unwritable_cache_is_tolerated(reader: Reader, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    assert reader.load() == reader.load() == ["1", "2", "3"]


def test_shipped_index_is_used_unchanged(reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "SHIPPED", tmp_path / "shipped")
    store.write_index(tmp_path / "shipped", [("lines", reader.files, reader.parse)])
    (tmp_path / "a.txt").unlink()
    reader.read.clear()
    assert reader.load() == ["1", "2", "3"]
    assert reader.read == {}
    assert not (tmp_path / "cache").exists()


def test_atlas_is_identical_from_cache_and_shipped_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, cached = Atlas(), Atlas()
    monkeypatch.setattr(store, "SHIPPED", tmp_path / "shipped")
    store.write_index(tmp_path / "shipped", INDEXED)
    shipped = Atlas()
    for name in ("rows", "marks", "experiments", "probes", "commands", "subjects"):
        assert getattr(first, name)
        assert getattr(first, name) == getattr(cached, name) == getattr(shipped, name)


OPENED = """
import sys
from contextlib import suppress
from parnassus.cli.main import dispatch
opened = []
sys.addaudithook(lambda event, data: opened.append(str(data[0])) if event == "open" else None)
with suppress(SystemExit):
    dispatch(sys.argv[1:])
print(*opened, sep="\\n", file=sys.stderr)
"""


def opened_experiments(home: Path, *arguments: str) -> Counter[str]:
    """How often a command opens each experiment file; `home` is the folder of the user's cache."""
    completed = subprocess.run(
        [sys.executable, "-c", OPENED, *arguments],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "XDG_CACHE_HOME": str(home)},
    )
    files = {str(path): path.stem for path in experiment_files()}
    return Counter(files[line] for line in completed.stderr.splitlines() if line in files)


def test_list_reads_no_source_file_twice(tmp_path: Path) -> None:
    """The second `parnassus list` opens none of the experiments."""
    first, second = (opened_experiments(tmp_path / "home", "list") for _ in range(2))
    assert first == Counter(set(Atlas().experiments))
    assert second == {}


@pytest.mark.parametrize("arguments", [("show", "vae"), ("run", "vae", "--help"), ("sample", "RUN", "--help")])
def test_commands_open_each_experiment_once_without_a_cache(
    runs_of_vae: Path, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    (tmp_path / "home").write_text("a file where the folder should be")
    words = [str(runs_of_vae) if word == "RUN" else word for word in arguments]
    opened = opened_experiments(tmp_path / "home", *words)
    if "--help" in words:  # its import opens it again if its bytecode is not cached
        opened["vae"] = min(opened["vae"], 1)
    assert opened == Counter(set(Atlas().experiments))


@pytest.fixture
def runs_of_vae(tmp_path: Path) -> Path:
    """A folder with the settings of a run, which is sufficient for the flags."""
    return RunFolder.create(tmp_path, "vae", {"experiment": "vae", "settings": {}}, stamp=False).path
