"""Safe unpacking of archives: only plain files and folders below the target."""

import gzip
import lzma
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath, PureWindowsPath

from parnassus.data.errors import DataError

MAX_BYTES = 1 << 32
MAX_MEMBER_BYTES = 1 << 28
"""Maximum size of a file that is read from an archive into memory."""
MAX_LEVELS = 50
"""Maximum number of nested folders, with the file."""
ARCHIVE_ERRORS = (tarfile.TarError, gzip.BadGzipFile, zlib.error, lzma.LZMAError, EOFError)


def unpack_tar(archive: Path, folder: Path, *, max_bytes: int = MAX_BYTES) -> None:
    """Extract the files of an archive into `folder`; either all files are extracted or none.

    Links, devices, absolute paths, paths outside the folder and more than `max_bytes` in total are rejected. The files
    are extracted into a temporary folder first, and moved if all are valid.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".unpack-") as name:
        staging = Path(name)
        with open_tar(archive) as tar:
            for member, place in _safe_members(tar, archive, max_bytes):
                _write(tar, member, staging / place)
        for item in sorted(staging.iterdir()):
            if (folder / item.name).exists():
                raise DataError(f"{folder / item.name} already exists: move it to unpack {archive}.")
        for item in sorted(staging.iterdir()):
            item.rename(folder / item.name)


@contextmanager
def open_tar(archive: Path) -> Iterator[tarfile.TarFile]:
    """The archive, open for reading; errors inside the `with` become a DataError."""
    try:
        with tarfile.open(archive) as tar:
            yield tar
    except ARCHIVE_ERRORS as error:
        raise DataError(
            f"{archive} is not a complete tar archive ({error}): delete it and download it again."
        ) from error
    except OSError as error:
        raise DataError(f"{archive} cannot be unpacked: {error.strerror or error}.") from error


def read_member(tar: tarfile.TarFile, member: tarfile.TarInfo, archive: Path) -> bytes:
    """The content of a plain file in an archive, whose size must be plausible for an image or a recording."""
    if member.size > MAX_MEMBER_BYTES:
        raise DataError(f"{archive} contains {member.name!r} of {member.size:,} bytes, more than {MAX_MEMBER_BYTES:,}.")
    file = tar.extractfile(member)
    assert file is not None
    with file:
        return file.read()


def _safe_members(tar: tarfile.TarFile, archive: Path, max_bytes: int) -> Iterator[tuple[tarfile.TarInfo, Path]]:
    total = 0
    for member in tar:
        path = PurePosixPath(member.name)
        windows = PureWindowsPath(member.name)  # "C:\x" and "a\..\..\x" are harmful on Windows
        if not (member.isfile() or member.isdir()):
            raise DataError(f"{archive} contains {member.name!r}, which is neither a file nor a folder: not unpacked.")
        if path.is_absolute() or windows.drive or windows.root or ".." in path.parts or ".." in windows.parts:
            raise DataError(f"{archive} contains {member.name!r}, which points outside its folder: not unpacked.")
        if len(path.parts) > MAX_LEVELS:
            raise DataError(f"{archive} contains a path of more than {MAX_LEVELS} levels: not unpacked.")
        total += member.size
        if total > max_bytes:
            raise DataError(f"{archive} unpacks to more than {max_bytes:,} bytes: not unpacked.")
        yield member, Path(*path.parts)


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, place: Path) -> None:
    if member.isdir():
        place.mkdir(parents=True, exist_ok=True)
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    source = tar.extractfile(member)
    if source is not None:
        with source, place.open("wb") as file:
            shutil.copyfileobj(source, file)
