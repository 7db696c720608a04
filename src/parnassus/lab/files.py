"""Routes to files of runs and to figures of claims; no other files are served."""

import mimetypes
from pathlib import Path

from fastapi import APIRouter, HTTPException
from fastapi.responses import FileResponse, Response

from parnassus.lab.library import Library

DOWNLOADS = ("report.html", "metrics.csv", "weights.safetensors", "run.json", "result.json", "log.txt")
"""Files of a run that can be downloaded."""
SANDBOX = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""Content security policy for files of runs, which may come from other users; it disables scripts."""


def file_routes(library: Library) -> APIRouter:
    """The routes to files and figures: names are looked up in listings and never joined to a path."""
    routes = APIRouter()

    @routes.get("/files/{run}/figures/{name}")
    def figure(run: str, name: str) -> FileResponse:
        return _respond(_find_file(_find_run(library, run), "figures", name), run)

    @routes.get("/files/{run}/samples/{name}")
    def samples(run: str, name: str) -> FileResponse:
        return _respond(_find_file(_find_run(library, run), "samples", name), run)

    @routes.get("/files/{run}/{name}")
    def download(run: str, name: str) -> FileResponse:
        if name not in DOWNLOADS:
            raise HTTPException(404, f"{name[:60]!r} is not a file that can be downloaded")
        return _respond(_find_file(_find_run(library, run), name), run)

    @routes.get("/evidence/{module}/{name}.svg")
    def evidence(module: str, name: str) -> Response:
        results = library.claim_results.items()
        figures = [result.figure for mark, result in results if (mark.module, mark.name) == (module, name)]
        if not figures or not figures[0]:
            raise HTTPException(404, "this claim has not been run, or has no figure")
        return Response(figures[0], media_type="image/svg+xml", headers={"content-security-policy": SANDBOX})

    return routes


def _find_run(library: Library, run: str) -> Path:
    folder = library.run(run)
    if folder is None:
        raise HTTPException(404, f"run not found: {run[:80]!r}")
    return folder.path


def _find_file(folder: Path, *parts: str) -> Path:
    """The regular file at this path in `folder`; symbolic links are not followed."""
    directory, name = folder.joinpath(*parts[:-1]), parts[-1]
    for path in directory.iterdir() if directory.is_dir() else ():
        is_match = path.name == name and not name.startswith(".") and path.is_file()
        if is_match and path.resolve() == folder.resolve().joinpath(*parts):
            return path
    raise HTTPException(404, f"file not found: {name[:80]!r}")


def _respond(path: Path, run: str) -> FileResponse:
    kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    is_inline = kind.startswith("image/") or path.name in ("report.html", "log.txt")
    headers = {"content-security-policy": SANDBOX, "cache-control": "no-cache"}
    return FileResponse(
        path,
        media_type=kind,
        filename=f"{run}-{path.name}",
        content_disposition_type="inline" if is_inline else "attachment",
        headers=headers,
    )
