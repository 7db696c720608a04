"""The lab as a process: addresses, access control, errors, and termination."""

import importlib.util
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from cli.conftest import Command, clean_environment
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin

from lab.conftest import Lab, StartLab, is_alive, wait_for
from lab.wire import Wire, open_page
from parnassus.cli.lab import open_lab
from parnassus.lab.guard import COOKIE
from parnassus.runs import RunError

EVIL = Origin("http://evil.example")


@pytest.fixture(scope="module")
def lab(start_lab: StartLab, lab_runs: Path) -> Lab:
    return start_lab(lab_runs)


def listeners(port: int) -> set[str]:
    """The addresses with a listening socket at this port, as /proc writes them."""
    addresses = set()
    for table in (Path("/proc/net/tcp"), Path("/proc/net/tcp6")):
        for line in table.read_text().splitlines()[1:] if table.exists() else ():
            address, port_hex = line.split()[1].split(":")
            if int(port_hex, 16) == port and line.split()[3] == "0A":
                addresses.add(address)
    return addresses


linux = pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="needs /proc/net/tcp")


@linux
@pytest.mark.network
def test_lab_listens_on_localhost_only(lab: Lab) -> None:
    assert listeners(lab.port) == {"0100007F"}  # 127.0.0.1 in reverse byte order


@pytest.mark.network
def test_access_control_is_active(lab: Lab) -> None:
    with Wire(lab.port) as wire:
        assert wire.request("/").status == 200
        assert wire.request("/", headers=(("Host", f"evil.example:{lab.port}"),)).status == 421
        assert wire.request("/", method="POST", headers=(("Origin", "http://evil.example"),)).status == 403
        assert wire.request("/", method="DELETE").status == 405
        assert wire.request("/docs").status == wire.request("/openapi.json").status == 404
        assert "connect-src 'self'" in wire.request("/runs").headers["content-security-policy"]


@pytest.mark.network
def test_cross_origin_websockets_are_rejected(lab: Lab) -> None:
    address = f"ws://127.0.0.1:{lab.port}/_nicegui_ws/socket.io/?EIO=4&transport=websocket"
    with pytest.raises(InvalidStatus) as error, connect(address, origin=EVIL, proxy=None):
        pass
    assert error.value.response.status_code == 403
    with open_page(lab.port, "/") as page:  # its own pages can
        assert page.listeners()


@pytest.mark.network
def test_chunked_body_above_the_limit_is_rejected(lab: Lab) -> None:
    with open_page(lab.port, "/experiments/classifier_on_digits") as page:
        url = next(each["props"]["url"] for each in page.elements.values() if each["tag"] == "nicegui-upload")
        head = f"POST {url} HTTP/1.1\r\nHost: {lab.host}\r\nTransfer-Encoding: chunked\r\n"
        head += "Content-Type: multipart/form-data; boundary=edge\r\n\r\n"
        part = b'--edge\r\nContent-Disposition: form-data; name="f"; filename="a.csv"\r\n\r\n'
        piece = b"100000\r\n" + bytes(2**20) + b"\r\n"
        with Wire(lab.port) as wire:
            response = wire.send(
                head.encode() + b"%x\r\n%s\r\n" % (len(part), part) + 65 * piece + b"0\r\n\r\n", "POST"
            )
    assert response.status == 413
    assert not (lab.root / ".uploads").exists()
    assert lab.errors == ""


@pytest.mark.network
def test_public_lab_requires_the_token(start_lab: StartLab, lab_runs: Path) -> None:
    lab = start_lab(lab_runs, "--host", "0.0.0.0")
    assert lab.token is not None
    assert len(lab.token) >= 32
    with httpx.Client(base_url=lab.address, trust_env=False) as client:
        assert client.get("/").status_code == 401
        assert client.get("/files/seed-0/run.json").status_code == 401
        assert client.get("/", params={"token": "wrong"}).status_code == 401
        response = client.get("/", params={"token": lab.token})
        assert response.status_code == 303
        assert response.headers["location"] == "/"
        assert client.get("/").status_code == 200  # with the cookie
        assert client.get("/files/seed-0/run.json").status_code == 200
    socket_address = f"ws://127.0.0.1:{lab.port}/_nicegui_ws/socket.io/?EIO=4&transport=websocket"
    with pytest.raises(InvalidStatus), connect(socket_address, proxy=None):
        pass
    with connect(socket_address, proxy=None, additional_headers={"Cookie": f"{COOKIE}={lab.token}"}) as connection:
        assert str(connection.recv(timeout=10)).startswith("0{")
    lab.stop()


@pytest.mark.network
@pytest.mark.parametrize("port", ["used", "70000", "-1"])
def test_unavailable_port_exits_with_one_line(parnassus: Command, port: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = str(taken.getsockname()[1]) if port == "used" else port
        completed = parnassus("lab", "--no-browser", "--port", number)
    assert completed.returncode == 2
    assert completed.stdout == ""
    assert completed.stderr.startswith(f"parnassus: the lab cannot listen on 127.0.0.1:{number}: ")
    assert completed.stderr.endswith("; try another --port\n")
    assert completed.stderr.count("\n") == 1


def test_missing_nicegui_raises_run_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("parnassus.cli.lab.find_spec", lambda name: None)
    with pytest.raises(RunError, match=r"needs NiceGUI.*pip install 'parnassus\[lab\]'"):
        open_lab(tmp_path, host=None, port=None, browser=False)
    assert importlib.util.find_spec("nicegui") is not None


PROGRAM = """
import sys
from parnassus.cli.main import main
sys.argv = ["parnassus", "lab", "--help"]
try:
    main()
finally:
    assert not {"torch", "nicegui", "fastapi", "matplotlib"} & set(sys.modules)
"""


def test_help_does_not_import_heavy_packages() -> None:
    completed = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=clean_environment(), check=True
    )
    assert "--host" in completed.stdout


@pytest.mark.network
def test_workers_terminate_with_the_lab(start_lab: StartLab, lab_runs: Path) -> None:
    lab = start_lab(lab_runs)
    with open_page(lab.port, "/claims/B4") as page:  # during an open page and running claims
        page.receive(1)
        workers = children(lab.process.pid)
        lab.stop()
    assert lab.process.returncode is not None
    wait_for(lambda: not any(map(is_alive, workers)), "the end of the workers")
    assert "Traceback" not in lab.errors


def children(pid: int) -> list[int]:
    """The child processes, where /proc exists."""
    return [int(each) for task in Path(f"/proc/{pid}/task").glob("*/children") for each in task.read_text().split()]
