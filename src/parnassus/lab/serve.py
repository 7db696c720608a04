"""The server of the lab: pages and files behind the access control."""

import logging
import os
import secrets
import socket
import traceback
import webbrowser
from pathlib import Path

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from nicegui import app as pages
from nicegui import ui

from parnassus.atlas.index import Atlas
from parnassus.lab.files import file_routes
from parnassus.lab.frame import MOUNTAIN, add_shared_head
from parnassus.lab.guard import Guard
from parnassus.lab.guard import __file__ as guard_file
from parnassus.lab.library import Library
from parnassus.lab.routes import add_pages
from parnassus.runs import RunError

LOOPBACK = ("127.0.0.1", "localhost", "::1")
PORTS = range(8700, 8720)
"""Ports to try; by default, the lab listens on the first free one."""
HANDLERS = {"_websocket_handler", "_handle_eio_message", "_handle_event_internal", "handle_event", "_handle_navigate"}
"""The functions of engine.io, socket.io and NiceGUI that receive the messages of a page."""


def serve(root: Path, atlas: Atlas, *, host: str | None, port: int | None, browser: bool) -> int:
    """Serve the lab for the runs in `root` until Ctrl-C."""
    token = None if host is None or host in LOOPBACK else secrets.token_urlsafe(24)
    listener = open_socket(host or LOOPBACK[0], port)
    name, number = host or LOOPBACK[0], listener.getsockname()[1]
    displayed = socket.gethostname() if name in ("0.0.0.0", "::") else f"[{name}]" if ":" in name else name  # noqa: S104 - compared, not bound
    address = f"http://{displayed}:{number}/" + (f"?token={token}" if token else "")
    library = Library(root.resolve(), atlas)
    guard = Guard(build_application(library), hosts=allowed_hosts(name, number), token=token)
    print(f"lab: {address}\nruns in {library.root}; stop with Ctrl-C (runs continue)", flush=True)
    if browser:
        webbrowser.open(address)
    filter_client_errors()
    config = uvicorn.Config(guard, log_level="error", ws_max_size=4 * 2**20, timeout_graceful_shutdown=2)
    uvicorn.Server(config).run(sockets=[listener])
    return 0


def build_application(library: Library) -> FastAPI:
    """The pages and files of the lab, without the access control."""
    add_shared_head()
    add_pages(library)
    pages.include_router(file_routes(library))
    pages.on_shutdown(library.close)
    pages.add_exception_handler(404, not_found)
    pages.add_exception_handler(AttributeError, reject_non_upload)
    pages.config.socket_io_js_transports = ["websocket"]  # the access control accepts only websockets
    outer = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    ui.run_with(
        outer,
        title="Parnassus",
        dark=None,
        tailwind=False,
        show_welcome_message=False,
        reconnect_timeout=10.0,
        binding_refresh_interval=None,  # no bindings are used; without the loop an idle lab uses no processor time
        favicon=_icon(),
    )
    return outer


def open_socket(host: str, port: int | None) -> socket.socket:
    """A socket on `port`, or on the first free port of `PORTS`."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for number in [port] if port is not None else PORTS:
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, number))
        except (OSError, OverflowError) as error:
            listener.close()
            if port is not None:
                why = getattr(error, "strerror", None) or "a port must be between 0 and 65535"
                raise RunError(f"the lab cannot listen on {host}:{port}: {why}; try another --port") from None
            continue
        listener.listen(128)
        return listener
    raise RunError(
        f"the ports from {PORTS.start} to {PORTS.stop - 1} on {host} are in use: choose another one with --port"
    )


def allowed_hosts(host: str, port: int) -> list[str] | None:
    """The accepted values of Host; None if the lab listens on all addresses and requires the token."""
    if host in LOOPBACK:
        return [f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")]
    return None if host in ("0.0.0.0", "::") else [f"[{host}]:{port}" if ":" in host else f"{host}:{port}"]  # noqa: S104 - compared, not bound


async def not_found(request: Request, error: Exception) -> Response:
    """The response to unknown addresses: a page, or JSON for files and resources."""
    if request.url.path.startswith(("/files/", "/_nicegui")):
        return JSONResponse({"detail": str(getattr(error, "detail", "not found"))}, status_code=404)
    sentence = "There is no page at this address. It may have been deleted, or the address is mistyped."
    html = (
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        "<title>Page not found · Parnassus</title><style>:root{color-scheme:light dark}"
        "body{font:17px/1.5 system-ui,sans-serif;max-width:36rem;margin:18vh auto;padding:0 1rem}</style>"
        f"<h1>Page not found</h1><p>{sentence}</p>"
        '<p><a href="/">Subjects</a> · <a href="/runs">Runs</a></p></html>'
    )
    return HTMLResponse(html, status_code=404)


async def reject_non_upload(request: Request, error: Exception) -> Response:
    """The response to an upload request without a file, which NiceGUI cannot parse; other errors are re-raised."""
    if request.method == "POST" and request.url.path.startswith("/_nicegui/client/"):
        return PlainTextResponse("The request must contain a file.\n", status_code=400)
    raise error


class ClientErrorFilter(logging.Filter):
    """Drop tracebacks of invalid messages that fail before they reach the code of the lab."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if error is None:
            return True
        code = [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)]
        files = {Path(each.co_filename) for each in code} - {Path(guard_file)}  # every request passes the guard
        is_message = any(each.co_name in HANDLERS for each in code)
        return not is_message or any(Path(__file__).parent in path.parents for path in files)


def filter_client_errors() -> None:
    """Do not log errors that only a faulty or malicious client can cause; PARNASSUS_DEBUG disables the filter."""
    logging.getLogger("nicegui").setLevel(logging.ERROR)
    if "PARNASSUS_DEBUG" not in os.environ:
        for name in ("nicegui", "asyncio", "engineio.server", "socketio.server", "uvicorn.error"):
            logging.getLogger(name).addFilter(ClientErrorFilter())


def _icon() -> str:
    return MOUNTAIN.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ').replace("var(--accent)", "#0072b2")
