"""Opinions made by a small grammar in which `not` turns a word round and what is said last decides.

So a list of words with points cannot read them: "not dull" praises, "lovely but not good" does not.
"""

from parnassus.data.phrases import Drawing

MOODS = ("cheerful", "gloomy")
THINGS = ("the film", "the food", "this book", "our room", "the music", "that walk", "the wine", "her speech")
GOOD = ("good", "great", "lovely", "wonderful", "charming", "fine")
BAD = ("bad", "awful", "dull", "poor", "terrible", "boring")
JOINTS = ("but", "and", "while")
DEGREES = ("very", "really", "quite", "so")


def opinions(number: int, *, seed: int = 0) -> list[tuple[str, str]]:
    """`number` different texts, each with its mood; three of ten clauses are denied, half of the texts have two."""
    if number < 0:
        raise ValueError(f"the number of opinions must not be negative; got number={number}")
    draw = Drawing(seed)
    found: dict[str, str] = {}
    while len(found) < number:
        text, cheerful = _clause(draw)
        if draw.often(0.5):
            last, cheerful = _clause(draw)
            text = f"{text} {draw.one(JOINTS)} {last}"
        found.setdefault(text, MOODS[0 if cheerful else 1])
    return list(found.items())


def _clause(draw: Drawing) -> tuple[str, bool]:
    """One thing and what it was like, and whether that is good."""
    praises, denied = draw.often(0.5), draw.often(0.3)
    words = [draw.one(THINGS), draw.one(("was", "is"))]
    words += ["not"] if denied else []
    words += [draw.one(DEGREES)] if draw.often(0.4) else []
    return " ".join([*words, draw.one(GOOD if praises else BAD)]), praises != denied
