"""Claims and errata by chapter: the statement, measured against predicted, the figure; run on the spot."""

from collections.abc import Callable, Sequence

from nicegui import ui

from parnassus.atlas.evidence import Correction, Evidence
from parnassus.atlas.reading import Mark
from parnassus.lab.addresses import chapter_of, figure_address, subject_address
from parnassus.lab.frame import frame
from parnassus.lab.library import Library
from parnassus.lab.tags import button, link, live, maths, tag
from parnassus.lab.worker import Verdict

TITLES = {"claim": "Claims", "erratum": "Errata"}
ABOUT = {
    "claim": "What the texts say and a number can check. Each one is run here, now, on this machine.",
    "erratum": "What the texts print and should not: the printed line fails and the right one holds, by their numbers.",
}


def claims_page(library: Library, kind: str, chapter: str | None) -> None:
    marks = [mark for mark in library.atlas.marks if mark.kind == kind]
    chapters: dict[str, list[Mark]] = {}
    for name in dict.fromkeys(row.chapter for row in library.atlas.rows.values()):
        here = [mark for mark in marks if chapter_of(mark) == name]
        if here:
            chapters[name] = here
    page = TITLES[kind]
    chapter = next(iter(chapters), "") if chapter is None else chapter
    with frame(f"{page}: {_named(chapter)}", page):
        tag("h1", f"{page}: {_named(chapter)}")
        tag("p", ABOUT[kind], "lead")
        with tag("nav", classes="row", aria_label="Chapters"):
            for name, here in chapters.items():
                entry = link(f"{_named(name)} ({len(here)})", f"/{page.lower()}/{name}", "plain-button")
                if name == chapter:
                    entry.props["aria-current"] = "page"
        if chapter in chapters:
            library.claims.warm_up()
            Chapter(library, chapters[chapter]).show()
        else:
            tag("p", f"There are no {page.lower()} of a chapter called {chapter[:20]!r}.", "empty")


def _named(chapter: str) -> str:
    source = {"B": "book, chapter", "D": "Diehl", "C": "Diehl, companion", "Z": "Zhao"}.get(chapter[:1], "")
    return f"{source} {chapter[1:]}".strip()


class Chapter:
    """The claims of a chapter; those not run yet in this lab are run one after another."""

    def __init__(self, library: Library, marks: Sequence[Mark]) -> None:
        self.library, self.marks = library, marks
        self.shown: dict[Mark, Callable[[], None]] = {}

    def show(self) -> None:
        with tag("div", classes="row").style("margin: 1rem 0"):
            self.button = button("Run all again", self._all)
            self.bar = ui.linear_progress(0.0, show_value=False).props('rounded size="8px" aria-label="Claims run"')
            self.bar.style("width: 12rem")
            self.count = live("span", "", "kicker")
        for mark in self.marks:
            with tag("article", classes="claim", id=mark.name):
                self._statement(mark)
        self._tally()
        ui.timer(0.1, self._missing, once=True)

    def _statement(self, mark: Mark) -> None:
        with tag("div", classes="row between"):
            with tag("div", classes="ids"):
                tag("span", ", ".join(mark.ids) + " · ")
                link(mark.room, subject_address(mark.room))
            again = button("Run again", lambda: self._run(mark), small=True)
            again.props["aria-label"] = f"Run again: {mark.name.replace('_', ' ')}"
        for paragraph in mark.statement.split("\n\n"):
            maths(paragraph, "p", "statement")
        box = tag("div", classes="evidence", aria_live="polite")

        def draw() -> None:
            box.clear()
            with box:
                self._verdict(mark, self.library.verdicts.get(mark))

        self.shown[mark] = draw
        draw()

    def _verdict(self, mark: Mark, verdict: Verdict | None) -> None:
        with tag("div"):
            self._words(mark, verdict)
        if verdict is not None and verdict.figure:
            address = f"{figure_address(mark)}?v={verdict.at:.0f}"
            alt = f"The evidence drawn: {mark.name.replace('_', ' ')}"
            with tag("a", href=address, target="_blank", aria_label=f"{alt}, in full size"):
                tag("img", classes="evidence-figure", src=address, alt=alt, loading="lazy")

    def _words(self, mark: Mark, verdict: Verdict | None) -> None:
        if mark.kind == "erratum":
            outcome = verdict.outcome if verdict is not None else None
            sides = outcome if isinstance(outcome, Correction) else None
            with tag("div", classes="sides"):
                _side("Printed", mark.printed, sides.printed if sides else None)
                _side("Right", mark.right, sides.corrected if sides else None)
        elif verdict is not None and isinstance(verdict.outcome, Evidence):
            _evidence(verdict.outcome)
        if verdict is None:
            tag("span", "not run yet", "kicker")
            return
        with tag("div", classes="row"):
            words = {"claim": "holds", "erratum": "the printed line fails, the right one holds"}[mark.kind]
            sentence = f"✓ {words}" if verdict.holds else "✗ does not hold"
            tag("span", sentence, "good-text" if verdict.holds else "bad-text")
            tag("span", f"{verdict.seconds:.2f} s", "kicker")
        if verdict.error:
            tag("p", f"It could not be run: {verdict.error}", "bad-text")

    async def _run(self, mark: Mark) -> None:
        await self.library.check(mark)
        self.shown[mark]()
        self._tally()

    async def _missing(self) -> None:
        await self._several([mark for mark in self.marks if mark not in self.library.verdicts])

    async def _all(self) -> None:
        await self._several(self.marks)

    async def _several(self, marks: Sequence[Mark]) -> None:
        self.button.disable()
        for done, mark in enumerate(marks):
            self.bar.value = done / len(marks)
            self.count.text = f"running {done + 1} of {len(marks)}: {mark.name.replace('_', ' ')}"
            await self._run(mark)
        self.button.enable()
        self._tally()

    def _tally(self) -> None:
        known = [self.library.verdicts[mark] for mark in self.marks if mark in self.library.verdicts]
        if len(known) == len(self.marks):
            self.bar.value = 1.0
            self.count.text = f"{sum(verdict.holds for verdict in known)} of {len(known)} hold"


def _side(name: str, text: str, evidence: Evidence | None) -> None:
    with tag("div", classes="side"):
        tag("div", name, "kicker")
        maths(text, "div", "formula")
        if evidence is not None:
            _evidence(evidence)


def _evidence(evidence: Evidence) -> None:
    parts = evidence.parts or (("", evidence),)
    with tag("div", classes="scroll"), tag("table", classes="plain"), tag("tbody"):
        for name, part in parts:
            with tag("tr"):
                tag("td", "✓" if part.holds else "✗", "good-text" if part.holds else "bad-text")
                if name:
                    maths(name, "td")
                tag("td", part.measured)
                tag("td", f"{part.relation} {part.predicted}")
