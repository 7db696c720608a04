"""Uploads are identified by their content, stored under names of the lab, and rejected with a message."""

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


def npz_bytes(**arrays: "np.ndarray[tuple[int, ...], np.dtype[np.float64]]") -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)  # type: ignore[arg-type]
    return file.getvalue()


@pytest.fixture
def uploads(tmp_path: Path) -> Uploads:
    return Uploads(tmp_path / "runs" / ".uploads")


def test_uploads_are_found_by_their_listed_name(uploads: Uploads) -> None:
    name = uploads.add("points.csv", TABLE)
    assert uploads.names == [name]
    assert name.startswith("upload: points.csv (")
    path = uploads.path(name)
    assert path is not None
    assert path.read_bytes() == TABLE
    assert open_data(path).train.x.shape[1] == 2
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_equal_content_is_stored_once(uploads: Uploads) -> None:
    first, repeated, renamed = uploads.add("a.csv", TABLE), uploads.add("a.csv", TABLE), uploads.add("b.csv", TABLE)
    other = uploads.add("a.csv", TABLE + b"1,1,1\n")
    assert first == repeated
    assert len({first, renamed, other}) == len(uploads.names) == 3
    assert uploads.path(first) == uploads.path(renamed) != uploads.path(other)


def test_tables_must_be_text(uploads: Uploads) -> None:
    for extension in ("csv", "tsv", "CSV"):
        uploads.add(f"valid.{extension}", "größe,π\n1,2\n".encode())
        for content in (b"\xff\xfe1,2", b"1,2\0", b"MZ\x90\0"):
            with pytest.raises(RunError, match=r"data must be a \.(csv|tsv) file; its content has another format"):
                uploads.add(f"invalid.{extension}", content)


def test_arrays_must_have_the_signature_of_their_format(uploads: Uploads) -> None:
    file = io.BytesIO()
    np.save(file, np.arange(6.0))
    assert uploads.path(uploads.add("x.npy", file.getvalue())) is not None
    assert uploads.path(uploads.add("x.npz", npz_bytes(x=np.ones(3)))) is not None
    for name, content in (
        ("x.npy", npz_bytes(x=np.ones(3))),
        ("x.npz", file.getvalue()),
        ("x.npy", b""),
        ("x.npz", TABLE),
    ):
        with pytest.raises(RunError, match=r"data must be a \.np[yz] file"):
            uploads.add(name, content)


def test_other_file_types_are_refused(uploads: Uploads) -> None:
    for name in ("x.exe", "x.py", "x.pkl", "x.csv.exe", "csv", ".csv", "", "x", "x.csv\0.exe", "x.csv.", "x.svg"):
        with pytest.raises(RunError, match=r"data must be a file with the extension \.csv, \.tsv, \.npy, \.npz"):
            uploads.add(name, TABLE)
    assert uploads.names == []


def test_upload_size_is_limited(uploads: Uploads, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BYTES", 3 * 2**20)
    uploads.add("x.csv", b"1" * 3 * 2**20)
    with pytest.raises(RunError, match="at most 3 MiB; got 4"):
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


def test_upload_names_do_not_become_paths(tmp_path: Path, uploads: Uploads) -> None:
    for name in HOSTILE:
        displayed = uploads.add(name, TABLE)
        written = [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()]
        assert written == [f"runs/.uploads/{(uploads.path(displayed) or Path()).name}"], name
        assert Path(written[0]).stem.isalnum(), name
        assert len(Path(written[0]).name) == 12 + 4, name
        assert len(displayed) <= 60, name
        assert not set(displayed) & set("/\\<>$\n\0"), name


def test_only_listed_names_refer_to_files(uploads: Uploads) -> None:
    uploads.add("x.csv", TABLE)
    names = ("digits", "", "upload: x.csv (0000)", "../x.csv", "/etc/passwd", ".uploads")
    assert [name for name in names if uploads.path(name) is not None] == []


def test_object_arrays_are_not_unpickled(tmp_path: Path, uploads: Uploads) -> None:
    """A pickle in a .npy file could run code; it is rejected when the data is opened."""

    class MaliciousObject:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return Path.touch, (tmp_path / "executed",)  # type: ignore[return-value]

    file = io.BytesIO()
    np.save(file, np.array([MaliciousObject()], dtype=object), allow_pickle=True)
    assert b"executed" in file.getvalue()
    pickle.loads(pickle.dumps(MaliciousObject()))  # unpickling it does run the code
    (tmp_path / "executed").unlink()
    path = uploads.path(uploads.add("x.npy", file.getvalue()))
    assert path is not None
    with pytest.raises(DataError):
        open_data(path)
    assert not (tmp_path / "executed").exists()


def test_uploads_are_not_runs(tmp_path: Path) -> None:
    library = Library(tmp_path)
    library.uploads.add("x.csv", TABLE)
    assert (tmp_path / ".uploads").is_dir()
    assert library.runs() == []
    assert library.run(".uploads") is None
