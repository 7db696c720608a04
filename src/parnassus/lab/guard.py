"""The guard: who may talk to the lab, and what a page may load. It sees every request before anything else does."""

import re
import secrets
from collections.abc import Collection
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LARGEST = 64 * 2**20
"""Bytes that a request may bring along."""
LONGEST = 255
"""Bytes of a name in an address; no file system has longer ones."""
COOKIE = "parnassus_lab"
SOCKETS = "/_nicegui_ws/"
"""Where the pages' websockets are; what NiceGUI offers there to plain requests, no page of ours needs."""
POLICY = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self' 'unsafe-inline' 'unsafe-eval'",  # Vue compiles its templates in the browser
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "font-src 'self' data:",
        "connect-src 'self'",
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)
"""Nothing from elsewhere: the lab works without a network, and cannot be made to call one."""
CONTROL = re.compile("[\x00-\x1f\x7f]")
TOO_LARGE = f"That is too large: the lab takes up to {LARGEST // 2**20} MiB."


class Guard:
    """Lets a request through when it came to one of our names, from one of our pages and, where asked, with the token.

    A page of another site can make a browser send requests here, or point its own name at this machine (DNS
    rebinding); the first carries a foreign Origin, the second a foreign Host.
    """

    def __init__(self, app: ASGIApp, *, hosts: Collection[str] | None, token: str | None = None) -> None:
        """`hosts` are the values of Host that are ours, None for any; with a `token`, nobody enters without it."""
        if hosts is None and token is None:
            raise ValueError("a lab that answers to any name needs a token")
        self.app, self._hosts, self._token = app, None if hosts is None else frozenset(hosts), token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        refusal = self._foreign(scope, headers) or _unfit(scope, headers)
        if refusal is not None:
            await _refuse(scope, receive, _with_headers(send), *refusal)
        elif self._token is not None and not self._has_token(headers):
            await self._ask_for_token(scope, receive, _with_headers(send))
        else:
            await self._pass(scope, receive, _with_headers(send))

    async def _pass(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the request through, unless its body turns out to be too large before the answer began."""
        body = Body(receive)
        begun = False

        async def answer(message: Message) -> None:
            nonlocal begun
            if not body.too_large or begun:
                begun = True
                await send(message)

        try:
            await self.app(scope, body.read, answer)
        except Exception:
            if not body.too_large:
                raise
        if body.too_large and not begun:
            await _refuse(scope, receive, send, 413, TOO_LARGE)

    def _foreign(self, scope: Scope, headers: Headers) -> tuple[int, str] | None:
        """What to say to a request that came to another name, or from another site."""
        host, origin = headers.get("host", ""), headers.get("origin")
        if self._hosts is not None and host not in self._hosts:
            return 421, "This is the lab of another name: use the address that `parnassus lab` printed."
        followed = headers.get("sec-fetch-mode") == "navigate" and scope.get("method") in ("GET", "HEAD")
        elsewhere = headers.get("sec-fetch-site", "none") not in ("none", "same-origin")
        if (origin is not None and origin != f"http://{host}") or (elsewhere and not followed):
            return 403, "The lab answers to its own pages only."  # a link may lead here, a form may not
        return None

    def _has_token(self, headers: Headers) -> bool:
        """Whether ours is among the cookies; other servers of this machine may have set strange ones."""
        return self._is_token(cookie_parser(headers.get("cookie", "")).get(COOKIE, ""))

    def _is_token(self, given: str) -> bool:
        return self._token is not None and secrets.compare_digest(given.encode(), self._token.encode())

    async def _ask_for_token(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take the token from the address once, and keep it in a cookie that other sites cannot use."""
        query = parse_qsl(scope["query_string"].decode("latin-1"))
        if scope["type"] != "http" or not any(name == "token" and self._is_token(value) for name, value in query):
            await _refuse(scope, receive, send, 401, "Open the lab with the address that `parnassus lab` printed.")
            return
        rest = urlencode([(name, value) for name, value in query if name != "token"])
        answer = RedirectResponse("/" + scope["path"].lstrip("/\\") + (f"?{rest}" if rest else ""), status_code=303)
        answer.set_cookie(COOKIE, str(self._token), httponly=True, samesite="strict")
        await answer(scope, receive, send)


async def _refuse(scope: Scope, receive: Receive, send: Send, status: int, sentence: str) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 1008, "reason": sentence[:120]})
        return
    await PlainTextResponse(sentence + "\n", status_code=status)(scope, receive, send)


def _unfit(scope: Scope, headers: Headers) -> tuple[int, str] | None:
    """What to say to a request that nothing here could answer."""
    path, length = scope["path"], headers.get("content-length", "0")
    if scope["type"] == "http" and scope["method"] not in ("GET", "HEAD", "POST"):
        return 405, "The lab knows GET, HEAD and POST."
    if scope["type"] == "http" and path.startswith(SOCKETS):
        return 426, "The pages talk to the lab by websocket."
    if CONTROL.search(path) or any(len(name.encode("utf-8", "replace")) > LONGEST for name in path.split("/")):
        return 404, "Nothing here has such a name."
    if not length.isdecimal() or len(length) > 15 or int(length) > LARGEST:
        return 413, TOO_LARGE
    return None


class Body:
    """What a request brings along; reading stops when it grows past the limit without having said so."""

    def __init__(self, receive: Receive) -> None:
        self._receive, self._seen = receive, 0

    @property
    def too_large(self) -> bool:
        return self._seen > LARGEST

    async def read(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._seen += len(message.get("body", b""))
        return {"type": "http.disconnect"} if self.too_large else message


def _with_headers(send: Send) -> Send:
    async def write(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(raw=message.setdefault("headers", []))
            headers.setdefault("content-security-policy", POLICY)
            headers["x-content-type-options"] = "nosniff"
            headers["x-frame-options"] = "DENY"
            headers["referrer-policy"] = "same-origin"
        await send(message)

    return write
