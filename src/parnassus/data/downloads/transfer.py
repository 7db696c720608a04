"""Verified downloads: mirrors are tried in order, partial files resumed, checksums verified, files renamed at the end.

pooch manages the folder and the checksums; `Transfer` adds to it the resumption of partial downloads.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from secrets import token_hex
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import (
    HTTPDefaultErrorHandler,
    HTTPErrorProcessor,
    HTTPHandler,
    HTTPRedirectHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    UnknownHandler,
)

from parnassus.data.downloads.folder import data_folder, find_file
from parnassus.data.downloads.sources import RemoteFile
from parnassus.data.errors import DataError
from parnassus.notices import notify

CHUNK = 1 << 18
TIMEOUT = 30.0  # seconds without a byte
MAX_BYTES = 1 << 30
"""Maximum size of a download, about six times the largest."""
RANGE_NOT_SATISFIABLE = 416

Verify = Callable[[Path], object]


def obtain(source: RemoteFile, *, folders: Sequence[str] = (), verify: Verify | None = None) -> Path:
    """The file in the data directory, plain or gzipped, at its place or in one of `folders`, or its download.

    A file with the name of the download but another checksum is used with a notice: archives are often packed again,
    and the reader verifies the content.
    """
    plain = source.place.removesuffix(".gz")
    found = find_file(*(f"{folder}/{plain.rsplit('/', maxsplit=1)[-1]}" for folder in folders), plain)
    if found is None:
        return fetch(source, verify=verify)
    compare_checksum(found, source)
    return found


def compare_checksum(path: Path, source: RemoteFile) -> None:
    """Notify the user if the file has the name of the download, but another checksum."""
    if source.checksum is None or path.name != source.name:
        return
    from pooch import file_hash

    algorithm = source.checksum.split(":")[0]
    found = f"{algorithm}:{file_hash(str(path), alg=algorithm)}"
    if found != source.checksum:
        notify(
            f"{path} is not the public file: its checksum is {found} instead of {source.checksum}; delete it to "
            "download the public file"
        )


def fetch(source: RemoteFile, *, verify: Verify | None = None) -> Path:
    """The file's path in the data directory; a missing file is downloaded from the first mirror that has it.

    `verify` raises DataError if the structure of the file is wrong; it is used for files without a checksum.
    """
    target = data_folder() / source.place
    if target.is_file():
        compare_checksum(target, source)
        return target
    failures = []
    for url in source.mirrors:
        try:
            return _fetch_from(url, source, target, verify)
        except DataError as error:
            failures.append(f"{urlsplit(url).netloc}: {str(error).rstrip('.')}")
        except (OSError, HTTPException) as error:
            failures.append(f"{urlsplit(url).netloc}: {_reason(error)}")
    raise DataError(f"{source.name} could not be downloaded ({'; '.join(failures)}): place it at {target} manually.")


def _reason(error: Exception) -> str:
    """The message of the underlying error, which urllib wraps."""
    inner = getattr(error, "reason", error) if not isinstance(error, HTTPError) else error
    return getattr(inner, "strerror", None) or str(inner) or type(inner).__name__


def _fetch_from(url: str, source: RemoteFile, target: Path, verify: Verify | None) -> Path:
    import pooch

    transfer = ResumableDownload(target, source.checksum, verify=verify)
    cache = pooch.create(
        path=target.parent, base_url="", registry={target.name: source.checksum}, urls={target.name: url}
    )
    try:
        cache.fetch(target.name, downloader=transfer)
    except ValueError as error:  # raised by pooch for a wrong checksum; the file is deleted
        if transfer.resumed:  # the earlier part may be damaged
            return _fetch_from(url, source, target, verify)
        raise DataError(f"checksum of {source.name}: expected {source.checksum}, got {transfer.checksum}") from error
    return target


class ResumableDownload:
    """A pooch downloader that keeps an incomplete file as NAME.part and resumes it at the next attempt.

    While a transfer runs, its part has a unique name, so that concurrent processes do not write to the same file.
    """

    def __init__(self, target: Path, expected: str | None, *, verify: Verify | None = None) -> None:
        self.part = target.with_name(f"{target.name}.part")
        self.temporary = target.with_name(f"{target.name}.part-{token_hex(4)}")
        self.expected = expected
        self.verify = verify
        self.resumed = False
        self.checksum = ""

    def __call__(self, url: str, output_file: str, _pooch: object) -> None:
        from pooch import file_hash

        with suppress(FileNotFoundError):
            self.part.replace(self.temporary)
        if self.expected is None:  # without a checksum, a mismatch of the two parts is not detected
            self.temporary.unlink(missing_ok=True)
        try:
            self._receive(url)
            if self.expected is not None:
                algorithm = self.expected.split(":")[0]
                self.checksum = f"{algorithm}:{file_hash(str(self.temporary), alg=algorithm)}"
            if self.verify is not None:
                self.verify(self.temporary)
            self.temporary.replace(output_file)
        except DataError:  # too large, or of another structure: nothing to resume
            self.temporary.unlink(missing_ok=True)
            raise
        finally:
            if self.temporary.exists():
                self.temporary.replace(self.part)

    def _receive(self, url: str) -> None:
        received = self.temporary.stat().st_size if self.temporary.exists() else 0
        try:
            with _open(url, start=received) as response:
                self.resumed = received > 0 and response.headers.get("Content-Range", "").startswith(
                    f"bytes {received}-"
                )
                self._write(response, received if self.resumed else 0)
        except HTTPError as error:
            error.close()
            if error.code != RANGE_NOT_SATISFIABLE or not received:
                raise
            self.temporary.unlink()
            self._receive(url)

    def _write(self, response: HTTPResponse, received: int) -> None:
        length = response.headers.get("Content-Length", "")
        total = received + int(length) if length.isdecimal() else None
        if total is not None and total > MAX_BYTES:
            raise DataError(f"it has {total:,} bytes, more than {MAX_BYTES:,}")
        with (
            self.temporary.open("ab" if received else "wb") as file,
            _progress(self.part.stem, total, received) as advance,
        ):
            while chunk := response.read(CHUNK):
                file.write(chunk)
                advance(len(chunk))
                if file.tell() > MAX_BYTES:  # of a server that does not state the length
                    raise DataError(f"it has more than {MAX_BYTES:,} bytes")
            size = file.tell()
        if total is not None and size < total:
            raise ConnectionError(f"the connection ended after {size:,} of {total:,} bytes")


def _open(url: str, *, start: int) -> HTTPResponse:
    """The response to a GET request from byte `start` on; only http and https are accepted."""
    opener = OpenerDirector()
    handlers = (ProxyHandler, HTTPHandler, HTTPSHandler, HTTPRedirectHandler)
    for handler in (*handlers, HTTPDefaultErrorHandler, HTTPErrorProcessor, UnknownHandler):
        opener.add_handler(handler())
    opener.addheaders = [("User-Agent", "parnassus"), ("Accept-Encoding", "identity")]
    if start:
        opener.addheaders.append(("Range", f"bytes={start}-"))
    response = opener.open(url, timeout=TIMEOUT)
    if not isinstance(response, HTTPResponse):
        raise DataError(f"{url} is not an http or https address")
    return response


@contextmanager
def _progress(name: str, total: int | None, received: int) -> Iterator[Callable[[int], None]]:
    """A progress bar on standard error if that is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(name, total=total, completed=received)
        yield lambda count: progress.advance(task, count)
