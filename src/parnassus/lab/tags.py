"""HTML elements for the pages: text is escaped, formulas are typeset as in the reports."""

from collections.abc import Callable, Iterable
from typing import cast

from nicegui import html, ui

from parnassus.report.formulas import formula_html


def tag(name: str, text: str | None = None, classes: str = "", **attributes: str) -> ui.element:
    """An element `<name>` with this text; `aria_label="…"` becomes the attribute aria-label."""
    html_attributes = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items()}
    return cast("ui.element", getattr(html, name)(text, **html_attributes)).classes(classes)


def link(text: str, address: str, classes: str = "", **attributes: str) -> ui.element:
    return tag("a", text, classes, href=address, **attributes)


def formula_text(text: str, name: str = "span", classes: str = "") -> ui.element:
    """Text with typeset subscripts and superscripts; all other markup is escaped."""
    return ui.html(formula_html(text), sanitize=False, tag=name).classes(classes)


def svg_element(svg: str, classes: str = "") -> ui.element:
    """A decorative SVG of the package, hidden from screen readers."""
    element = ui.html(svg, sanitize=False).classes(classes)
    element.props["aria-hidden"] = "true"
    return element


def button(text: str, on_click: Callable[..., object], look: str = "quiet", *, small: bool = False) -> ui.button:
    """A button: `primary` for the main action of the page, `danger` for irreversible actions, or `quiet`."""
    element = ui.button(text, on_click=on_click, color=None).classes(look).props("flat no-caps")
    return element.props("dense padding='2px 12px'" if small else "padding='7px 18px'")


def definition_list(pairs: Iterable[tuple[str, str]], classes: str = "facts") -> None:
    """Names with their values."""
    with tag("dl", classes=classes):
        for name, value in pairs:
            tag("dt", name)
            tag("dd", value)


def text_element(name: str, text: str = "", classes: str = "") -> ui.label:
    """An element whose text can be changed."""
    label = ui.label(text).classes(classes)
    label.tag = name
    return label


def title_and_text(title: str, reference: str, text: str) -> None:
    """The heading of a page, the reference to its source, and the paragraphs of its text."""
    tag("h1", title)
    tag("p", reference, "where")
    for paragraph in text.split("\n\n") if text else ():
        formula_text(paragraph, "p")
