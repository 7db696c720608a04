"""Three things that a browser does itself: a range to slide over, a pad to draw on, a plane under the pointer."""

from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import Any

from nicegui import events, ui

from parnassus.report.ink import PALETTE


class Range(ui.element):
    """A slider as browsers make it: every key and every reader knows it. `on_change` gets the number."""

    def __init__(
        self, low: float, high: float, value: float, on_change: Callable[[float], None], *, step: float = 1
    ) -> None:
        super().__init__("input")
        self.low, self.high, self.value = low, high, value
        self.props.update({"type": "range", "min": low, "max": high, "step": step, "value": value})
        self._tell = on_change
        self.on("input", self._moved, js_handler="(event) => emit(Number(event.target.value))")

    def _moved(self, event: events.GenericEventArguments) -> None:
        if isinstance(event.args, int | float) and not isinstance(event.args, bool) and isfinite(event.args):
            self.value = min(self.high, max(self.low, event.args))
            self.props["value"] = self.value  # drawn anew with the page around it, it stays where it was put
            self._tell(self.value)

    def set(self, value: float) -> None:
        """Move it from here."""
        self.value = value
        self.props["value"] = value
        self._tell(value)


class Pad(ui.element, component="pad.js"):
    """A pad of `shape` pixels; `on_draw` gets the grey values, row by row, as the person draws."""

    def __init__(
        self, shape: Sequence[int], value: Sequence[float], label: str, on_draw: Callable[[Any], None]
    ) -> None:
        super().__init__()
        self.props.update({"shape": list(shape), "value": list(value), "label": label})
        self.on("drawn", lambda event: on_draw(_args(event)))

    def load(self, values: Sequence[float]) -> None:
        """Put a picture on the pad."""
        self.run_method("load", list(values))


class PlaneView(ui.element, component="plane.js"):
    """Points of a plane and a place in it; `on_move` gets the place as the pointer or an arrow key moves it.

    Without a place it is a picture only.
    """

    def __init__(
        self,
        plane: Mapping[str, Any],
        place: Sequence[float] | None,
        label: str,
        on_move: Callable[[Any], None] | None = None,
    ) -> None:
        super().__init__()
        self.props.update({"plane": dict(plane), "place": place and list(place), "label": label})
        self.props["palette"] = list(PALETTE)
        if on_move is not None:
            self.on("moved", lambda event: on_move(_args(event)))

    def show(self, answer: Mapping[str, Any]) -> None:
        """Draw ways over level lines; the answer's window fills the plane, whatever numbers either counts in."""
        plane = self.props["plane"]
        (left, right), (low, high) = (_onto(answer[side], plane[side]) for side in ("across", "up"))

        def onto(places: Sequence[Sequence[float]]) -> list[list[float]]:
            return [[left + right * x, low + high * y] for x, y in places]

        self.props["ways"] = {name: onto(places) for name, places in answer["ways"].items()}
        self.props["threads"] = [onto(thread) for thread in answer["threads"]]
        self.props["arrows"] = [onto(arrow) for arrow in answer["arrows"]]
        self.props["dots"] = onto(answer["dots"])
        self.props["levels"] = answer["levels"]


class SpotsView(PlaneView, component="plane.js"):
    """A plane on which a click adds a point, a drag moves one and a click on one removes it, up to `most`.

    `on_change` gets all places; space does what a click does, and delete clears.
    """

    def __init__(
        self,
        plane: Mapping[str, Any],
        places: Sequence[Sequence[float]],
        label: str,
        on_change: Callable[[Any], None],
        *,
        most: int,
    ) -> None:
        super().__init__(plane, None, label, on_change)
        self.props.update({"many": [list(place) for place in places], "most": most})

    def load(self, places: Sequence[Sequence[float]]) -> None:
        """Put these points on the plane instead."""
        self.run_method("load", [list(place) for place in places])


def _onto(window: Sequence[float], side: Sequence[float]) -> tuple[float, float]:
    """(a, b) such that a + b x carries the window's ends to the side's."""
    scale = (side[1] - side[0]) / (window[1] - window[0])
    return side[0] - scale * window[0], scale


def _args(event: events.GenericEventArguments) -> Any:
    return event.args
