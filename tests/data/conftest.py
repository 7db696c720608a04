"""Fixtures for data: an empty data directory, the data directory of this machine, and a local web server."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

REAL_DATA = os.environ.get("PARNASSUS_DATA")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "network: opens local sockets")


@pytest.fixture
def data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data directory."""
    folder = tmp_path / "data"
    monkeypatch.setenv("PARNASSUS_DATA", str(folder))
    return folder


@pytest.fixture
def real_data(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The data directory of this machine; tests of data sets that it does not contain are skipped."""
    if not REAL_DATA:
        pytest.skip("PARNASSUS_DATA is not set")
    monkeypatch.setenv("PARNASSUS_DATA", REAL_DATA)
    return Path(REAL_DATA)


@dataclass
class Server:
    """Files and faults of a small web server, and the requests that it received."""

    url: str
    files: dict[str, bytes] = field(default_factory=dict)
    lengths: bool = True  # whether it states the length of a file
    ranges: bool = True  # whether it supports Range
    break_after: int | None = None  # bytes after which the next response ends
    requests: list[tuple[str, str | None]] = field(default_factory=list)  # path and Range of each request


@pytest.fixture
def server() -> Iterator[Server]:
    state = Server("")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.requests.append((self.path, self.headers["Range"]))
            content = state.files.get(self.path)
            if content is None:
                return self.send_error(404)
            match = re.fullmatch(r"bytes=(\d+)-", self.headers["Range"] or "") if state.ranges else None
            start = int(match[1]) if match else 0
            if match and start >= len(content):
                return self.send_error(416)
            self.send_response(206 if match else 200)
            if state.lengths:
                self.send_header("Content-Length", str(len(content) - start))
            if match:
                self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
            self.end_headers()
            stop, state.break_after = state.break_after, None
            self.wfile.write(content[start:][:stop])
            return None

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        state.url = f"http://127.0.0.1:{httpd.server_address[1]}"
        thread = Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield state
        httpd.shutdown()
        thread.join()
