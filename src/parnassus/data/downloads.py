"""Verified downloads: mirrors in turn, partial files continued, checksums compared, the whole file renamed into place.

pooch keeps the folder and the checksums; what it lacks, continuing a partial file, is the downloader here.
"""

from collections.abc import Callable, Iterator
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

from parnassus.data.errors import DataError
from parnassus.data.folder import data_folder
from parnassus.data.sources import Source

CHUNK = 1 << 18
TIMEOUT = 30.0  # seconds without a byte
RANGE_NOT_SATISFIABLE = 416

Verify = Callable[[Path], object]


def fetch(source: Source, *, verify: Verify | None = None) -> Path:
    """The file's path in the data directory; a missing file is downloaded from the first mirror that has it.

    `verify` raises DataError when the structure is wrong: it stands in where there is no checksum.
    """
    target = data_folder() / source.place
    if target.is_file():
        return target
    troubles = []
    for url in source.mirrors:
        try:
            return _fetch_from(url, source, target, verify)
        except DataError as error:
            troubles.append(f"{urlsplit(url).netloc}: {str(error).rstrip('.')}")
        except (OSError, HTTPException) as error:
            troubles.append(f"{urlsplit(url).netloc}: {_reason(error)}")
    raise DataError(f"{source.name} could not be downloaded ({'; '.join(troubles)}): place it at {target} manually.")


def _reason(error: Exception) -> str:
    """The cause of an error, without urllib's wrapping."""
    inner = getattr(error, "reason", error) if not isinstance(error, HTTPError) else error
    return getattr(inner, "strerror", None) or str(inner) or type(inner).__name__


def _fetch_from(url: str, source: Source, target: Path, verify: Verify | None) -> Path:
    import pooch

    transfer = Transfer(target, source.checksum, verify=verify)
    cache = pooch.create(
        path=target.parent, base_url="", registry={target.name: source.checksum}, urls={target.name: url}
    )
    try:
        cache.fetch(target.name, downloader=transfer)
    except ValueError as error:  # raised by pooch for a wrong checksum; the file is deleted
        if transfer.resumed:  # the older half may be the damaged one
            return _fetch_from(url, source, target, verify)
        raise DataError(f"checksum of {source.name}: expected {source.checksum}, got {transfer.checksum}") from error
    return target


class Transfer:
    """A pooch downloader: what arrives is kept in NAME.part, and the next attempt asks for the rest only.

    While it runs the part has a name of its own, so processes that start together do not write into one another's file.
    """

    def __init__(self, target: Path, expected: str | None, *, verify: Verify | None = None) -> None:
        self.part = target.with_name(f"{target.name}.part")
        self.mine = target.with_name(f"{target.name}.part-{token_hex(4)}")
        self.expected = expected
        self.verify = verify
        self.resumed = False
        self.checksum = ""

    def __call__(self, url: str, output_file: str, _pooch: object) -> None:
        from pooch import file_hash

        with suppress(FileNotFoundError):
            self.part.replace(self.mine)
        if self.expected is None:  # without a checksum, halves that do not fit would go unnoticed
            self.mine.unlink(missing_ok=True)
        try:
            self._receive(url)
            if self.expected is not None:
                algorithm = self.expected.split(":")[0]
                self.checksum = f"{algorithm}:{file_hash(str(self.mine), alg=algorithm)}"
            if self.verify is not None:
                self._check(self.verify)
            self.mine.replace(output_file)
        finally:
            if self.mine.exists():
                self.mine.replace(self.part)

    def _check(self, verify: Verify) -> None:
        try:
            verify(self.mine)
        except DataError:
            self.mine.unlink()
            raise

    def _receive(self, url: str) -> None:
        have = self.mine.stat().st_size if self.mine.exists() else 0
        try:
            with _open(url, start=have) as response:
                self.resumed = have > 0 and response.headers.get("Content-Range", "").startswith(f"bytes {have}-")
                self._write(response, have if self.resumed else 0)
        except HTTPError as error:
            error.close()
            if error.code != RANGE_NOT_SATISFIABLE or not have:
                raise
            self.mine.unlink()
            self._receive(url)

    def _write(self, response: HTTPResponse, have: int) -> None:
        length = response.headers.get("Content-Length")
        total = None if length is None else have + int(length)
        with self.mine.open("ab" if have else "wb") as file, _progress(self.part.stem, total, have) as advance:
            while chunk := response.read(CHUNK):
                file.write(chunk)
                advance(len(chunk))
            size = file.tell()
        if total is not None and size < total:
            raise ConnectionError(f"the connection ended after {size:,} of {total:,} bytes")


def _open(url: str, *, start: int) -> HTTPResponse:
    """The response to a GET from byte `start` on. Only http and https are accepted."""
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
def _progress(name: str, total: int | None, have: int) -> Iterator[Callable[[int], None]]:
    """A progress bar on standard error in a terminal, nothing otherwise."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(name, total=total, completed=have)
        yield lambda count: progress.advance(task, count)
