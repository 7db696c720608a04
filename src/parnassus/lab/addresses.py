"""Addresses of the pages and files of the lab."""

from urllib.parse import quote, urlencode

from parnassus.atlas.catalogue import AtlasRow, chapter_of
from parnassus.atlas.declarations import Mark


def subject_address(room: str) -> str:
    return f"/subjects/{quote(room, safe='')}"


def row_address(row: AtlasRow) -> str:
    return f"{subject_address(row.subject)}#{quote(row.id, safe='')}"


def experiment_address(name: str) -> str:
    return f"/experiments/{quote(name, safe='')}"


def run_address(name: str) -> str:
    return f"/runs/{quote(name, safe='')}"


def file_address(run: str, *parts: str) -> str:
    return "/".join(["/files", quote(run, safe=""), *(quote(part, safe="") for part in parts)])


def compare_address(names: list[str]) -> str:
    return f"/compare?{urlencode([('run', name) for name in names])}"


def claim_address(mark: Mark) -> str:
    page = "claims" if mark.kind == "claim" else "errata"
    return f"/{page}/{quote(chapter_of(mark.ids[0]), safe='')}#{quote(mark.name, safe='')}"


def figure_address(mark: Mark) -> str:
    return f"/evidence/{quote(mark.module, safe='')}/{quote(mark.name, safe='')}.svg"


def probe_address(name: str, run: str | None = None) -> str:
    return f"/probes/{quote(name, safe='')}" + (f"?{urlencode({'run': run})}" if run else "")
