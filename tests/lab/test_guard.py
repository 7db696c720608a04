"""Access control: accepted hosts, sites and tokens; limits of size, method and address; security headers."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import httpx
import pytest

from parnassus.lab import guard
from parnassus.lab.guard import COOKIE, Guard

HOSTS = ("127.0.0.1:8700", "localhost:8700", "[::1]:8700")
OWN_HEADERS = {"host": HOSTS[0]}
TOKEN = "t0ken-of_this-lab"


async def application(scope: Any, receive: Any, send: Any) -> None:
    """The application: it returns the length of the body, or accepts a websocket."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.accept"})
        return
    length, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ConnectionError("the body ended before its end")
        length, more = length + len(message.get("body", b"")), message.get("more_body", False)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/html")]})
    await send({"type": "http.response.body", "body": str(length).encode()})


def request(
    guarded: Guard, method: str = "GET", path: str = "/", content: Any = None, **headers: str
) -> httpx.Response:
    """One request through the guard; in the names of headers, _ stands for -."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}

    async def send_request() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(guarded), base_url="http://x") as client:
            return await client.request(method, path, headers=OWN_HEADERS | named, content=content)

    return asyncio.run(send_request())


def open_websocket(guarded: Guard, query: str = "", **headers: str) -> str:
    """Open a websocket; the response is `websocket.accept` or `websocket.close`."""
    named = OWN_HEADERS | {name.replace("_", "-"): value for name, value in headers.items()}
    raw = [(name.encode(), value.encode()) for name, value in named.items()]
    scope = {"type": "websocket", "path": "/_nicegui_ws/socket.io/", "query_string": query.encode(), "headers": raw}
    sent: list[str] = []

    async def receive() -> dict[str, str]:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        sent.append(message["type"])

    asyncio.run(guarded(scope, receive, send))
    (response,) = sent
    return response


@pytest.fixture
def local_guard() -> Guard:
    """The guard of a lab on this machine."""
    return Guard(application, hosts=HOSTS)


@pytest.fixture
def public_guard() -> Guard:
    """The guard of a lab that other machines can reach."""
    return Guard(application, hosts=None, token=TOKEN)


# hosts and sites


@pytest.mark.parametrize("host", HOSTS)
def test_local_host_names_are_accepted(local_guard: Guard, host: str) -> None:
    assert request(local_guard, host=host).status_code == 200
    assert request(local_guard, host=host, origin=f"http://{host}").status_code == 200
    assert open_websocket(local_guard, host=host, origin=f"http://{host}") == "websocket.accept"


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8700", "127.0.0.1", "127.0.0.1:8701", "localhost.evil.example:8700", ""]
)
def test_unknown_hosts_are_rejected(local_guard: Guard, host: str) -> None:
    """DNS rebinding: evil.example resolves to this machine."""
    assert request(local_guard, host=host).status_code == 421
    assert request(local_guard, host=host, origin=f"http://{host}").status_code == 421
    assert open_websocket(local_guard, host=host, origin=f"http://{host}") == "websocket.close"


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "http://127.0.0.1:3000", "https://127.0.0.1:8700", "http://localhost:8700", ""],
)
def test_cross_origin_requests_are_rejected(local_guard: Guard, origin: str) -> None:
    assert request(local_guard, "POST", origin=origin).status_code == 403
    assert request(local_guard, "GET", origin=origin).status_code == 403
    assert open_websocket(local_guard, origin=origin) == "websocket.close"


@pytest.mark.parametrize("site", ["cross-site", "same-site", "surprise"])
def test_cross_site_requests_can_only_navigate(local_guard: Guard, site: str) -> None:
    assert request(local_guard, sec_fetch_site=site, sec_fetch_mode="navigate").status_code == 200
    assert request(local_guard, sec_fetch_site=site, sec_fetch_mode="no-cors").status_code == 403
    assert request(local_guard, sec_fetch_site=site, sec_fetch_mode="cors").status_code == 403
    assert request(local_guard, "POST", sec_fetch_site=site, sec_fetch_mode="navigate").status_code == 403
    assert open_websocket(local_guard, sec_fetch_site=site, sec_fetch_mode="websocket") == "websocket.close"


def test_same_origin_requests_are_accepted(local_guard: Guard) -> None:
    for site in ("same-origin", "none"):
        same_origin = {"sec_fetch_site": site, "sec_fetch_mode": "cors", "origin": "http://127.0.0.1:8700"}
        assert request(local_guard, "POST", content=b"abc", **same_origin).text == "3"
        assert open_websocket(local_guard, **same_origin) == "websocket.accept"


def test_accepting_any_host_requires_a_token() -> None:
    with pytest.raises(ValueError, match="needs a token"):
        Guard(application, hosts=None)


# the token


@pytest.mark.parametrize(
    "query", ["", "?token=", "?token=wrong", "?TOKEN=" + TOKEN, f"?token={TOKEN}x", "?token=%ff%00"]
)
def test_requests_without_the_token_are_unauthorized(public_guard: Guard, query: str) -> None:
    for method in ("GET", "POST", "HEAD"):
        response = request(public_guard, method, "/runs" + query)
        assert response.status_code == 401
        assert "set-cookie" not in response.headers


def test_token_is_moved_from_the_address_to_a_cookie(public_guard: Guard) -> None:
    response = request(public_guard, path=f"/runs?like=pca&token={TOKEN}&like=x%26y")
    assert response.status_code == 303
    assert response.headers["location"] == "/runs?like=pca&like=x%26y"
    name, *attributes = response.headers["set-cookie"].split("; ")
    assert name == f"{COOKIE}={TOKEN}"
    assert {each.lower() for each in attributes} == {"httponly", "path=/", "samesite=strict"}
    assert response.headers["referrer-policy"] == "same-origin"


@pytest.mark.parametrize("path", ["//evil.example", "/\\evil.example", "///evil.example/x", "/%5c%5cevil.example"])
def test_token_redirect_stays_on_this_host(public_guard: Guard, path: str) -> None:
    location = request(public_guard, path=f"http://x{path}?token={TOKEN}").headers["location"]
    assert location.startswith("/")
    assert location[1:2] not in ("/", "\\")


def test_cookie_authorizes_pages_and_websockets(public_guard: Guard) -> None:
    assert request(public_guard, cookie=f"{COOKIE}={TOKEN}").status_code == 200
    assert open_websocket(public_guard, cookie=f"{COOKIE}={TOKEN}") == "websocket.accept"
    for invalid in (f"{COOKIE}=wrong", f"{COOKIE}=", f"other={TOKEN}", f"{COOKIE}={TOKEN}x", ""):
        assert request(public_guard, cookie=invalid).status_code == 401
        assert open_websocket(public_guard, cookie=invalid) == "websocket.close"


def test_token_in_a_websocket_address_is_rejected(public_guard: Guard) -> None:
    assert open_websocket(public_guard, query=f"token={TOKEN}") == "websocket.close"


@pytest.mark.parametrize(
    "other_cookies", ['theme={"dark": true}', 'a="; b', "[x]=(y)", "expires=never; path=/", ";;=;"]
)
def test_cookie_is_found_after_cookies_of_other_servers(public_guard: Guard, other_cookies: str) -> None:
    assert request(public_guard, cookie=f"{other_cookies}; {COOKIE}={TOKEN}").status_code == 200


def test_token_does_not_permit_cross_origin_requests(public_guard: Guard) -> None:
    credentials = {"cookie": f"{COOKIE}={TOKEN}"}
    assert request(public_guard, "POST", origin="http://evil.example", **credentials).status_code == 403
    assert open_websocket(public_guard, origin="http://evil.example", **credentials) == "websocket.close"


# sizes, methods, addresses, headers


def chunks(sizes: Sequence[int]) -> AsyncIterator[bytes]:
    async def generate() -> AsyncIterator[bytes]:
        for size in sizes:
            yield b"\0" * size

    return generate()


def test_body_size_is_limited(local_guard: Guard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "MAX_BYTES", 1000)
    assert request(local_guard, "POST", content=bytes(1000)).text == "1000"
    assert request(local_guard, "POST", content=bytes(1001)).status_code == 413
    assert request(local_guard, "POST", content=chunks([400, 600])).text == "1000"
    assert request(local_guard, "POST", content=chunks([400, 600, 1])).status_code == 413


@pytest.mark.parametrize("length", [str(guard.MAX_BYTES + 1), "-1", "1e3", "abc", "0x10", "9" * 5000, "³", "+5", ""])
def test_invalid_content_length_is_rejected_before_reading(local_guard: Guard, length: str) -> None:
    scope = {"type": "http", "method": "POST", "path": "/", "query_string": b""}
    raw = [(b"host", HOSTS[0].encode()), (b"content-length", length.encode("latin-1"))]
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(local_guard({**scope, "headers": raw}, receive, send))
    assert sent[0]["status"] == 413


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "BREW"])
def test_other_methods_are_not_allowed(local_guard: Guard, method: str) -> None:
    assert request(local_guard, method).status_code == 405


@pytest.mark.parametrize("path", ["/runs/%00", "/a%0ab", "/%7f", "/files/" + "x" * 256, "/" + "%C3%BC" * 128])
def test_invalid_paths_are_not_found(local_guard: Guard, path: str) -> None:
    assert request(local_guard, path=path).status_code == 404


def test_names_of_maximal_length_are_accepted(local_guard: Guard) -> None:
    assert request(local_guard, path="/files/" + "x" * 255 + "/" + "%C3%BC" * 127).status_code == 200


def test_plain_requests_to_the_websocket_path_are_rejected(local_guard: Guard) -> None:
    assert request(local_guard, path="/_nicegui_ws/socket.io/?EIO=4&transport=polling").status_code == 426
    assert request(local_guard, "POST", path="/_nicegui_ws/socket.io/?EIO=4&transport=polling&sid=x").status_code == 426
    assert open_websocket(local_guard) == "websocket.accept"


def test_responses_have_security_headers(local_guard: Guard) -> None:
    for response in (request(local_guard), request(local_guard, "PUT"), request(local_guard, host="evil.example")):
        policy = dict(part.split(" ", 1) for part in response.headers["content-security-policy"].split("; "))
        assert policy["default-src"] == policy["connect-src"] == "'self'"
        assert policy["frame-ancestors"] == policy["object-src"] == policy["base-uri"] == "'none'"
        assert "http" not in response.headers["content-security-policy"]
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["x-frame-options"] == "DENY"
