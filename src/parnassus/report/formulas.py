"""Formulas in plain Unicode, set as a page would show them: x_{t−1} with its index below the line."""

import re
from dataclasses import dataclass
from html import escape

SCRIPTS = re.compile(
    r"([_^])\{([^{}]*)\}"  # p_{σ_t}
    r"|(?<![A-Za-z]{2})(?<!_)([_^])([A-Za-z0-9]+|[α-ωΑ-Ω*+−])"  # x_t, Σ_yx, but not __init__
    r"|(?<=[A-Za-z]{2})(_)([A-Za-zα-ωΑ-Ω])(?![A-Za-z0-9_])"  # softmax_i, max_θ, but not snake_case
)


@dataclass(frozen=True)
class Formula:
    """An equation with its name and its place in the sources."""

    title: str
    source: str
    text: str


def formula_html(text: str) -> str:
    """Text as safe HTML: `_i`, `_{t−1}` lowered, `^n`, `^{−1}` raised, the rest, `snake_case` too, as it is."""
    before, text = "", escape(text, quote=False)
    while before != text:  # from the inside out: p_{σ_t}
        before, text = text, SCRIPTS.sub(lambda found: "<{0}>{1}</{0}>".format(*_script(found, "sub", "sup")), text)
    return text


def with_scripts(text: str) -> str:
    """Text with the same indices for matplotlib, which sets what stands between dollars; theirs is left alone."""
    if "$" in text:
        return text
    return SCRIPTS.sub(lambda found: "${}{{{}}}$".format(*_script(found, "_", "^")), text)


def _script(found: re.Match[str], low: str, high: str) -> tuple[str, str]:
    sign, inner = (group for group in found.groups() if group is not None)
    return (low if sign == "_" else high), inner
