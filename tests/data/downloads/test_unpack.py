import io
import tarfile
from pathlib import Path

import pytest

from parnassus.data import DataError
from parnassus.data.downloads import unpack
from parnassus.data.downloads.unpack import unpack_tar


def write_archive(path: Path, *members: tarfile.TarInfo | str) -> Path:
    """A tar archive whose plain files, given by name, contain their names."""
    with tarfile.open(path, "w:gz") as tar:
        for member in members:
            content = member.encode() if isinstance(member, str) else b""
            info = tarfile.TarInfo(member) if isinstance(member, str) else member
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return path


def special_member(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def test_files_and_folders_are_unpacked(tmp_path: Path) -> None:
    path = write_archive(tmp_path / "a.tar.gz", special_member("inner", tarfile.DIRTYPE), "inner/one.txt", "two.txt")
    unpack_tar(path, tmp_path / "out")
    assert (tmp_path / "out" / "inner" / "one.txt").read_text() == "inner/one.txt"
    assert sorted(item.name for item in (tmp_path / "out").iterdir()) == ["inner", "two.txt"]


@pytest.mark.parametrize("attack", ["../evil", "inner/../../evil", "ABSOLUTE", "C:\\evil", "..\\evil"])
def test_paths_outside_the_folder_are_rejected_and_leave_no_files(tmp_path: Path, attack: str) -> None:
    assert_rejected(
        tmp_path, attack.replace("ABSOLUTE", str(tmp_path / "evil")), "points outside its folder: not unpacked"
    )


@pytest.mark.parametrize(
    ("kind", "target"),
    [
        (tarfile.SYMTYPE, "/etc/passwd"),
        (tarfile.SYMTYPE, "good"),
        (tarfile.LNKTYPE, "/etc/passwd"),
        (tarfile.FIFOTYPE, ""),
        (tarfile.CHRTYPE, ""),
        (tarfile.BLKTYPE, ""),
    ],
)
def test_links_and_devices_are_rejected_and_leave_no_files(tmp_path: Path, kind: bytes, target: str) -> None:
    assert_rejected(tmp_path, special_member("thing", kind, target), "neither a file nor a folder: not unpacked")


def assert_rejected(tmp_path: Path, attack: tarfile.TarInfo | str, message: str) -> None:
    path = write_archive(tmp_path / "a.tar.gz", "good", attack)
    with pytest.raises(DataError, match=message):
        unpack_tar(path, tmp_path / "deep" / "out")
    assert sorted(item.name for item in tmp_path.rglob("*")) == ["a.tar.gz", "deep", "out"]


def test_too_large_archive_raises_data_error(tmp_path: Path) -> None:
    path = write_archive(tmp_path / "a.tar.gz", "1234567", "7654321")
    with pytest.raises(DataError, match="more than 10 bytes"):
        unpack_tar(path, tmp_path / "out", max_bytes=10)


@pytest.mark.parametrize("levels", [51, 1_500])
def test_deeply_nested_paths_are_rejected(tmp_path: Path, levels: int) -> None:
    assert_rejected(tmp_path, "/".join(["x"] * levels), "a path of more than 50 levels: not unpacked")


def test_too_large_files_are_not_read_into_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpack, "MAX_MEMBER_BYTES", 10)
    path = write_archive(tmp_path / "a.tar.gz", "x" * 10, "y" * 11)
    with unpack.open_tar(path) as tar:
        first, second = tar
        assert unpack.read_member(tar, first, path) == b"x" * 10
        with pytest.raises(DataError, match="of 11 bytes, more than 10"):
            unpack.read_member(tar, second, path)


@pytest.mark.parametrize("keep", [0, 10, 60, 100])
def test_truncated_archive_raises_data_error(tmp_path: Path, keep: int) -> None:
    path = write_archive(tmp_path / "a.tar.gz", "x" * 90, "y" * 90)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(DataError, match=r"a\.tar\.gz is not a complete tar archive"):
        unpack_tar(path, tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def test_existing_files_are_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "out" / "inner").mkdir(parents=True)
    path = write_archive(tmp_path / "a.tar.gz", "another", "inner/one.txt")
    with pytest.raises(DataError, match="already exists"):
        unpack_tar(path, tmp_path / "out")
    assert not (tmp_path / "out" / "another").exists()
