"""Views of the answers of probes: one class per type of answer, with a registry at the end of this file."""

from abc import ABC, abstractmethod
from html import escape
from typing import Any, ClassVar

from nicegui import ui

from parnassus.lab.charts import add_chart, bar_rows, column_chart, line_chart
from parnassus.lab.components import PlaneCanvas, Slider
from parnassus.lab.graphs import graph_svg
from parnassus.lab.tags import button, formula_text, tag, text_element
from parnassus.report.formatting import display_name, format_number
from parnassus.report.formulas import formula_html
from parnassus.report.style import PALETTE

MAX_ROWS = 24
"""Maximum number of bars shown as rows with their values; more are shown as a column chart."""


FRAME_SECONDS = 0.08


class AnswerView(ABC):
    """A view of one `kind` of answers, built from an answer and updated with later answers if they fit.

    `plane` is the canvas of the controls, if they have one: a view may draw on it.
    """

    kind: ClassVar[str]

    def __init__(self, answer: dict[str, Any], plane: PlaneCanvas | None) -> None:
        self.plane = plane
        self.build(answer)

    @abstractmethod
    def build(self, answer: dict[str, Any]) -> None:
        """Add the elements to the page."""

    @abstractmethod
    def fits(self, answer: dict[str, Any], /) -> bool:
        """Whether the view can show this answer without being rebuilt."""

    @abstractmethod
    def update(self, answer: dict[str, Any]) -> None:
        """Show this answer."""


class ImagesView(AnswerView):
    """Images side by side, each with its caption."""

    kind = "images"

    def build(self, answer: dict[str, Any]) -> None:
        self.count = len(answer["images"])
        with tag("div", classes="images many" if self.count > 5 else "images"):
            self.items = [self._add_item() for _ in range(self.count)]
        self.update(answer)

    def _add_item(self) -> tuple[ui.element, ui.label]:
        with tag("figure"):
            return tag("img", classes="pixels", src="", alt=""), text_element("figcaption")

    def fits(self, answer: dict[str, Any]) -> bool:
        return len(answer["images"]) == self.count

    def update(self, answer: dict[str, Any]) -> None:
        for (image, caption), source, text in zip(self.items, answer["images"], answer["captions"], strict=True):
            image.props.update({"src": source, "alt": f"{answer['title']}: {text}"})
            caption.text = text


class AnimationView(AnswerView):
    """Frames with a slider and a button that plays them."""

    kind = "animation"

    def build(self, answer: dict[str, Any]) -> None:
        self.answer = answer
        with tag("div", classes="animation"):
            self.image = tag("img", classes="pixels", src="", alt="")
            with tag("div", classes="row").style("flex-wrap: nowrap; gap: 1rem"):
                self.play_button = button("Play", self._play, small=True)
                last = len(answer["frames"]) - 1
                self.slider = Slider(0, last, last, lambda _: self._show())
                self.slider.props["aria-label"] = f"{answer['title']}: frame"
            self.caption = text_element("div", "", "kicker")
        self.timer = ui.timer(FRAME_SECONDS, self._advance, active=False)
        self._show()

    def fits(self, answer: dict[str, Any]) -> bool:
        return len(answer["frames"]) == len(self.answer["frames"])

    def update(self, answer: dict[str, Any]) -> None:
        self.answer = answer
        self._show()

    @property
    def index(self) -> int:
        return int(self.slider.value)

    def _show(self) -> None:
        caption = self.answer["captions"][self.index]
        self.image.props.update({"src": self.answer["frames"][self.index], "alt": f"{self.answer['title']}: {caption}"})
        self.caption.text = f"{self.index + 1} of {len(self.answer['frames'])}: {caption}"

    def _play(self) -> None:
        if self.index == len(self.answer["frames"]) - 1:
            self.slider.set(0)
        self._set_playing(active=not self.timer.active)

    def _advance(self) -> None:
        if self.index + 1 < len(self.answer["frames"]):
            self.slider.set(self.index + 1)
        else:
            self._set_playing(active=False)

    def _set_playing(self, *, active: bool) -> None:
        self.timer.active = active
        self.play_button.text = "Pause" if active else "Play"


class BarsView(AnswerView):
    """A value per name: rows with horizontal bars, or a column chart if there are many."""

    kind = "bars"

    def build(self, answer: dict[str, Any]) -> None:
        self.is_chart = len(answer["names"]) > MAX_ROWS
        if self.is_chart:
            self.chart = add_chart(column_chart(answer), answer["title"])
        else:
            self.html = ui.html(bar_rows(answer), sanitize=False)

    def fits(self, answer: dict[str, Any]) -> bool:
        return (len(answer["names"]) > MAX_ROWS) == self.is_chart

    def update(self, answer: dict[str, Any]) -> None:
        if self.is_chart:
            self.chart.options.update(column_chart(answer))
            self.chart.update()
        else:
            self.html.content = bar_rows(answer)


class CurvesView(AnswerView):
    """Lines over a common x axis."""

    kind = "curves"

    def build(self, answer: dict[str, Any]) -> None:
        self.names = list(answer["lines"])
        self.chart = add_chart(self._options(answer), f"{answer['title']}: {', '.join(self.names)}")

    def fits(self, answer: dict[str, Any]) -> bool:
        return list(answer["lines"]) == self.names

    def update(self, answer: dict[str, Any]) -> None:
        self.chart.options.clear()
        self.chart.options.update(self._options(answer))
        self.chart.update()

    @staticmethod
    def _options(answer: dict[str, Any]) -> dict[str, Any]:
        lines = {name: (x, y) for name, (x, y) in answer["lines"].items()}
        labels = {"x_label": answer["x_label"], "y_label": answer["y_label"]}
        return line_chart(lines, log_y=answer["log_y"], marked=answer["marked"], **labels)


class NumbersView(AnswerView):
    """Values by name."""

    kind = "numbers"

    def build(self, answer: dict[str, Any]) -> None:
        self.html = ui.html(self._list(answer), sanitize=False)

    def fits(self, _answer: dict[str, Any]) -> bool:
        return True

    def update(self, answer: dict[str, Any]) -> None:
        self.html.content = self._list(answer)

    @staticmethod
    def _list(answer: dict[str, Any]) -> str:
        pairs = (
            f"<dt>{formula_html(display_name(name))}</dt><dd>{escape(format_number(value))}</dd>"
            for name, value in answer["values"].items()
        )
        return f'<dl class="facts">{"".join(pairs)}</dl>'


class TrajectoriesView(AnswerView):
    """A legend of the paths, which are drawn on the plane of the controls, or on their own plane."""

    kind = "trajectories"

    def build(self, answer: dict[str, Any]) -> None:
        self.names = list(answer["paths"])
        self.canvas = self.plane or _empty_plane(answer)
        self.canvas.show(answer)
        with tag("ul", classes="row"):
            for index, name in enumerate(answer["paths"]):
                with tag("li", classes="row"):
                    tag("span").style(f"width: 1.4rem; height: .25rem; background: {PALETTE[index % len(PALETTE)]}")
                    tag("span", name)

    def fits(self, answer: dict[str, Any]) -> bool:
        return list(answer["paths"]) == self.names

    def update(self, answer: dict[str, Any]) -> None:
        self.canvas.show(answer)


def _empty_plane(answer: dict[str, Any]) -> PlaneCanvas:
    """A plane with the axes of trajectories, without points."""
    ranges = {"x_range": answer["x_range"], "y_range": answer["y_range"]}
    plane = {**ranges, "points": [], "classes": [], "x_label": "", "y_label": ""}
    return PlaneCanvas(plane, None, answer["title"])


class GraphView(AnswerView):
    """A graph from left to right as an SVG, with a description for screen readers."""

    kind = "graph"

    def build(self, answer: dict[str, Any]) -> None:
        self.labels = [node["label"] for node in answer["nodes"]]
        self.html = ui.html(graph_svg(answer), sanitize=False).classes("graph")

    def fits(self, answer: dict[str, Any]) -> bool:
        return [node["label"] for node in answer["nodes"]] == self.labels

    def update(self, answer: dict[str, Any]) -> None:
        self.html.content = graph_svg(answer)


ANSWER_VIEWS: dict[str, type[AnswerView]] = {
    view.kind: view
    for view in (ImagesView, AnimationView, BarsView, CurvesView, NumbersView, TrajectoriesView, GraphView)
}


class Answers:
    """All answers of a probe; views are updated in place, or rebuilt if they no longer fit."""

    def __init__(self) -> None:
        self.box = tag("div", role="region", aria_label="Answer", aria_live="polite")
        self.views: list[tuple[AnswerView, ui.label]] = []

    def show(self, answers: list[dict[str, Any]], plane: PlaneCanvas | None) -> None:
        """Show the answers; `plane` is the canvas of the controls, if they have one."""
        if not self._fit(answers):
            self._build(answers, plane)
            return
        for (view, title), answer in zip(self.views, answers, strict=True):
            title.text = answer["title"]
            view.update(answer)

    def _fit(self, answers: list[dict[str, Any]]) -> bool:
        """Whether the views can show these answers without being rebuilt."""
        if [type(view) for view, _ in self.views] != [ANSWER_VIEWS[answer["kind"]] for answer in answers]:
            return False
        return all(view.fits(answer) for (view, _), answer in zip(self.views, answers, strict=True))

    def _build(self, answers: list[dict[str, Any]], plane: PlaneCanvas | None) -> None:
        self.box.clear()
        self.views = []
        with self.box:
            for answer in answers:
                with tag("section", classes="answer"):
                    title = text_element("h3", answer["title"])
                    self.views.append((ANSWER_VIEWS[answer["kind"]](answer, plane), title))
                    if answer["about"]:
                        formula_text(answer["about"], "div", "about")
