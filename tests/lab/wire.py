"""A raw client of the lab: arbitrary bytes as requests, and the socket messages of an open page."""

import html
import http.client
import json
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin

PATIENCE = 30.0


@dataclass(frozen=True)
class Response:
    """A response; status 0 if the lab closed the connection without one."""

    status: int
    headers: dict[str, str]
    body: bytes


class Wire:
    """A connection that is reused until the lab closes it."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._socket: socket.socket | None = None

    def request(
        self,
        target: str | bytes,
        *,
        method: str = "GET",
        headers: tuple[tuple[str, str | bytes], ...] = (),
        body: bytes = b"",
    ) -> Response:
        """Send one request with exactly this target; by default with the Host of the lab."""
        lines = [f"{method} ".encode("latin-1") + _bytes(target) + b" HTTP/1.1"]
        if not any(name.lower() == "host" for name, _ in headers):
            lines.append(f"Host: 127.0.0.1:{self.port}".encode())
        if body or method == "POST":
            lines.append(f"Content-Length: {len(body)}".encode())
        lines += [name.encode("latin-1") + b": " + _bytes(value) for name, value in headers]
        return self.send(b"\r\n".join(lines) + b"\r\n\r\n" + body, method)

    def send(self, raw: bytes, method: str = "GET", *, done: bool = False) -> Response:
        """Send bytes and read one response; `done` closes the sending side."""
        was_open = self._socket is not None
        for attempt in (1, 2):
            if self._socket is None:
                self._socket = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)
            try:
                self._socket.sendall(raw)
                if done:
                    self._socket.shutdown(socket.SHUT_WR)
                return self._read(self._socket, method)
            except (ConnectionError, http.client.BadStatusLine):
                self.close()
                if not was_open or attempt == 2:
                    break  # the lab closed the connection because of this request
        return Response(0, {}, b"")

    def _read(self, connection: socket.socket, method: str) -> Response:
        response = http.client.HTTPResponse(connection, method=method)
        try:
            response.begin()
            body = response.read()
        except http.client.IncompleteRead as part:
            body = part.partial
        closing = response.will_close
        result = Response(response.status, {name.lower(): value for name, value in response.getheaders()}, body)
        response.close()
        if closing:
            self.close()
        return result

    def __enter__(self) -> "Wire":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def _bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode("utf-8")


class Page:
    """An open page with its elements, and the socket for its events."""

    def __init__(self, connection: ClientConnection, client: str, source: str) -> None:
        self.connection, self.client = connection, client
        self.resources = set(re.findall(r"/_nicegui/[\w./-]+", source))
        match = re.search(r"parseElements\(String\.raw`(.*?)`\)", source, re.DOTALL)
        assert match is not None
        self.elements: dict[str, Any] = json.loads(html.unescape(match[1]))

    def listeners(self) -> list[tuple[int, str, str, str]]:
        """(element, tag, listener, event) of all event listeners on the page."""
        return [
            (int(number), element.get("tag", ""), event["listener_id"], event["type"])
            for number, element in self.elements.items()
            for event in element.get("events", ())
        ]

    def text(self, number: int) -> str:
        element = self.elements[str(number)]
        return str(element.get("text") or element.get("props", {}).get("label") or "")

    def emit(self, name: str, message: object) -> None:
        """Send a message of socket.io."""
        self.connection.send("42" + json.dumps([name, message]))

    def event(self, number: int, listener: str, *arguments: str | None) -> None:
        """Send an event of an element; the arguments are JSON."""
        self.emit("event", {"id": number, "client_id": self.client, "listener_id": listener, "args": arguments})

    def receive(self, seconds: float = 0.2) -> list[Any]:
        """Receive messages until none arrives for `seconds`; updates of elements are applied."""
        messages: list[Any] = []
        try:
            while len(messages) < 1000:
                message = self.connection.recv(timeout=seconds)
                if message == "2":
                    self.connection.send("3")
                elif isinstance(message, str) and message.startswith("42"):
                    messages.append(json.loads(message[2:]))
        except (TimeoutError, ConnectionClosed):
            pass
        for name, content, *_ in messages:
            if name == "update":
                updated = self.elements | content
                self.elements = {number: each for number, each in updated.items() if isinstance(each, dict)}
        return messages


@contextmanager
def open_page(port: int, path: str) -> Iterator[Page]:
    """Open a page like a browser: its HTML, then its socket."""
    with Wire(port) as wire:
        source = wire.request(path).body.decode()
    client = re.search(r"'client_id': '([^']+)'", source)
    assert client is not None
    query = f"client_id={client[1]}&next_message_id=0&implicit_handshake=true&tab_id=tab&document_id={client[1]}"
    address = f"ws://127.0.0.1:{port}/_nicegui_ws/socket.io/?EIO=4&transport=websocket&{query}"
    origin = Origin(f"http://127.0.0.1:{port}")
    with connect(address, origin=origin, open_timeout=PATIENCE, max_size=None, proxy=None) as connection:
        connection.recv(timeout=PATIENCE)
        connection.send("40")
        connection.recv(timeout=PATIENCE)
        yield Page(connection, client[1], source)
