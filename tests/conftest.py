"""What every test gets: one thread for torch, and no network unless the test is marked `network`."""

import os
import socket
from collections.abc import Callable

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")  # also for the processes that tests start
os.environ.pop("PARNASSUS_RUNS", None)  # somebody's runs are none of ours


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "network: opens sockets, on this machine only")


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> None:
    import torch

    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def no_network(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail a test that reaches for another machine, naming the address; sockets between processes here are fine."""
    if request.node.get_closest_marker("network") is not None:
        return
    for name in ("connect", "connect_ex"):
        monkeypatch.setattr(socket.socket, name, _guarded(getattr(socket.socket, name)))
    for name in ("create_connection", "getaddrinfo"):
        monkeypatch.setattr(socket, name, _refuse)


def _guarded(call: Callable[..., object]) -> Callable[..., object]:
    local = getattr(socket, "AF_UNIX", None)  # unknown to Windows

    def connect(self: socket.socket, address: object) -> object:
        return call(self, address) if self.family == local else _refuse(address)

    return connect


def _refuse(*address: object, **_: object) -> object:
    raise AssertionError(f"a test without the mark `network` reached for {address}")
