"""The content of a run's report: figures, notes, texts and tables in the order in which they were added."""

from typing import TYPE_CHECKING

from parnassus.runs.folder import RunFolder

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class ReportContent:
    """story.json and figures/ of a folder; an item added again replaces the earlier one."""

    def __init__(self, folder: RunFolder, *, silent: bool = False) -> None:
        """`silent` is True on all processes except the first."""
        self._folder, self._silent = folder, silent
        self._items = folder.read_json("story.json")

    def figure(self, name: str, figure: "Figure", caption: str) -> None:
        if self._silent:
            return
        from parnassus.report.style import save_figure  # imports matplotlib only if there is a figure

        save_figure(figure, self._folder.file("figures") / name)
        self.add("figure", name, caption=caption)

    def add(self, kind: str, name: str, **content: object) -> None:
        if not self._silent:
            self._folder.log(f"{kind}: {name}")
            self._items[f"{kind} {name}"] = {"kind": kind, "name": name, **content}
            self._folder.write_json("story.json", self._items)
