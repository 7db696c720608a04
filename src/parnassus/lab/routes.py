"""The addresses of all pages. Names in addresses are looked up; unknown names result in status 404."""

from typing import Annotated

from fastapi import HTTPException, Query
from nicegui import ui

from parnassus.lab.library import Library
from parnassus.lab.pages.claims import claims_page
from parnassus.lab.pages.compare import compare_page
from parnassus.lab.pages.experiment import experiment_page
from parnassus.lab.pages.home import home_page
from parnassus.lab.pages.probe import probe_page, probes_page
from parnassus.lab.pages.run import run_page
from parnassus.lab.pages.runs import runs_page
from parnassus.lab.pages.subject import subject_page
from parnassus.runs import RunError


def add_pages(library: Library) -> None:
    """Register every page of the lab."""

    @ui.page("/")
    def home() -> None:
        home_page(library)

    @ui.page("/subjects/{room}")
    def subject(room: str) -> None:
        if room not in library.atlas.rooms:
            raise HTTPException(404)
        subject_page(library, room)

    @ui.page("/experiments/{name}")
    def experiment(name: str) -> None:
        if name not in library.atlas.experiments:
            raise HTTPException(404)
        experiment_page(library, library.atlas.experiments[name])

    @ui.page("/runs")
    def runs(like: str = "") -> None:
        runs_page(library, like)

    @ui.page("/runs/{name}")
    def run(name: str) -> None:
        folder = library.run(name)
        if folder is None:
            raise HTTPException(404)
        try:
            library.summary(folder)
        except (RunError, OSError):
            raise HTTPException(404) from None
        run_page(library, folder)

    @ui.page("/compare")
    def compare(run: Annotated[list[str] | None, Query()] = None) -> None:
        compare_page(library, run or [])

    @ui.page("/claims")
    def claims() -> None:
        claims_page(library, "claim", None)

    @ui.page("/claims/{chapter}")
    def claims_of(chapter: str) -> None:
        claims_page(library, "claim", chapter)

    @ui.page("/errata")
    def errata() -> None:
        claims_page(library, "erratum", None)

    @ui.page("/errata/{chapter}")
    def errata_of(chapter: str) -> None:
        claims_page(library, "erratum", chapter)

    @ui.page("/probes")
    def probes() -> None:
        probes_page(library)

    @ui.page("/probes/{name}")
    def probe(name: str, run: str = "") -> None:
        if name not in library.atlas.probes:
            raise HTTPException(404)
        probe_page(library, library.atlas.probes[name], run)
