"""Claims and errata by chapter: statement, measured and predicted values, and figure."""

from collections.abc import Callable, Sequence

from nicegui import ui

from parnassus.atlas.catalogue import chapter_of
from parnassus.atlas.declarations import Mark
from parnassus.atlas.evidence import Correction, Evidence
from parnassus.lab.addresses import figure_address, subject_address
from parnassus.lab.frame import frame
from parnassus.lab.library import Library
from parnassus.lab.tags import button, formula_text, link, tag, text_element
from parnassus.lab.worker import ClaimResult

TITLES = {"claim": "Claims", "erratum": "Errata"}
ABOUT = {
    "claim": "Statements of the texts that can be checked numerically. The checks run when the page is opened.",
    "erratum": "Errors in the texts: the printed formula fails a numerical check, and the corrected one passes it.",
}


def claims_page(library: Library, kind: str, chapter: str | None) -> None:
    marks = [mark for mark in library.atlas.marks if mark.kind == kind]
    chapters: dict[str, list[Mark]] = {}
    for name in dict.fromkeys(row.chapter for row in library.atlas.rows.values()):
        of_chapter = [mark for mark in marks if chapter_of(mark.ids[0]) == name]
        if of_chapter:
            chapters[name] = of_chapter
    page = TITLES[kind]
    chapter = next(iter(chapters), "") if chapter is None else chapter
    with frame(f"{page}: {_chapter_title(chapter)}", page):
        tag("h1", f"{page}: {_chapter_title(chapter)}")
        tag("p", ABOUT[kind], "lead")
        with tag("nav", classes="row", aria_label="Chapters"):
            for name, of_chapter in chapters.items():
                entry = link(f"{_chapter_title(name)} ({len(of_chapter)})", f"/{page.lower()}/{name}", "plain-button")
                if name == chapter:
                    entry.props["aria-current"] = "page"
        if chapter in chapters:
            library.claims.warm_up()
            ChapterView(library, chapters[chapter]).show()
        else:
            tag("p", f"There are no {page.lower()} for chapter {chapter[:20]!r}.", "empty")


def _chapter_title(chapter: str) -> str:
    source = {"B": "book, chapter", "D": "Diehl", "C": "Diehl, companion", "Z": "Zhao"}.get(chapter[:1], "")
    return f"{source} {chapter[1:]}".strip()


class ChapterView:
    """The claims of a chapter; those without a result are run one after another."""

    def __init__(self, library: Library, marks: Sequence[Mark]) -> None:
        self.library, self.marks = library, marks
        self.redraw: dict[Mark, Callable[[], None]] = {}

    def show(self) -> None:
        with tag("div", classes="row").style("margin: 1rem 0"):
            self.button = button("Run all again", self._run_all)
            self.bar = ui.linear_progress(0.0, show_value=False).props('rounded size="8px" aria-label="Claims run"')
            self.bar.style("width: 12rem")
            self.count = text_element("span", "", "kicker")
        for mark in self.marks:
            with tag("article", classes="claim", id=mark.name):
                self._add_claim(mark)
        self._count()
        ui.timer(0.1, self._run_missing, once=True)

    def _add_claim(self, mark: Mark) -> None:
        with tag("div", classes="row between"):
            with tag("div", classes="ids"):
                tag("span", ", ".join(mark.ids) + " · ")
                link(mark.room, subject_address(mark.room))
            run_again = button("Run again", lambda: self._run(mark), small=True)
            run_again.props["aria-label"] = f"Run again: {mark.label}"
        for paragraph in mark.statement.split("\n\n"):
            formula_text(paragraph, "p", "statement")
        box = tag("div", classes="evidence", aria_live="polite")

        def draw() -> None:
            box.clear()
            with box:
                self._add_result(mark, self.library.claim_results.get(mark))

        self.redraw[mark] = draw
        draw()

    def _add_result(self, mark: Mark, result: ClaimResult | None) -> None:
        with tag("div"):
            self._add_values(mark, result)
        if result is not None and result.figure:
            address = f"{figure_address(mark)}?v={result.at:.0f}"
            alt = f"Figure of the evidence: {mark.label}"
            with tag("a", href=address, target="_blank", aria_label=f"{alt}, in full size"):
                tag("img", classes="evidence-figure", src=address, alt=alt, loading="lazy")

    def _add_values(self, mark: Mark, result: ClaimResult | None) -> None:
        if mark.kind == "erratum":
            outcome = result.outcome if result is not None else None
            correction = outcome if isinstance(outcome, Correction) else None
            with tag("div", classes="sides"):
                _add_side("Printed", mark.printed, correction.printed if correction else None)
                _add_side("Corrected", mark.right, correction.corrected if correction else None)
        elif result is not None and isinstance(result.outcome, Evidence):
            _add_evidence(result.outcome)
        if result is None:
            tag("span", "not run yet", "kicker")
            return
        with tag("div", classes="row"):
            success = {"claim": "holds", "erratum": "the printed formula fails, the corrected one holds"}[mark.kind]
            sentence = f"✓ {success}" if result.holds else "✗ does not hold"
            tag("span", sentence, "good-text" if result.holds else "bad-text")
            tag("span", f"{result.seconds:.2f} s", "kicker")
        if result.error:
            tag("p", f"It raised an exception: {result.error}", "bad-text")

    async def _run(self, mark: Mark) -> None:
        await self.library.check(mark)
        self.redraw[mark]()
        self._count()

    async def _run_missing(self) -> None:
        await self._run_several([mark for mark in self.marks if mark not in self.library.claim_results])

    async def _run_all(self) -> None:
        await self._run_several(self.marks)

    async def _run_several(self, marks: Sequence[Mark]) -> None:
        self.button.disable()
        for done, mark in enumerate(marks):
            self.bar.value = done / len(marks)
            self.count.text = f"running {done + 1} of {len(marks)}: {mark.label}"
            await self._run(mark)
        self.button.enable()
        self._count()

    def _count(self) -> None:
        known = [self.library.claim_results[mark] for mark in self.marks if mark in self.library.claim_results]
        if len(known) == len(self.marks):
            self.bar.value = 1.0
            self.count.text = f"{sum(result.holds for result in known)} of {len(known)} hold"


def _add_side(name: str, text: str, evidence: Evidence | None) -> None:
    with tag("div", classes="side"):
        tag("div", name, "kicker")
        formula_text(text, "div", "formula")
        if evidence is not None:
            _add_evidence(evidence)


def _add_evidence(evidence: Evidence) -> None:
    parts = evidence.parts or (("", evidence),)
    with tag("div", classes="scroll"), tag("table", classes="plain"), tag("tbody"):
        for name, part in parts:
            with tag("tr"):
                tag("td", "✓" if part.holds else "✗", "good-text" if part.holds else "bad-text")
                if name:
                    formula_text(name, "td")
                tag("td", part.measured)
                tag("td", f"{part.relation} {part.predicted}")
