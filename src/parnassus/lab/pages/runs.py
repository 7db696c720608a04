"""All runs: sorted, filtered, chosen for a comparison, deleted after a question."""

from typing import Any

from nicegui import ui

from parnassus.lab.addresses import compare_address, run_address
from parnassus.lab.frame import frame, say
from parnassus.lab.library import Library, RunFacts
from parnassus.lab.pages.run import SIGNS
from parnassus.lab.tags import button, link, tag, words
from parnassus.report.numbers import number
from parnassus.runs import RunError

COLUMNS = [
    {"name": "name", "label": "Run", "field": "name", "sortable": True, "align": "left"},
    {"name": "experiment", "label": "Experiment", "field": "experiment", "sortable": True, "align": "left"},
    {"name": "status", "label": "Status", "field": "status", "sortable": True, "align": "left", "classes": "nowrap"},
    {"name": "profile", "label": "Profile", "field": "profile", "sortable": True, "align": "left", "classes": "nowrap"},
    {"name": "started", "label": "Started", "field": "started", "sortable": True, "align": "left", "classes": "nowrap"},
    {
        "name": "seconds",
        "label": "Seconds",
        "field": "seconds",
        "sortable": True,
        "align": "right",
        "classes": "nowrap",
    },
    {"name": "numbers", "label": "Numbers", "field": "numbers", "sortable": False, "align": "left"},
]
CARD = """
<div class="q-table__grid-item"><div class="card">
  <div class="row" style="flex-wrap: nowrap">
  <q-checkbox v-model="props.selected" dense :aria-label="'Choose ' + props.row.name" />
  <a :href="props.row.address" style="overflow-wrap: anywhere">{{ props.row.name }}</a></div>
  <div>{{ props.row.status }} · {{ props.row.profile }} · {{ props.row.started }}</div>
  <div class="kicker">{{ props.row.numbers }}</div>
</div></div>
"""
NAME = """
<q-td :props="props"><a :href="props.row.address">{{ props.value }}</a></q-td>
"""


def runs_page(library: Library, like: str = "") -> None:
    with frame("Runs", "Runs"):
        tag("h1", "Runs")
        facts = library.runs()
        if not facts:
            with tag("p", classes="empty"):
                tag("span", f"There are no runs in {library.root} yet. Choose an experiment on the ")
                link("Ascent", "/")
                tag("span", ", or start one in a terminal: it shows up here.")
        RunTable(library, facts, like).show()


class RunTable:
    """The table, which follows the folder, and what can be done with the chosen runs."""

    def __init__(self, library: Library, facts: list[RunFacts], like: str) -> None:
        self.library, self.facts, self.like = library, facts, like[:100]

    def show(self) -> None:
        field = ui.input("Filter by name, experiment, status or profile", value=self.like)
        field.props('outlined dense clearable type="search" debounce=120').style("max-width: 30rem; width: 100%")
        with tag("div", classes="row").style("margin: .8rem 0"):
            self.compare = button("Compare", self._compare, "primary")
            self.remove = button("Delete…", self._delete, "danger")
            self.chosen = ui.label("Choose two or more to compare.").classes("kicker")
        self.table = ui.table(
            columns=COLUMNS,
            rows=_rows(self.facts),
            row_key="name",
            selection="multiple",
            pagination={"rowsPerPage": 25, "sortBy": "started", "descending": True},
            on_select=lambda _: self._choose(),
        )
        self.table.classes("scroll").props('flat wrap-cells :rows-per-page-options="[25, 100, 0]"').style("width: 100%")
        self.table.add_slot("body-cell-name", NAME)
        self.table.add_slot("item", CARD)  # on a phone, a card a run
        self.table.props(':grid="Quasar.Screen.lt.sm"')
        self.table.set_filter(self.like)
        field.on_value_change(lambda event: self.table.set_filter(str(event.value or "")))
        self._choose()
        ui.timer(2.0, self._look)

    @property
    def names(self) -> list[str]:
        here = {run.name for run in self.facts}
        return [row["name"] for row in self.table.selected if row.get("name") in here]

    def _choose(self) -> None:
        count = len(self.names)
        self.compare.set_enabled(count >= 2)
        self.remove.set_enabled(count >= 1)
        self.chosen.text = f"{count} chosen" if count else "Choose two or more to compare."

    def _compare(self) -> None:
        ui.navigate.to(compare_address(self.names[:8]))

    async def _delete(self) -> None:
        names = self.names
        with ui.dialog() as dialog, tag("div", classes="card", role="document"):
            tag("h3", f"Delete {names[0] if len(names) == 1 else f'{len(names)} runs'}?")
            tag(
                "p",
                "Weights, figures and numbers are gone for good: "
                + ", ".join(names[:6])
                + (" …" if len(names) > 6 else ""),
            )
            with tag("div", classes="row"):
                button("Delete", lambda: dialog.submit(True), "danger")
                button("Keep", lambda: dialog.submit(False)).props("autofocus")
        if not await dialog:
            return
        for name in names:
            folder = self.library.run(name)
            try:
                if folder is not None:
                    folder.delete()
            except RunError as error:
                say(f"{error}.", bad=True)
        self.table.selected.clear()
        self._look()
        self._choose()

    def _look(self) -> None:
        facts = self.library.runs()
        if facts != self.facts:
            self.facts = facts
            self.table.update_rows(_rows(facts), clear_selection=False)


def _rows(facts: list[RunFacts]) -> list[dict[str, Any]]:
    return [
        {
            "name": run.name,
            "address": run_address(run.name),
            "experiment": run.experiment,
            "status": f"{SIGNS[run.status]} {run.status}",
            "profile": run.profile,
            "started": run.started.replace("T", " ")[:19],
            "seconds": None if run.seconds is None else round(run.seconds, 1),
            "numbers": " · ".join(f"{words(name)} {number(value)}" for name, value in list(run.result.items())[:3]),
        }
        for run in facts
    ]
