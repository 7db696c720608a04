"""Serving the lab: the pages, the files, the guard in front of both."""

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
from parnassus.lab.frame import MOUNTAIN, furnish
from parnassus.lab.guard import Guard
from parnassus.lab.guard import __file__ as guard_file
from parnassus.lab.library import Library
from parnassus.lab.routes import add_pages
from parnassus.runs import RunError

LOOPBACK = ("127.0.0.1", "localhost", "::1")
PORTS = range(8700, 8720)
"""Where the lab listens unless told: the first of these that is free."""
RECEIVING = {"_websocket_handler", "_handle_eio_message", "_handle_event_internal", "handle_event", "_handle_navigate"}
"""The functions of engine.io, socket.io and NiceGUI through which every message of a page comes in."""


def serve(root: Path, atlas: Atlas, *, host: str | None, port: int | None, browser: bool) -> int:
    """Open the lab over the runs in `root` until Ctrl-C."""
    token = None if host is None or host in LOOPBACK else secrets.token_urlsafe(24)
    listener = listen(host or LOOPBACK[0], port)
    name, number = host or LOOPBACK[0], listener.getsockname()[1]
    shown = socket.gethostname() if name in ("0.0.0.0", "::") else f"[{name}]" if ":" in name else name  # noqa: S104 - compared, not bound
    address = f"http://{shown}:{number}/" + (f"?token={token}" if token else "")
    library = Library(root.resolve(), atlas)
    guarded = Guard(application(library), hosts=own_names(name, number), token=token)
    print(f"lab: {address}\nruns in {library.root}; stop with Ctrl-C, runs go on", flush=True)
    if browser:
        webbrowser.open(address)
    keep_quiet_about_strange_messages()
    config = uvicorn.Config(guarded, log_level="error", ws_max_size=4 * 2**20, timeout_graceful_shutdown=2)
    uvicorn.Server(config).run(sockets=[listener])
    return 0


def application(library: Library) -> FastAPI:
    """The lab as an application: pages and files, without the guard."""
    furnish()
    add_pages(library)
    pages.include_router(file_routes(library))
    pages.on_shutdown(library.close)
    pages.add_exception_handler(404, not_found)
    pages.add_exception_handler(AttributeError, no_file)
    pages.config.socket_io_js_transports = ["websocket"]  # the guard lets nothing else through
    outer = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    ui.run_with(
        outer,
        title="Parnassus",
        dark=None,
        tailwind=False,
        show_welcome_message=False,
        reconnect_timeout=10.0,
        binding_refresh_interval=None,  # nothing here is bound; without the loop an idle lab is idle
        favicon=_icon(),
    )
    return outer


def listen(host: str, port: int | None) -> socket.socket:
    """A socket on `port`, or on the first of our ports that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for number in [port] if port is not None else PORTS:
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, number))
        except (OSError, OverflowError) as error:
            listener.close()
            if port is not None:
                why = getattr(error, "strerror", None) or "a port is a number from 0 to 65535"
                raise RunError(f"the lab cannot listen on {host}:{port}: {why}; try another --port") from None
            continue
        listener.listen(128)
        return listener
    raise RunError(
        f"the lab found no free port from {PORTS.start} to {PORTS.stop - 1} on {host}: choose one with --port"
    )


def own_names(host: str, port: int) -> list[str] | None:
    """The values of Host that mean us; None when we listen on every address of the machine, and the token decides."""
    if host in LOOPBACK:
        return [f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")]
    return None if host in ("0.0.0.0", "::") else [f"[{host}]:{port}" if ":" in host else f"{host}:{port}"]  # noqa: S104 - compared, not bound


async def not_found(request: Request, error: Exception) -> Response:
    """A page that is not there says so, and how to go on; a file or a resource gets one line."""
    if request.url.path.startswith(("/files/", "/_nicegui")):
        return JSONResponse({"detail": str(getattr(error, "detail", "not found"))}, status_code=404)
    sentence = "There is no page at this address. It may have been deleted, or the address has a slip."
    html = (
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        "<title>Not here · Parnassus</title><style>:root{color-scheme:light dark}"
        "body{font:17px/1.5 system-ui,sans-serif;max-width:36rem;margin:18vh auto;padding:0 1rem}</style>"
        f"<h1>Not here</h1><p>{sentence}</p>"
        '<p><a href="/">Ascent</a> · <a href="/runs">Runs</a></p></html>'
    )
    return HTMLResponse(html, status_code=404)


async def no_file(request: Request, error: Exception) -> Response:
    """Something else was sent where a page uploads files, which NiceGUI takes for one; other mistakes are ours."""
    if request.method == "POST" and request.url.path.startswith("/_nicegui/client/"):
        return PlainTextResponse("That is no file.\n", status_code=400)
    raise error


class OwnMistakes(logging.Filter):
    """Drops the traceback of a message that failed before our code saw it: no page of ours sends such a one."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if error is None:
            return True
        code = [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)]
        ours = {Path(each.co_filename) for each in code} - {Path(guard_file)}  # the guard is in front of everything
        came_in = any(each.co_name in RECEIVING for each in code)
        return not came_in or any(Path(__file__).parent in path.parents for path in ours)


def keep_quiet_about_strange_messages() -> None:
    """Say nothing on standard error that only a broken or hostile page causes, unless PARNASSUS_DEBUG asks for all."""
    logging.getLogger("nicegui").setLevel(logging.ERROR)
    if "PARNASSUS_DEBUG" not in os.environ:
        for name in ("nicegui", "asyncio", "engineio.server", "socketio.server", "uvicorn.error"):
            logging.getLogger(name).addFilter(OwnMistakes())


def _icon() -> str:
    return MOUNTAIN.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ').replace("var(--accent)", "#0072b2")
