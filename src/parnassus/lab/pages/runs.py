"""The table of all runs, with sorting, filtering, comparison and deletion."""

from typing import Any

from nicegui import ui

from parnassus.lab.addresses import compare_address, run_address
from parnassus.lab.frame import frame, notify
from parnassus.lab.library import Library, RunSummary
from parnassus.lab.pages.run import SYMBOLS
from parnassus.lab.tags import button, link, tag
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
    {"name": "results", "label": "Results", "field": "results", "sortable": False, "align": "left"},
]
CARD = """
<div class="q-table__grid-item"><div class="card">
  <div class="row" style="flex-wrap: nowrap">
  <q-checkbox v-model="props.selected" dense :aria-label="'Select ' + props.row.name" />
  <a :href="props.row.address" style="overflow-wrap: anywhere">{{ props.row.name }}</a></div>
  <div>{{ props.row.status }} · {{ props.row.profile }} · {{ props.row.started }}</div>
  <div class="kicker">{{ props.row.results }}</div>
</div></div>
"""
NO_SELECTION = "Select two or more runs to compare them."
NAME = """
<q-td :props="props"><a :href="props.row.address">{{ props.value }}</a></q-td>
"""


def runs_page(library: Library, like: str = "") -> None:
    with frame("Runs", "Runs"):
        tag("h1", "Runs")
        runs = library.runs()
        if not runs:
            with tag("p", classes="empty"):
                tag("span", f"There are no runs in {library.root} yet. Choose an experiment under ")
                link("Subjects", "/")
                tag("span", ", or start a run in a terminal; it will appear here.")
        RunTable(library, runs, like).show()


class RunTable:
    """The table, which is updated with the folder, and actions on the selected runs."""

    def __init__(self, library: Library, runs: list[RunSummary], like: str) -> None:
        self.library, self.runs, self.like = library, runs, like[:100]

    def show(self) -> None:
        field = ui.input("Filter by name, experiment, status or profile", value=self.like)
        field.props('outlined dense clearable type="search" debounce=120').style("max-width: 30rem; width: 100%")
        with tag("div", classes="row").style("margin: .8rem 0"):
            self.compare = button("Compare", self._compare, "primary")
            self.remove = button("Delete…", self._delete, "danger")
            self.selection = ui.label(NO_SELECTION).classes("kicker")
        self.table = ui.table(
            columns=COLUMNS,
            rows=_rows(self.runs),
            row_key="name",
            selection="multiple",
            pagination={"rowsPerPage": 25, "sortBy": "started", "descending": True},
            on_select=lambda _: self._update_buttons(),
        )
        self.table.classes("scroll").props('flat wrap-cells :rows-per-page-options="[25, 100, 0]"').style("width: 100%")
        self.table.add_slot("body-cell-name", NAME)
        self.table.add_slot("item", CARD)  # on a phone, one card per run
        self.table.props(':grid="Quasar.Screen.lt.sm"')
        self.table.set_filter(self.like)
        field.on_value_change(lambda event: self.table.set_filter(str(event.value or "")))
        self._update_buttons()
        ui.timer(2.0, self._refresh)

    @property
    def names(self) -> list[str]:
        existing = {run.name for run in self.runs}
        return [row["name"] for row in self.table.selected if row.get("name") in existing]

    def _update_buttons(self) -> None:
        count = len(self.names)
        self.compare.set_enabled(count >= 2)
        self.remove.set_enabled(count >= 1)
        self.selection.text = f"{count} selected" if count else NO_SELECTION

    def _compare(self) -> None:
        ui.navigate.to(compare_address(self.names[:8]))

    async def _delete(self) -> None:
        names = self.names
        with ui.dialog() as dialog, tag("div", classes="card", role="document"):
            tag("h3", f"Delete {names[0] if len(names) == 1 else f'{len(names)} runs'}?")
            listed = ", ".join(names[:6]) + (" …" if len(names) > 6 else "")
            tag("p", f"Weights, figures and results will be deleted permanently: {listed}")
            with tag("div", classes="row"):
                button("Delete", lambda: dialog.submit(True), "danger")
                button("Cancel", lambda: dialog.submit(False)).props("autofocus")
        if not await dialog:
            return
        for name in names:
            folder = self.library.run(name)
            try:
                if folder is not None:
                    folder.delete()
            except RunError as error:
                notify(f"{error}.", is_error=True)
        self.table.selected.clear()
        self._refresh()
        self._update_buttons()

    def _refresh(self) -> None:
        runs = self.library.runs()
        if runs != self.runs:
            self.runs = runs
            self.table.update_rows(_rows(runs), clear_selection=False)


def _rows(runs: list[RunSummary]) -> list[dict[str, Any]]:
    return [
        {
            "name": run.name,
            "address": run_address(run.name),
            "experiment": run.experiment,
            "status": f"{SYMBOLS[run.status]} {run.status}",
            "profile": run.profile,
            "started": run.started.replace("T", " ")[:19],
            "seconds": None if run.seconds is None else round(run.seconds, 1),
            "results": run.main_results,
        }
        for run in runs
    ]
