"""The index on disk: every file is read once for each version of it, and whatever is wrong on disk does no harm."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from parnassus.atlas import store
from parnassus.atlas.index import INDEXED, Atlas


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "cache_folder", lambda: tmp_path / "cache")


class Reader:
    """Parses files into their lines, and counts how often each was read."""

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


def touch(path: Path, text: str, moment: int) -> None:
    path.write_text(text)
    os.utime(path, ns=(moment, moment))


def test_each_file_is_read_once_and_again_when_it_changed(reader: Reader, tmp_path: Path) -> None:
    assert reader.load() == reader.load() == ["1", "2", "3"]
    assert reader.read == {"a.txt": 1, "b.txt": 1}
    touch(tmp_path / "b.txt", "4\n", 10**18)
    assert reader.load() == ["1", "2", "4"]
    assert reader.read == {"a.txt": 1, "b.txt": 2}


def test_an_item_is_read_again_when_another_of_its_sources_changed(reader: Reader, tmp_path: Path) -> None:
    base = tmp_path / "base.py"

    def load() -> list[str]:
        return store.load("lines", reader.files, reader.parse, lambda item: [base] if item == "3" else [])

    touch(base, "one", 10**18)
    assert load() == load() == ["1", "2", "3"]
    assert reader.read == {"a.txt": 1, "b.txt": 1}
    touch(base, "two", 2 * 10**18)
    load()
    assert reader.read == {"a.txt": 1, "b.txt": 2}
    base.unlink()
    load()
    assert reader.read == {"a.txt": 1, "b.txt": 3}


def test_files_come_and_go(reader: Reader, tmp_path: Path) -> None:
    reader.load()
    (tmp_path / "a.txt").unlink()
    (tmp_path / "c.txt").write_text("5\n")
    assert reader.load() == ["3", "5"]
    assert reader.read == {"a.txt": 1, "b.txt": 1, "c.txt": 1}


@pytest.mark.parametrize("damage", ["", "{", "[]", "null", '{"version": 0, "files": {}}', '{"files": []}'])
def test_a_damaged_index_is_made_anew(reader: Reader, tmp_path: Path, damage: str) -> None:
    reader.load()
    (tmp_path / "cache" / "lines.json").write_text(damage)
    assert reader.load() == ["1", "2", "3"]
    assert reader.read == {"a.txt": 2, "b.txt": 2}
    assert json.loads((tmp_path / "cache" / "lines.json").read_text())["files"]


def test_a_cache_that_cannot_be_written_costs_nothing_but_time(reader: Reader, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    assert reader.load() == reader.load() == ["1", "2", "3"]


def test_the_index_of_a_wheel_is_used_as_it_is(reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "SHIPPED", tmp_path / "shipped")
    store.write_index(tmp_path / "shipped", [("lines", reader.files, reader.parse)])
    (tmp_path / "a.txt").unlink()
    reader.read.clear()
    assert reader.load() == ["1", "2", "3"]
    assert reader.read == {}
    assert not (tmp_path / "cache").exists()


def test_the_atlas_is_the_same_from_the_cache_and_from_a_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, cached = Atlas(), Atlas()
    monkeypatch.setattr(store, "SHIPPED", tmp_path / "shipped")
    store.write_index(tmp_path / "shipped", INDEXED)
    shipped = Atlas()
    for name in ("rows", "marks", "experiments", "probes", "commands", "subjects"):
        assert getattr(first, name)
        assert getattr(first, name) == getattr(cached, name) == getattr(shipped, name)


def test_listing_reads_no_source_file_twice(tmp_path: Path) -> None:
    """The second `parnassus list` opens none of the experiments."""
    program = (
        "import sys; from parnassus.cli.main import dispatch; opened = []; "
        "sys.addaudithook(lambda event, data: opened.append(str(data[0])) if event == 'open' else None); "
        "dispatch(['list']); "
        "print(sum('/experiments/' in each and each.endswith('.py') for each in opened), file=sys.stderr)"
    )
    counts = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "home")},
        )
        counts.append(int(done.stderr))
    assert counts == [len(Atlas().experiments), 0]
