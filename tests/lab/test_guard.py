"""Access control: accepted hosts, sites and tokens; limits of size, method and address; security headers."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import httpx
import pytest

from parnassus.lab import guard
from parnassus.lab.guard import COOKIE, Guard

HOSTS = ("127.0.0.1:8700", "localhost:8700", "[::1]:8700")
OURS = {"host": HOSTS[0]}
TOKEN = "t0ken-of_this-lab"


async def behind(scope: Any, receive: Any, send: Any) -> None:
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


def ask(guarded: Guard, method: str = "GET", path: str = "/", content: Any = None, **headers: str) -> httpx.Response:
    """One request through the guard; in the names of headers, _ stands for -."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}

    async def answer() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(guarded), base_url="http://x") as client:
            return await client.request(method, path, headers=OURS | named, content=content)

    return asyncio.run(answer())


def knock(guarded: Guard, query: str = "", **headers: str) -> str:
    """Open a websocket; the response is `websocket.accept` or `websocket.close`."""
    named = OURS | {name.replace("_", "-"): value for name, value in headers.items()}
    raw = [(name.encode(), value.encode()) for name, value in named.items()]
    scope = {"type": "websocket", "path": "/_nicegui_ws/socket.io/", "query_string": query.encode(), "headers": raw}
    sent: list[str] = []

    async def receive() -> dict[str, str]:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        sent.append(message["type"])

    asyncio.run(guarded(scope, receive, send))
    (answer,) = sent
    return answer


@pytest.fixture
def local() -> Guard:
    """The guard of a lab on this machine."""
    return Guard(behind, hosts=HOSTS)


@pytest.fixture
def public() -> Guard:
    """The guard of a lab that other machines can reach."""
    return Guard(behind, hosts=None, token=TOKEN)


# hosts and sites


@pytest.mark.parametrize("host", HOSTS)
def test_every_name_of_this_machine_is_ours(local: Guard, host: str) -> None:
    assert ask(local, host=host).status_code == 200
    assert ask(local, host=host, origin=f"http://{host}").status_code == 200
    assert knock(local, host=host, origin=f"http://{host}") == "websocket.accept"


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8700", "127.0.0.1", "127.0.0.1:8701", "localhost.evil.example:8700", ""]
)
def test_a_name_that_was_pointed_here_is_refused(local: Guard, host: str) -> None:
    """DNS rebinding: evil.example resolves to this machine."""
    assert ask(local, host=host).status_code == 421
    assert ask(local, host=host, origin=f"http://{host}").status_code == 421
    assert knock(local, host=host, origin=f"http://{host}") == "websocket.close"


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "http://127.0.0.1:3000", "https://127.0.0.1:8700", "http://localhost:8700", ""],
)
def test_another_site_cannot_post_or_listen(local: Guard, origin: str) -> None:
    assert ask(local, "POST", origin=origin).status_code == 403
    assert ask(local, "GET", origin=origin).status_code == 403
    assert knock(local, origin=origin) == "websocket.close"


@pytest.mark.parametrize("site", ["cross-site", "same-site", "surprise"])
def test_a_link_from_another_site_may_lead_here_but_nothing_more(local: Guard, site: str) -> None:
    assert ask(local, sec_fetch_site=site, sec_fetch_mode="navigate").status_code == 200
    assert ask(local, sec_fetch_site=site, sec_fetch_mode="no-cors").status_code == 403
    assert ask(local, sec_fetch_site=site, sec_fetch_mode="cors").status_code == 403
    assert ask(local, "POST", sec_fetch_site=site, sec_fetch_mode="navigate").status_code == 403
    assert knock(local, sec_fetch_site=site, sec_fetch_mode="websocket") == "websocket.close"


def test_our_own_pages_may_do_everything(local: Guard) -> None:
    for site in ("same-origin", "none"):
        own = {"sec_fetch_site": site, "sec_fetch_mode": "cors", "origin": "http://127.0.0.1:8700"}
        assert ask(local, "POST", content=b"abc", **own).text == "3"
        assert knock(local, **own) == "websocket.accept"


def test_a_lab_for_any_name_must_have_a_token() -> None:
    with pytest.raises(ValueError, match="needs a token"):
        Guard(behind, hosts=None)


# the token


@pytest.mark.parametrize(
    "query", ["", "?token=", "?token=wrong", "?TOKEN=" + TOKEN, f"?token={TOKEN}x", "?token=%ff%00"]
)
def test_without_the_token_nobody_enters(public: Guard, query: str) -> None:
    for method in ("GET", "POST", "HEAD"):
        refused = ask(public, method, "/runs" + query)
        assert refused.status_code == 401
        assert "set-cookie" not in refused.headers


def test_the_token_turns_into_a_cookie_and_leaves_the_address(public: Guard) -> None:
    answer = ask(public, path=f"/runs?like=pca&token={TOKEN}&like=x%26y")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/runs?like=pca&like=x%26y"
    name, *attributes = answer.headers["set-cookie"].split("; ")
    assert name == f"{COOKIE}={TOKEN}"
    assert {each.lower() for each in attributes} == {"httponly", "path=/", "samesite=strict"}
    assert answer.headers["referrer-policy"] == "same-origin"


@pytest.mark.parametrize("path", ["//evil.example", "/\\evil.example", "///evil.example/x", "/%5c%5cevil.example"])
def test_the_way_back_from_the_token_stays_here(public: Guard, path: str) -> None:
    location = ask(public, path=f"http://x{path}?token={TOKEN}").headers["location"]
    assert location.startswith("/")
    assert location[1:2] not in ("/", "\\")


def test_the_cookie_lets_in_pages_and_websockets(public: Guard) -> None:
    assert ask(public, cookie=f"{COOKIE}={TOKEN}").status_code == 200
    assert knock(public, cookie=f"{COOKIE}={TOKEN}") == "websocket.accept"
    for wrong in (f"{COOKIE}=wrong", f"{COOKIE}=", f"other={TOKEN}", f"{COOKIE}={TOKEN}x", ""):
        assert ask(public, cookie=wrong).status_code == 401
        assert knock(public, cookie=wrong) == "websocket.close"


def test_a_websocket_gets_no_cookie_for_its_address(public: Guard) -> None:
    assert knock(public, query=f"token={TOKEN}") == "websocket.close"


@pytest.mark.parametrize("strange", ['theme={"dark": true}', 'a="; b', "[x]=(y)", "expires=never; path=/", ";;=;"])
def test_the_cookie_is_found_behind_what_other_servers_of_this_machine_set(public: Guard, strange: str) -> None:
    assert ask(public, cookie=f"{strange}; {COOKIE}={TOKEN}").status_code == 200


def test_the_token_does_not_excuse_another_site(public: Guard) -> None:
    entry = {"cookie": f"{COOKIE}={TOKEN}"}
    assert ask(public, "POST", origin="http://evil.example", **entry).status_code == 403
    assert knock(public, origin="http://evil.example", **entry) == "websocket.close"


# sizes, methods, addresses, headers


def chunks(sizes: Sequence[int]) -> AsyncIterator[bytes]:
    async def give() -> AsyncIterator[bytes]:
        for size in sizes:
            yield b"\0" * size

    return give()


def test_a_body_may_be_as_long_as_the_limit_and_no_longer(local: Guard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "MAX_BYTES", 1000)
    assert ask(local, "POST", content=bytes(1000)).text == "1000"
    assert ask(local, "POST", content=bytes(1001)).status_code == 413
    assert ask(local, "POST", content=chunks([400, 600])).text == "1000"
    assert ask(local, "POST", content=chunks([400, 600, 1])).status_code == 413


@pytest.mark.parametrize("length", [str(guard.MAX_BYTES + 1), "-1", "1e3", "abc", "0x10", "9" * 5000, "³", "+5", ""])
def test_a_length_that_is_none_or_too_large_is_refused_before_anything_is_read(local: Guard, length: str) -> None:
    scope = {"type": "http", "method": "POST", "path": "/", "query_string": b""}
    raw = [(b"host", HOSTS[0].encode()), (b"content-length", length.encode("latin-1"))]
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(local({**scope, "headers": raw}, receive, send))
    assert sent[0]["status"] == 413


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "BREW"])
def test_only_reading_and_posting_is_known(local: Guard, method: str) -> None:
    assert ask(local, method).status_code == 405


@pytest.mark.parametrize("path", ["/runs/%00", "/a%0ab", "/%7f", "/files/" + "x" * 256, "/" + "%C3%BC" * 128])
def test_what_can_be_no_name_is_nowhere(local: Guard, path: str) -> None:
    assert ask(local, path=path).status_code == 404


def test_names_as_long_as_names_get_are_let_through(local: Guard) -> None:
    assert ask(local, path="/files/" + "x" * 255 + "/" + "%C3%BC" * 127).status_code == 200


def test_where_the_websockets_are_nothing_else_is_answered(local: Guard) -> None:
    assert ask(local, path="/_nicegui_ws/socket.io/?EIO=4&transport=polling").status_code == 426
    assert ask(local, "POST", path="/_nicegui_ws/socket.io/?EIO=4&transport=polling&sid=x").status_code == 426
    assert knock(local) == "websocket.accept"


def test_every_answer_forbids_what_pages_do_not_need(local: Guard) -> None:
    for answer in (ask(local), ask(local, "PUT"), ask(local, host="evil.example")):
        policy = dict(part.split(" ", 1) for part in answer.headers["content-security-policy"].split("; "))
        assert policy["default-src"] == policy["connect-src"] == "'self'"
        assert policy["frame-ancestors"] == policy["object-src"] == policy["base-uri"] == "'none'"
        assert "http" not in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
