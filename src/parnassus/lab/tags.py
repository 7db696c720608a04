"""Plain HTML for the pages: elements by name, mathematics set as in the reports, text that is always text."""

from collections.abc import Callable, Iterable
from typing import cast

from nicegui import html, ui

from parnassus.report.formulas import formula_html


def tag(name: str, text: str | None = None, classes: str = "", **attributes: str) -> ui.element:
    """An element `<name>` with this text; `aria_label="…"` becomes the attribute aria-label."""
    given = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items()}
    return cast("ui.element", getattr(html, name)(text, **given)).classes(classes)


def link(text: str, address: str, classes: str = "", **attributes: str) -> ui.element:
    return tag("a", text, classes, href=address, **attributes)


def maths(text: str, name: str = "span", classes: str = "") -> ui.element:
    """Text with its indices lowered and its powers raised; everything else in it is escaped."""
    return ui.html(formula_html(text), sanitize=False, tag=name).classes(classes)


def drawing(svg: str, classes: str = "") -> ui.element:
    """A picture of our own as inline SVG; decoration, so readers skip it."""
    element = ui.html(svg, sanitize=False).classes(classes)
    element.props["aria-hidden"] = "true"
    return element


def button(text: str, act: Callable[..., object] | None, look: str = "quiet", *, small: bool = False) -> ui.button:
    """A button: `primary` for what the page is for, `danger` for what cannot be undone, `quiet` for the rest."""
    made = ui.button(text, on_click=act, color=None).classes(look).props("flat no-caps")
    return made.props("dense padding='2px 12px'") if small else made.props("padding='7px 18px'")


def facts(pairs: Iterable[tuple[str, str]], classes: str = "facts") -> None:
    """A list of names and what they are."""
    with tag("dl", classes=classes):
        for name, value in pairs:
            tag("dt", name)
            tag("dd", value)


def live(name: str, text: str = "", classes: str = "") -> ui.label:
    """An element whose text will change."""
    label = ui.label(text).classes(classes)
    label.tag = name
    return label


def words(name: str) -> str:
    return name.replace("_", " ")
