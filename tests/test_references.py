"""References to the sources follow one grammar, so that they can be collected: `book eq. 13.30`, `Zhao sec. 11`."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import parnassus

PACKAGE = Path(parnassus.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
CHAPTERS = {"book": range(1, 19), "Diehl": range(7), "Zhao": range(1, 14)}
ABBREVIATIONS = "eqs?|thm|lem|alg|def|figs?|ex|secs?|ch"
OTHER_ABBREVIATIONS = "thms|lems|algs|defs|exs|pp?"
FULL_WORDS = "(?:equation|theorem|lemma|algorithm|definition|figure|exercise|section|chapter|page)s?"

GRAMMAR = re.compile(rf"\b(book|Diehl|Zhao) ({ABBREVIATIONS})\. (\d+)")
ATTEMPT = re.compile(  # an abbreviation, with any continuation; or a whole word and a number
    rf"\b(?:book|Diehl|Zhao)(?:'s)?,? (?:(?:{ABBREVIATIONS}|{OTHER_ABBREVIATIONS})\b\.? ?\S*|{FULL_WORDS} \(?\d\S*)",
    re.IGNORECASE,
)


def docstrings(path: Path) -> Iterator[str]:
    """The docstrings of modules, classes, functions and constants."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield " ".join(node.value.value.split())


def invalid_references(text: str) -> list[str]:
    """References that do not match the grammar, or name a chapter that does not exist."""
    invalid = [match[0] for match in ATTEMPT.finditer(text) if not GRAMMAR.match(match[0])]
    return invalid + [match[0] for match in GRAMMAR.finditer(text) if int(match[3]) not in CHAPTERS[match[1]]]


def test_references_follow_the_grammar() -> None:
    invalid = {
        str(path.relative_to(PACKAGE)): reference
        for path in FILES
        for text in docstrings(path)
        for reference in invalid_references(text)
    }
    assert invalid == {}


def test_many_docstrings_have_references() -> None:
    assert sum(len(GRAMMAR.findall(text)) for path in FILES for text in docstrings(path)) >= 100


@pytest.mark.parametrize(
    "text",
    [
        "(book eq. 13.30)",
        "Diehl thm. 1.11 and Zhao sec. 11",
        "book eqs. 4.1-4.3; book secs. 4.1, 4.2",
        "what the book prints.",
        "the book has 18 chapters",
        "Diehl's notes, in our words",
        "a book without numbers",
        "the book's definition has no bias",
        "the book counts from 1.",
    ],
)
def test_valid_text_is_accepted(text: str) -> None:
    assert invalid_references(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "book equation 13.30",
        "Book eq. 13.30",
        "book eq 13.30",
        "book eq.13.30",
        "book eq. (13.30)",
        "book, eq. 13.30",
        "book's eq. 13.30",
        "Diehl theorem 1.11",
        "Diehl thms. 1.11",
        "zhao sec. 11",
        "Zhao Section 11",
        "book p. 12",
        "book eq. 19.1",
        "Zhao sec. 14",
    ],
)
def test_invalid_references_are_found(text: str) -> None:
    assert invalid_references(text)
