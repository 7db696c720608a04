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

MOST_BYTES = 1 << 32
BROKEN = (tarfile.TarError, gzip.BadGzipFile, zlib.error, lzma.LZMAError, EOFError)


def unpack_tar(archive: Path, folder: Path, *, most_bytes: int = MOST_BYTES) -> None:
    """Put the archive's files below `folder`: all of them, or none.

    Links, devices, absolute paths, paths that lead out of the folder and more than `most_bytes` in all are refused.
    The files are unpacked beside their place first and moved when all is well.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".unpack-") as name:
        staging = Path(name)
        with opened_tar(archive) as tar:
            for member, place in _safe_members(tar, archive, most_bytes):
                _write(tar, member, staging / place)
        for item in sorted(staging.iterdir()):
            if (folder / item.name).exists():
                raise DataError(f"{folder / item.name} exists already: move it to unpack {archive}.")
        for item in sorted(staging.iterdir()):
            item.rename(folder / item.name)


@contextmanager
def opened_tar(archive: Path) -> Iterator[tarfile.TarFile]:
    """The archive, open for reading; errors inside the `with` become a DataError."""
    try:
        with tarfile.open(archive) as tar:
            yield tar
    except BROKEN as error:
        raise DataError(f"{archive} is not a complete tar archive ({error}): delete it and get it again.") from error
    except OSError as error:
        raise DataError(f"{archive} cannot be unpacked: {error.strerror or error}.") from error


def _safe_members(tar: tarfile.TarFile, archive: Path, most_bytes: int) -> Iterator[tuple[tarfile.TarInfo, Path]]:
    total = 0
    for member in tar:
        path = PurePosixPath(member.name)
        windows = PureWindowsPath(member.name)  # "C:\x" and "a\..\..\x" are harmless here and not everywhere
        if not (member.isfile() or member.isdir()):
            raise DataError(f"{archive} holds {member.name!r}, which is neither a file nor a folder: not unpacked.")
        if path.is_absolute() or windows.drive or windows.root or ".." in path.parts or ".." in windows.parts:
            raise DataError(f"{archive} holds {member.name!r}, which points outside its folder: not unpacked.")
        total += member.size
        if total > most_bytes:
            raise DataError(f"{archive} unpacks to more than {most_bytes:,} bytes: not unpacked.")
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
