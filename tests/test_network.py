"""The tests' own rule: no test reaches for the network unless it says so."""

import socket
import urllib.request
from collections.abc import Callable

import pytest

ELSEWHERE = ("192.0.2.1", 80)  # an address that RFC 5737 gives to nobody


def connect() -> None:
    with socket.socket() as one:
        one.connect(ELSEWHERE)


def connect_ex() -> object:
    with socket.socket() as one:
        return one.connect_ex(ELSEWHERE)


def look_up() -> object:
    return socket.getaddrinfo(*ELSEWHERE)


def create_connection() -> object:
    return socket.create_connection(ELSEWHERE, timeout=0.1)


def open_url() -> object:
    return urllib.request.urlopen("http://192.0.2.1:80/", timeout=0.1)


@pytest.mark.parametrize("reach", [connect, connect_ex, look_up, create_connection, open_url])
def test_reaching_out_is_refused_by_name(reach: Callable[[], object]) -> None:
    with pytest.raises(AssertionError, match=r"192\.0\.2\.1"):
        reach()


def test_processes_of_one_machine_may_talk() -> None:
    if not hasattr(socket, "AF_UNIX"):
        pytest.skip("no Unix sockets here")
    with socket.socket(socket.AF_UNIX) as one, pytest.raises(FileNotFoundError):
        one.connect("no such socket")


@pytest.mark.network
def test_the_mark_lifts_the_block() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        with socket.create_connection(server.getsockname(), timeout=5) as one:
            assert one.getpeername() == server.getsockname()
        with socket.socket() as other:
            assert other.connect_ex(server.getsockname()) == 0
