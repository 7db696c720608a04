"""Formulas in plain Unicode, typeset with subscripts and superscripts: x_{t−1}."""

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
    """An equation with its name and its reference."""

    title: str
    source: str
    text: str


def formula_html(text: str) -> str:
    """Text as escaped HTML with subscripts `_i`, `_{t−1}` and superscripts `^n`, `^{−1}`; `snake_case` is unchanged."""
    before, text = "", escape(text, quote=False)
    while before != text:  # from the inside out: p_{σ_t}
        before, text = text, SCRIPTS.sub(lambda match: "<{0}>{1}</{0}>".format(*_script(match, "sub", "sup")), text)
    return text


def to_mathtext(text: str) -> str:
    """Text with the same scripts as matplotlib's mathtext; text that contains mathtext is unchanged."""
    if "$" in text:
        return text
    return SCRIPTS.sub(lambda match: "${}{{{}}}$".format(*_script(match, "_", "^")), text)


def _script(match: re.Match[str], subscript: str, superscript: str) -> tuple[str, str]:
    sign, inner = (group for group in match.groups() if group is not None)
    return (subscript if sign == "_" else superscript), inner
