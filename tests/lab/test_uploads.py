"""Uploads: known by their content, kept under names of ours, refused in a sentence."""

import io
import pickle
from pathlib import Path

import numpy as np
import pytest

from parnassus.data import DataError, open_data
from parnassus.lab import uploads as module
from parnassus.lab.library import Library
from parnassus.lab.uploads import Uploads
from parnassus.runs import RunError

TABLE = b"a,b,class\n" + b"".join(b"%d,%d,%d\n" % (i, i * i % 7, i % 2) for i in range(40))


def array(**arrays: "np.ndarray[tuple[int, ...], np.dtype[np.float64]]") -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)  # type: ignore[arg-type]
    return file.getvalue()


@pytest.fixture
def uploads(tmp_path: Path) -> Uploads:
    return Uploads(tmp_path / "runs" / ".uploads")


def test_a_file_is_found_again_by_its_name_in_the_list(uploads: Uploads) -> None:
    name = uploads.add("points.csv", TABLE)
    assert uploads.names == [name]
    assert name.startswith("yours: points.csv (")
    path = uploads.path(name)
    assert path is not None
    assert path.read_bytes() == TABLE
    assert open_data(path).train.x.shape[1] == 2
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_the_same_content_is_one_file_and_other_content_another(uploads: Uploads) -> None:
    first, again, renamed = uploads.add("a.csv", TABLE), uploads.add("a.csv", TABLE), uploads.add("b.csv", TABLE)
    other = uploads.add("a.csv", TABLE + b"1,1,1\n")
    assert first == again
    assert len({first, renamed, other}) == len(uploads.names) == 3
    assert uploads.path(first) == uploads.path(renamed) != uploads.path(other)


@pytest.mark.parametrize("ending", ["csv", "tsv", "CSV"])
def test_tables_must_be_text(uploads: Uploads, ending: str) -> None:
    uploads.add(f"ok.{ending}", "größe,π\n1,2\n".encode())
    for content in (b"\xff\xfe1,2", b"1,2\0", b"MZ\x90\0"):
        with pytest.raises(RunError, match=r"this is no \.(csv|tsv) file: its content is of another kind"):
            uploads.add(f"bad.{ending}", content)


def test_arrays_must_begin_as_arrays_do(uploads: Uploads) -> None:
    file = io.BytesIO()
    np.save(file, np.arange(6.0))
    assert uploads.path(uploads.add("x.npy", file.getvalue())) is not None
    assert uploads.path(uploads.add("x.npz", array(x=np.ones(3)))) is not None
    for name, content in (("x.npy", array(x=np.ones(3))), ("x.npz", file.getvalue()), ("x.npy", b""), ("x.npz", TABLE)):
        with pytest.raises(RunError, match=r"this is no \.np[yz] file"):
            uploads.add(name, content)


@pytest.mark.parametrize(
    "name", ["x.exe", "x.py", "x.pkl", "x.csv.exe", "csv", ".csv", "", "x", "x.csv\0.exe", "x.csv.", "x.svg"]
)
def test_other_kinds_are_not_taken(uploads: Uploads, name: str) -> None:
    with pytest.raises(RunError, match=r"data must be a file that ends in \.csv, \.tsv, \.npy, \.npz"):
        uploads.add(name, TABLE)
    assert uploads.names == []


def test_a_file_may_be_as_large_as_the_limit_and_no_larger(uploads: Uploads, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LARGEST", 3 * 2**20)
    uploads.add("x.csv", b"1" * 3 * 2**20)
    with pytest.raises(RunError, match="at most 3 MiB; this has 4"):
        uploads.add("x.csv", b"1" * 4 * 2**20)


HOSTILE = [
    "../../x.csv",
    "/etc/cron.d/x.csv",
    "..\\..\\x.csv",
    "C:\\x.csv",
    "a/b/c.csv",
    "~/x.csv",
    "-rf.csv",
    "....csv",
]
HOSTILE += ["<script>alert(1)</script>.csv", "a\nb.csv", "a\0b.csv", "$(touch x).csv", "x" * 5000 + ".csv", "🦌.csv"]


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_from_outside_reaches_the_disk(tmp_path: Path, uploads: Uploads, name: str) -> None:
    shown = uploads.add(name, TABLE)
    written = [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()]
    assert written == [f"runs/.uploads/{(uploads.path(shown) or Path()).name}"]
    assert Path(written[0]).stem.isalnum()
    assert len(Path(written[0]).name) == 12 + 4
    assert len(shown) <= 60
    assert not set(shown) & set("/\\<>$\n\0")


@pytest.mark.parametrize("name", ["digits", "", "yours: x.csv (0000)", "../x.csv", "/etc/passwd", ".uploads"])
def test_only_names_in_the_list_stand_for_files(uploads: Uploads, name: str) -> None:
    uploads.add("x.csv", TABLE)
    assert uploads.path(name) is None


def test_an_array_of_objects_is_never_unpacked(tmp_path: Path, uploads: Uploads) -> None:
    """A pickle inside a .npy file could run a program; it is refused when the data is opened."""

    class Trap:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return Path.touch, (tmp_path / "sprung",)  # type: ignore[return-value]

    file = io.BytesIO()
    np.save(file, np.array([Trap()], dtype=object), allow_pickle=True)
    assert b"sprung" in file.getvalue()
    pickle.loads(pickle.dumps(Trap()))  # it works where it is let
    (tmp_path / "sprung").unlink()
    path = uploads.path(uploads.add("x.npy", file.getvalue()))
    assert path is not None
    with pytest.raises(DataError):
        open_data(path)
    assert not (tmp_path / "sprung").exists()


def test_uploads_lie_beside_the_runs_and_are_none(tmp_path: Path) -> None:
    library = Library(tmp_path)
    library.uploads.add("x.csv", TABLE)
    assert (tmp_path / ".uploads").is_dir()
    assert library.runs() == []
    assert library.run(".uploads") is None
