"""Access control of the lab: checks every request before it reaches the application, and sets security headers."""

import re
import secrets
from collections.abc import Collection
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BYTES = 64 * 2**20
"""Maximum size of the body of a request, in bytes."""
MAX_NAME_BYTES = 255
"""Maximum length of a segment of an address, in bytes; file systems do not allow longer names."""
COOKIE = "parnassus_lab"
SOCKETS = "/_nicegui_ws/"
"""The address of the websockets of the pages; plain HTTP requests to it are rejected."""
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
"""Pages load resources only from the lab itself, so that the lab works offline and sends no data to other hosts."""
CONTROL = re.compile("[\x00-\x1f\x7f]")
TOO_LARGE = f"The request is too large: the limit is {MAX_BYTES // 2**20} MiB."


class Guard:
    """Accept only requests sent to an allowed host, by a page of the lab and, if required, with the token.

    A page of another site can make a browser send requests to the lab (cross-site requests, which have a foreign
    Origin), or let its domain name resolve to this machine (DNS rebinding, with a foreign Host).
    """

    def __init__(self, app: ASGIApp, *, hosts: Collection[str] | None, token: str | None = None) -> None:
        """`hosts` are the accepted values of Host, None for any; with a `token`, every request must include it."""
        if hosts is None and token is None:
            raise ValueError("a lab without allowed hosts needs a token")
        self.app, self._hosts, self._token = app, None if hosts is None else frozenset(hosts), token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        refusal = self._refuse_foreign(scope, headers) or _refuse_invalid(scope, headers)
        if refusal is not None:
            await _refuse(scope, receive, _with_headers(send), *refusal)
        elif self._token is not None and not self._has_token(headers):
            await self._ask_for_token(scope, receive, _with_headers(send))
        else:
            await self._forward(scope, receive, _with_headers(send))

    async def _forward(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward the request, unless its body exceeds the limit before the response has started."""
        body = LimitedBody(receive)
        has_started = False

        async def respond(message: Message) -> None:
            nonlocal has_started
            if not body.too_large or has_started:
                has_started = True
                await send(message)

        try:
            await self.app(scope, body.read, respond)
        except Exception:
            if not body.too_large:
                raise
        if body.too_large and not has_started:
            await _refuse(scope, receive, send, 413, TOO_LARGE)

    def _refuse_foreign(self, scope: Scope, headers: Headers) -> tuple[int, str] | None:
        """Status and message for a request to another host or from another site."""
        host, origin = headers.get("host", ""), headers.get("origin")
        if self._hosts is not None and host not in self._hosts:
            return 421, "Unknown host: use the address that `parnassus lab` printed."
        is_link = headers.get("sec-fetch-mode") == "navigate" and scope.get("method") in ("GET", "HEAD")
        is_cross_site = headers.get("sec-fetch-site", "none") not in ("none", "same-origin")
        if (origin is not None and origin != f"http://{host}") or (is_cross_site and not is_link):
            return 403, "Requests from other sites are rejected."  # links are accepted, forms are not
        return None

    def _has_token(self, headers: Headers) -> bool:
        """Whether a cookie has the token; other servers of this machine may have set cookies of any form."""
        return self._is_token(cookie_parser(headers.get("cookie", "")).get(COOKIE, ""))

    def _is_token(self, value: str) -> bool:
        return self._token is not None and secrets.compare_digest(value.encode(), self._token.encode())

    async def _ask_for_token(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the token from the address once and store it in a cookie that is not sent by other sites."""
        query = parse_qsl(scope["query_string"].decode("latin-1"))
        if scope["type"] != "http" or not any(name == "token" and self._is_token(value) for name, value in query):
            await _refuse(scope, receive, send, 401, "Open the lab with the address that `parnassus lab` printed.")
            return
        rest = urlencode([(name, value) for name, value in query if name != "token"])
        redirect = RedirectResponse("/" + scope["path"].lstrip("/\\") + (f"?{rest}" if rest else ""), status_code=303)
        redirect.set_cookie(COOKIE, str(self._token), httponly=True, samesite="strict")
        await redirect(scope, receive, send)


async def _refuse(scope: Scope, receive: Receive, send: Send, status: int, sentence: str) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 1008, "reason": sentence[:120]})
        return
    await PlainTextResponse(sentence + "\n", status_code=status)(scope, receive, send)


def _refuse_invalid(scope: Scope, headers: Headers) -> tuple[int, str] | None:
    """Status and message for a request with an invalid method, address or length."""
    path, length = scope["path"], headers.get("content-length", "0")
    if scope["type"] == "http" and scope["method"] not in ("GET", "HEAD", "POST"):
        return 405, "The lab accepts GET, HEAD and POST."
    if scope["type"] == "http" and path.startswith(SOCKETS):
        return 426, "This address accepts websockets only."
    if CONTROL.search(path) or any(len(name.encode("utf-8", "replace")) > MAX_NAME_BYTES for name in path.split("/")):
        return 404, "The address has an invalid name."
    if not length.isdecimal() or len(length) > 15 or int(length) > MAX_BYTES:
        return 413, TOO_LARGE
    return None


class LimitedBody:
    """The body of a request; reading stops when it exceeds the limit."""

    def __init__(self, receive: Receive) -> None:
        self._receive, self._size = receive, 0

    @property
    def too_large(self) -> bool:
        return self._size > MAX_BYTES

    async def read(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._size += len(message.get("body", b""))
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
