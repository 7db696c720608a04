"""Answers of probes on a page: one view a kind, built once and then brought up to date."""

from html import escape
from typing import Any

from nicegui import ui

from parnassus.lab.charts import chart, curves
from parnassus.lab.components import PlaneView, Range
from parnassus.lab.graphs import graph_svg
from parnassus.lab.tags import button, live, maths, tag, words
from parnassus.report.formulas import formula_html
from parnassus.report.ink import PALETTE
from parnassus.report.numbers import number

MANY = 24
"""From so many bars on, they stand upright in a chart."""


class ImagesView:
    """Pictures side by side, each with its caption."""

    def __init__(self, answer: dict[str, Any]) -> None:
        self.count = len(answer["pictures"])
        with tag("div", classes="pictures many" if self.count > 5 else "pictures"):
            self.items = [self._item() for _ in range(self.count)]
        self.update(answer)

    def _item(self) -> tuple[ui.element, ui.label]:
        with tag("figure"):
            return tag("img", classes="pixels", src="", alt=""), live("figcaption")

    def fits(self, answer: dict[str, Any]) -> bool:
        return len(answer["pictures"]) == self.count

    def update(self, answer: dict[str, Any]) -> None:
        for (image, caption), source, text in zip(self.items, answer["pictures"], answer["captions"], strict=True):
            image.props.update({"src": source, "alt": f"{answer['title']}: {text}"})
            caption.text = text


class FilmView:
    """A timeline to scrub through, and to play."""

    def __init__(self, answer: dict[str, Any]) -> None:
        self.answer = answer
        with tag("div", classes="film"):
            self.image = tag("img", classes="pixels", src="", alt="")
            with tag("div", classes="row").style("flex-wrap: nowrap; gap: 1rem"):
                self.play = button("Play", self._play, small=True)
                last = len(answer["frames"]) - 1
                self.range = Range(0, last, last, lambda _: self._show())
                self.range.props["aria-label"] = f"{answer['title']}: frame"
            self.caption = live("div", "", "kicker")
        self.timer = ui.timer(0.08, self._next, active=False)
        self._show()

    def fits(self, answer: dict[str, Any]) -> bool:
        return len(answer["frames"]) == len(self.answer["frames"])

    def update(self, answer: dict[str, Any]) -> None:
        self.answer = answer
        self._show()

    @property
    def place(self) -> int:
        return int(self.range.value)

    def _show(self) -> None:
        caption = self.answer["captions"][self.place]
        self.image.props.update({"src": self.answer["frames"][self.place], "alt": f"{self.answer['title']}: {caption}"})
        self.caption.text = f"{self.place + 1} of {len(self.answer['frames'])}: {caption}"

    def _play(self) -> None:
        if self.place == len(self.answer["frames"]) - 1:
            self.range.set(0)
        self._run(active=not self.timer.active)

    def _next(self) -> None:
        if self.place + 1 < len(self.answer["frames"]):
            self.range.set(self.place + 1)
        else:
            self._run(active=False)

    def _run(self, *, active: bool) -> None:
        self.timer.active = active
        self.play.text = "Pause" if active else "Play"


class BarsView:
    """A number for each name: lying bars with their values, or a chart when there are many."""

    def __init__(self, answer: dict[str, Any]) -> None:
        self.many = len(answer["names"]) > MANY
        if self.many:
            self.chart = chart(self._columns(answer), answer["title"])
        else:
            self.html = ui.html(self._rows(answer), sanitize=False)

    def fits(self, answer: dict[str, Any]) -> bool:
        return (len(answer["names"]) > MANY) == self.many

    def update(self, answer: dict[str, Any]) -> None:
        if self.many:
            self.chart.options.update(self._columns(answer))
            self.chart.update()
        else:
            self.html.content = self._rows(answer)

    @staticmethod
    def _rows(answer: dict[str, Any]) -> str:
        errors, truth = answer["errors"] or [0.0] * len(answer["values"]), answer["truth"]
        ends = [abs(value) + error for value, error in zip(answer["values"], errors, strict=True)]
        most = max([*ends, *map(abs, truth)], default=1.0) or 1.0
        most = 1.0 if all(0 <= value <= 1 for value in [*answer["values"], *ends, *truth]) and not truth else most
        rows = []
        for index, (name, value) in enumerate(zip(answer["names"], answer["values"], strict=True)):
            marked = " marked" if index == answer["marked"] else ""
            kind, width = marked + (" less" if value < 0 else ""), 100 * abs(value) / most
            fill = f'<span class="fill{kind}" style="display:block;width:{width:.1f}%"></span>'
            if errors[index]:
                low = max(0.0, 100 * (abs(value) - errors[index]) / most)
                reach = f"left:{low:.1f}%;width:{100 * ends[index] / most - low:.1f}%"
                fill += f'<span class="doubt" style="{reach}"></span>'
            if truth:
                place = max(0.0, 100 * (truth[index] if value >= 0 else -truth[index]) / most)
                fill += f'<span class="truth" style="left:{place:.1f}%"></span>'
            rows.append(
                f'<span class="name{marked}">{escape(name)}</span><span class="track">{fill}</span>'
                f'<span class="value{marked}">{value:.3f}</span>'
            )
        return f'<div class="hbars">{"".join(rows)}</div>'

    @staticmethod
    def _columns(answer: dict[str, Any]) -> dict[str, Any]:
        data = [
            {"value": value, "itemStyle": {"color": PALETTE[1] if index == answer["marked"] else PALETTE[0]}}
            for index, value in enumerate(answer["values"])
        ]
        return {
            "animation": False,
            "grid": {"left": 8, "right": 8, "top": 12, "bottom": 8, "containLabel": True},
            "tooltip": {"trigger": "axis", "confine": True},
            "xAxis": {"type": "category", "data": answer["names"]},
            "yAxis": {"type": "value"},
            "series": [{"type": "bar", "data": data}],
        }


class CurvesView:
    """Lines over one axis."""

    def __init__(self, answer: dict[str, Any]) -> None:
        self.names = list(answer["lines"])
        self.chart = chart(self._options(answer), f"{answer['title']}: {', '.join(self.names)}")

    def fits(self, answer: dict[str, Any]) -> bool:
        return list(answer["lines"]) == self.names

    def update(self, answer: dict[str, Any]) -> None:
        self.chart.options.clear()
        self.chart.options.update(self._options(answer))
        self.chart.update()

    @staticmethod
    def _options(answer: dict[str, Any]) -> dict[str, Any]:
        lines = {name: (x, y) for name, (x, y) in answer["lines"].items()}
        named = {"x_label": answer["x_label"], "y_label": answer["y_label"]}
        return curves(lines, log_y=answer["log_y"], marked=answer["marked"], **named)


class NumbersView:
    """Numbers by name."""

    def __init__(self, answer: dict[str, Any]) -> None:
        self.html = ui.html(self._list(answer), sanitize=False)

    def fits(self, _answer: dict[str, Any]) -> bool:
        return True

    def update(self, answer: dict[str, Any]) -> None:
        self.html.content = self._list(answer)

    @staticmethod
    def _list(answer: dict[str, Any]) -> str:
        pairs = (
            f"<dt>{formula_html(words(name))}</dt><dd>{escape(number(value))}</dd>"
            for name, value in answer["values"].items()
        )
        return f'<dl class="facts">{"".join(pairs)}</dl>'


class PathView:
    """The names of the ways, and the plane that shows them, unless a control of the probe does (`elsewhere`)."""

    def __init__(self, answer: dict[str, Any]) -> None:
        self.names = list(answer["ways"])
        self.plane: PlaneView | None = None
        if not answer["elsewhere"]:
            plane = {"across": answer["across"], "up": answer["up"], "points": [], "classes": [], "names": ["", ""]}
            self.plane = PlaneView(plane, None, answer["title"])
            self.plane.show(answer)
        with tag("ul", classes="row"):
            for index, name in enumerate(answer["ways"]):
                with tag("li", classes="row"):
                    tag("span").style(f"width: 1.4rem; height: .25rem; background: {PALETTE[index % len(PALETTE)]}")
                    tag("span", name)

    def fits(self, answer: dict[str, Any]) -> bool:
        return list(answer["ways"]) == self.names

    def update(self, answer: dict[str, Any]) -> None:
        if self.plane is not None:
            self.plane.show(answer)


class GraphView:
    """Boxes from left to right and arrows between them, as a drawing that can be told in words."""

    def __init__(self, answer: dict[str, Any]) -> None:
        self.labels = [box["label"] for box in answer["boxes"]]
        self.html = ui.html(graph_svg(answer), sanitize=False).classes("graph")

    def fits(self, answer: dict[str, Any]) -> bool:
        return [box["label"] for box in answer["boxes"]] == self.labels

    def update(self, answer: dict[str, Any]) -> None:
        self.html.content = graph_svg(answer)


VIEWS = {
    "images": ImagesView,
    "film": FilmView,
    "bars": BarsView,
    "curves": CurvesView,
    "numbers": NumbersView,
    "path": PathView,
    "graph": GraphView,
}


class Answers:
    """All answers of a probe; a view that no longer fits is built again."""

    def __init__(self) -> None:
        self.box = tag("div", role="region", aria_label="Answer", aria_live="polite")
        self.views: list[tuple[str, Any, ui.label]] = []

    def show(self, answers: list[dict[str, Any]]) -> None:
        same = [kind for kind, _, _ in self.views] == [answer["kind"] for answer in answers]
        if not same or not all(view.fits(answer) for (_, view, _), answer in zip(self.views, answers, strict=True)):
            self._build(answers)
            return
        for (_, view, title), answer in zip(self.views, answers, strict=True):
            title.text = answer["title"]
            view.update(answer)

    def _build(self, answers: list[dict[str, Any]]) -> None:
        self.box.clear()
        self.views = []
        with self.box:
            for answer in answers:
                with tag("section", classes="answer"):
                    title = live("h3", answer["title"])
                    self.views.append((answer["kind"], VIEWS[answer["kind"]](answer), title))
                    if answer["about"]:
                        maths(answer["about"], "div", "about")
