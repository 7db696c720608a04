"""Tests cannot open network connections unless they are marked `network`."""

import socket
import urllib.request
from collections.abc import Callable

import pytest

ADDRESS = ("192.0.2.1", 80)  # reserved for documentation by RFC 5737


def connect() -> None:
    with socket.socket() as connection:
        connection.connect(ADDRESS)


def connect_ex() -> object:
    with socket.socket() as connection:
        return connection.connect_ex(ADDRESS)


def look_up() -> object:
    return socket.getaddrinfo(*ADDRESS)


def create_connection() -> object:
    return socket.create_connection(ADDRESS, timeout=0.1)


def open_url() -> object:
    return urllib.request.urlopen("http://192.0.2.1:80/", timeout=0.1)


@pytest.mark.parametrize("open_connection", [connect, connect_ex, look_up, create_connection, open_url])
def test_connections_are_refused_with_their_address(open_connection: Callable[[], object]) -> None:
    with pytest.raises(AssertionError, match=r"192\.0\.2\.1"):
        open_connection()


def test_unix_sockets_are_allowed() -> None:
    if not hasattr(socket, "AF_UNIX"):
        pytest.skip("no Unix sockets here")
    with socket.socket(socket.AF_UNIX) as connection, pytest.raises(FileNotFoundError):
        connection.connect("no such socket")


@pytest.mark.network
def test_marked_tests_can_open_connections() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        with socket.create_connection(server.getsockname(), timeout=5) as connection:
            assert connection.getpeername() == server.getsockname()
        with socket.socket() as second:
            assert second.connect_ex(server.getsockname()) == 0
