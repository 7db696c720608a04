"""What a page may show or a person may take away: files of runs, and the figures of claims; nothing else."""

import mimetypes
from pathlib import Path

from fastapi import APIRouter, HTTPException
from fastapi.responses import FileResponse, Response

from parnassus.lab.library import Library

WHOLE = ("report.html", "metrics.csv", "weights.safetensors", "run.json", "result.json", "log.txt")
"""Files of a run that can be taken by name."""
HARMLESS = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""What a run wrote may be shown, but may not act: a folder can come from somebody else."""


def file_routes(library: Library) -> APIRouter:
    """The routes to files and figures: names are looked up among what is there, never joined to a path."""
    routes = APIRouter()

    @routes.get("/files/{run}/figures/{name}")
    def figure(run: str, name: str) -> FileResponse:
        return _answer(_found(_folder(library, run), "figures", name), run)

    @routes.get("/files/{run}/{name}")
    def whole(run: str, name: str) -> FileResponse:
        if name not in WHOLE:
            raise HTTPException(404, f"a run has no file called {name[:60]!r} to take away")
        return _answer(_found(_folder(library, run), name), run)

    @routes.get("/evidence/{module}/{name}.svg")
    def evidence(module: str, name: str) -> Response:
        found = [verdict for mark, verdict in library.verdicts.items() if (mark.module, mark.name) == (module, name)]
        if not found or not found[0].figure:
            raise HTTPException(404, "this claim has not been run, or has nothing to draw")
        return Response(found[0].figure, media_type="image/svg+xml", headers={"content-security-policy": HARMLESS})

    return routes


def _folder(library: Library, run: str) -> Path:
    folder = library.run(run)
    if folder is None:
        raise HTTPException(404, f"there is no run called {run[:80]!r}")
    return folder.path


def _found(folder: Path, *way: str) -> Path:
    """The file at the end of `way` that really lies in `folder`; a link, wherever it leads, does not count."""
    place, name = folder.joinpath(*way[:-1]), way[-1]
    for path in place.iterdir() if place.is_dir() else ():
        is_it = path.name == name and not name.startswith(".") and path.is_file()
        if is_it and path.resolve() == folder.resolve().joinpath(*way):
            return path
    raise HTTPException(404, f"there is no file called {name[:80]!r} here")


def _answer(path: Path, run: str) -> FileResponse:
    kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    shown = kind.startswith("image/") or path.name in ("report.html", "log.txt")
    headers = {"content-security-policy": HARMLESS, "cache-control": "no-cache"}
    return FileResponse(
        path,
        media_type=kind,
        filename=f"{run}-{path.name}",
        content_disposition_type="inline" if shown else "attachment",
        headers=headers,
    )
