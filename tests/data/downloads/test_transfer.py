import hashlib
import os
import re
from pathlib import Path

import pytest

from parnassus.data import DataError, data_folder
from parnassus.data.downloads import transfer
from parnassus.data.downloads.sources import (
    CIFAR10,
    FASHION_MNIST,
    JSB_CHORALES,
    MNIST,
    MOBY_DICK,
    MULTI30K,
    NAMES,
    SPOKEN_DIGITS,
    TINY_SHAKESPEARE,
    RemoteFile,
)
from parnassus.data.downloads.transfer import fetch, obtain
from parnassus.notices import pass_notices

from ..conftest import Server

CONTENT = bytes(range(256)) * 4_000
CHECKSUM = f"sha256:{hashlib.sha256(CONTENT).hexdigest()}"


def source(server: Server, *paths: str, checksum: str | None = CHECKSUM) -> RemoteFile:
    return RemoteFile("things/file.bin", tuple(server.url + path for path in paths), checksum)


def remaining_files(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "things").iterdir())


@pytest.mark.network
def test_file_is_downloaded_once(server: Server, data_dir: Path) -> None:
    server.files["/file"] = CONTENT
    path = fetch(source(server, "/file"))
    assert path == data_dir / "things" / "file.bin"
    assert path.read_bytes() == CONTENT
    assert fetch(source(server, "/file")) == path
    assert len(server.requests) == 1
    assert remaining_files(data_dir) == ["file.bin"]


@pytest.mark.network
def test_interrupted_download_is_resumed(server: Server, data_dir: Path) -> None:
    server.files["/file"] = CONTENT
    server.break_after = 300_000
    with pytest.raises(DataError, match=r"the connection ended after 300,000 of 1,024,000 bytes"):
        fetch(source(server, "/file"))
    assert remaining_files(data_dir) == ["file.bin.part"]
    assert fetch(source(server, "/file")).read_bytes() == CONTENT
    assert [range_header for _, range_header in server.requests] == [None, "bytes=300000-"]
    assert remaining_files(data_dir) == ["file.bin"]


@pytest.mark.network
def test_second_mirror_resumes_the_download_of_the_first(server: Server, data_dir: Path) -> None:
    server.files |= {"/one": CONTENT, "/two": CONTENT}
    server.break_after = 1_000
    assert fetch(source(server, "/one", "/two")).read_bytes() == CONTENT
    assert server.requests == [("/one", None), ("/two", "bytes=1000-")]


@pytest.mark.network
def test_server_without_ranges_restarts_the_download(server: Server, data_dir: Path) -> None:
    server.files["/file"] = CONTENT
    server.ranges = False
    server.break_after = 5_000
    with pytest.raises(DataError):
        fetch(source(server, "/file"))
    assert fetch(source(server, "/file")).read_bytes() == CONTENT
    assert [range_header for _, range_header in server.requests] == [None, "bytes=5000-"]


@pytest.mark.network
@pytest.mark.parametrize("partial", [b"x" * 1_000, b"x" * len(CONTENT), b"x" * (len(CONTENT) + 5)])
def test_damaged_partial_file_is_downloaded_again(server: Server, data_dir: Path, partial: bytes) -> None:
    """Detected by the checksum, or because the server has no bytes left: the download restarts."""
    server.files["/file"] = CONTENT
    (data_dir / "things").mkdir(parents=True)
    (data_dir / "things" / "file.bin.part").write_bytes(partial)
    assert fetch(source(server, "/file")).read_bytes() == CONTENT
    assert remaining_files(data_dir) == ["file.bin"]


@pytest.mark.network
@pytest.mark.parametrize(("lengths", "message"), [(True, "it has 1,024,000 bytes, more"), (False, "it has more than")])
def test_too_large_download_raises_data_error(
    server: Server, data_dir: Path, monkeypatch: pytest.MonkeyPatch, lengths: bool, message: str
) -> None:
    """The size is limited whether or not the server states it."""
    server.files["/file"], server.lengths = CONTENT, lengths
    monkeypatch.setattr(transfer, "MAX_BYTES", len(CONTENT) - 1)
    with pytest.raises(DataError, match=message):
        fetch(source(server, "/file"))
    assert remaining_files(data_dir) == []
    monkeypatch.setattr(transfer, "MAX_BYTES", len(CONTENT))
    assert fetch(source(server, "/file")).read_bytes() == CONTENT


@pytest.mark.network
def test_file_in_place_with_another_checksum_is_announced(server: Server, data_dir: Path) -> None:
    server.files["/file"] = CONTENT
    path = fetch(source(server, "/file"))
    path.write_bytes(CONTENT[:-1] + b"?")
    for find in (fetch, obtain):
        lines: list[str] = []
        with pass_notices(lines.append):
            assert find(source(server, "/file")) == path
        (line,) = lines
        assert re.search(
            r"file\.bin is not the public file: its checksum is .* instead of .*; delete it to download", line
        )
    path.unlink()
    lines = []
    with pass_notices(lines.append):
        assert obtain(source(server, "/file")).read_bytes() == CONTENT
    assert lines == []


@pytest.mark.network
def test_missing_file_is_downloaded_from_the_next_mirror(server: Server, data_dir: Path) -> None:
    server.files["/present"] = CONTENT
    assert fetch(source(server, "/missing", "/present")).read_bytes() == CONTENT


@pytest.mark.network
def test_next_mirror_is_used_after_a_checksum_mismatch(server: Server, data_dir: Path) -> None:
    server.files |= {"/bad": b"something else", "/good": CONTENT}
    assert fetch(source(server, "/bad", "/good")).read_bytes() == CONTENT


@pytest.mark.network
@pytest.mark.parametrize("algorithm", ["sha256", "md5"])
def test_checksum_mismatch_raises_data_error(server: Server, data_dir: Path, algorithm: str) -> None:
    server.files["/file"] = b"something else"
    expected, got = (
        f"{algorithm}:{hashlib.new(algorithm, content).hexdigest()}" for content in (CONTENT, b"something else")
    )
    with pytest.raises(DataError) as error:
        fetch(source(server, "/file", checksum=expected))
    message = str(error.value)
    for part in ("file.bin", expected, got, f"place it at {data_dir / 'things' / 'file.bin'} manually"):
        assert part in message
    assert "\n" not in message
    assert remaining_files(data_dir) == []


@pytest.mark.network
def test_structure_is_verified_without_a_checksum(server: Server, data_dir: Path) -> None:
    def verify(path: Path) -> None:
        if path.read_bytes() != b"right":
            raise DataError("it is not right")

    server.files |= {"/bad": b"wrong", "/good": b"right"}
    with pytest.raises(DataError, match=r"file\.bin could not be downloaded \(127\.0\.0\.1:\d+: it is not right\)"):
        fetch(source(server, "/bad", checksum=None), verify=verify)
    assert remaining_files(data_dir) == []
    assert fetch(source(server, "/bad", "/good", checksum=None), verify=verify).read_bytes() == b"right"


@pytest.mark.network
def test_downloads_without_a_checksum_are_not_resumed(server: Server, data_dir: Path) -> None:
    server.files["/file"] = CONTENT
    server.break_after = 1_000
    with pytest.raises(DataError):
        fetch(source(server, "/file", checksum=None))
    assert fetch(source(server, "/file", checksum=None)).read_bytes() == CONTENT
    assert [range_header for _, range_header in server.requests] == [None, None]


@pytest.mark.network
def test_unreachable_server_raises_data_error(data_dir: Path) -> None:
    with pytest.raises(DataError, match=r"could not be downloaded \(127\.0\.0\.1:9: .*refused"):
        fetch(RemoteFile("file.bin", ("http://127.0.0.1:9/file",), None))


def test_only_http_addresses_are_accepted(data_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    with pytest.raises(DataError, match="unknown url type: file"):
        fetch(RemoteFile("file.bin", ((tmp_path / "secret").as_uri(),), None))


@pytest.mark.network
@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="needs a read-only folder")
def test_read_only_folder_raises_data_error(server: Server, data_dir: Path) -> None:
    server.files["/file"] = CONTENT
    data_dir.mkdir()
    data_dir.chmod(0o500)
    with pytest.raises(DataError, match="Permission denied"):
        fetch(source(server, "/file"))


def test_environment_variable_sets_the_data_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARNASSUS_DATA", str(tmp_path))
    assert data_folder() == tmp_path
    monkeypatch.setenv("PARNASSUS_DATA", "~/somewhere")
    assert data_folder() == Path.home() / "somewhere"
    monkeypatch.delenv("PARNASSUS_DATA")
    assert data_folder().name == "parnassus"


def test_every_source_has_an_address_and_a_well_formed_checksum() -> None:
    single = [CIFAR10, TINY_SHAKESPEARE, NAMES, MOBY_DICK, JSB_CHORALES, SPOKEN_DIGITS]
    several = [*MNIST.values(), *FASHION_MNIST.values(), *MULTI30K.values()]
    for each in single + several:
        assert each.mirrors
        assert all(address.startswith(("https://", "http://")) for address in each.mirrors)
        assert each.checksum is None or len(each.checksum.removeprefix("sha256:")) == 64
    without_checksum = {each.name for each in single + several if each.checksum is None}
    assert without_checksum == {
        "moby_dick.txt",
        "Jsb16thSeparated.json",
        "recordings.tar.gz",
        "train.fr.gz",
        "val.fr.gz",
        "test_2016_flickr.fr.gz",
    }
