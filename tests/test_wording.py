"""Names and texts follow docs/glossary.md: no function is named by a bare participle, no text uses an avoided word."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import parnassus

PACKAGE = Path(parnassus.__file__).parent
ROOT = Path(__file__).parents[1]
FILES = sorted(PACKAGE.rglob("*.py"))
PARTICIPLE = re.compile(r"_?[a-z]+(?:ed|wn|ught|ept|old|aid|een|iven|ade|ound|ung|ent)")
NOUNS_AND_VERBS = {  # words that end like participles and are none
    *("seed", "reseed", "embed", "feed", "need", "exceed", "speed", "bed", "read", "spread", "ahead", "head"),
    *("hold", "fold", "unfold", "threshold", "gold", "bold", "cold", "manifold", "old", "scaffold"),
    *("fade", "grade", "made_of", "cascade", "shade", "blade", "upgrade", "degrade", "trade"),
    *("bound", "lower_bound", "round", "ground", "sound", "compound", "background", "surround", "found"),
    *("event", "agent", "gradient", "exponent", "component", "moment", "element", "argument", "segment", "increment"),
    *("document", "comment", "experiment", "environment", "coefficient", "content", "parent", "current", "transparent"),
    *("orient", "latent", "patent", "accent", "ascent", "descent", "percent", "evident", "independent", "adjacent"),
    *("statement", "treatment", "adjustment", "measurement", "alignment", "improvement", "agreement", "displacement"),
    *("screen", "between", "green", "own", "down", "known", "unknown", "crown", "town", "brown", "mixed", "signed"),
    *("quotient", "represent", "implement", "supplement", "augment", "present", "prevent", "invent", "sent", "bent"),
    *("efficient", "sufficient", "tangent", "subgradient", "payment", "judgement"),
    *("assignment", "refinement", "replacement", "deployment", "fragment", "pigment", "torment", "client", "ambient"),
    *("nested", "concept", "except", "intercept", "accept", "wrapped", "young", "rung", "lung", "stung", "unsigned"),
}


def functions() -> Iterator[tuple[Path, str]]:
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                is_property = any("property" in ast.unparse(each) for each in node.decorator_list)
                if not is_property:
                    yield path, node.name


def texts() -> Iterator[tuple[Path, int, str]]:
    """Every string of the package: docstrings, messages, captions, labels; help texts; rows of the atlas."""
    for path in FILES:
        source = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield path, node.lineno, " ".join(node.value.split())
        if path.parent.name == "experiments":
            for number, line in enumerate(source.splitlines(), start=1):
                yield path, number, line.partition("  # ")[2]
    for path in sorted((PACKAGE / "atlas" / "rows").glob("*.toml")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            if line.startswith(("title", "about", "note")):
                yield path, number, line


def avoided_words() -> dict[str, str]:
    """The table of docs/glossary.md: what to avoid, and what to write instead."""
    section = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8").partition("## Wording")[2]
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", section, re.MULTILINE)[1:]
    return {word.strip(): better for words, better in rows for word in words.split(",")}


def test_no_function_is_named_by_a_bare_participle() -> None:
    found = {
        f"{path.relative_to(PACKAGE)}: {name}"
        for path, name in functions()
        if PARTICIPLE.fullmatch(name) and name.lstrip("_") not in NOUNS_AND_VERBS
    }
    assert found == set()


def test_no_text_uses_an_avoided_word() -> None:
    words = avoided_words()
    assert len(words) >= 15
    pattern = re.compile(rf"\b({'|'.join(map(re.escape, words))})\b", re.IGNORECASE)
    found = {
        f"{path.relative_to(PACKAGE)}:{line}: {hit[0]!r}, write: {words[hit[0].lower()]}"
        for path, line, text in texts()
        for hit in pattern.finditer(text)
    }
    assert found == set()
