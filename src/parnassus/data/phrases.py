"""German sentences and their English translations, made by a small grammar in which words must change places.

German puts verbs last where English does not (dass der Hund die Katze sieht), tears some in two (macht … auf), may
begin with the object, and tells by endings who does what. So a translation word by word fails. Each sentence has one
right translation, and whether a model found it can be told exactly.
"""

from collections.abc import Callable, Sequence
from itertools import chain, count
from typing import NamedTuple, TypeVar

import torch

from parnassus.data.chorales_and_captions import Translations
from parnassus.data.seeds import mix

Item = TypeVar("Item")


class Noun(NamedTuple):
    german: str
    gender: str  # m, f or n
    english: str


class Verb(NamedTuple):
    """The third person, the infinitive and the participle, in both languages."""

    german: tuple[str, str, str]
    english: tuple[str, str, str]


class Person(NamedTuple):
    """Somebody or something with article and adjective, as the one who acts and the one acted upon."""

    acting: str
    acted_upon: str
    english: str
    gender: str
    definite: bool


class Phrase(NamedTuple):
    """A German sentence, its translation, and what German does to the order of words in it."""

    german: str
    english: str
    order: str


NOUNS = (
    Noun("hund", "m", "dog"), Noun("mann", "m", "man"), Noun("vogel", "m", "bird"), Noun("koch", "m", "cook"),
    Noun("wolf", "m", "wolf"), Noun("frau", "f", "woman"), Noun("katze", "f", "cat"), Noun("maus", "f", "mouse"),
    Noun("lehrerin", "f", "teacher"), Noun("ente", "f", "duck"), Noun("kind", "n", "child"),
    Noun("pferd", "n", "horse"), Noun("mädchen", "n", "girl"), Noun("schaf", "n", "sheep"),
)  # fmt: skip
THINGS = (
    Noun("tür", "f", "door"), Noun("fenster", "n", "window"), Noun("koffer", "m", "suitcase"),
    Noun("kiste", "f", "box"),
)  # fmt: skip
ADJECTIVES = {"klein": "small", "alt": "old", "rot": "red", "jung": "young", "müd": "tired", "arm": "poor"}
OF_THINGS = ("klein", "alt", "rot")
VERBS = (
    Verb(("sieht", "sehen", "gesehen"), ("sees", "see", "seen")),
    Verb(("hört", "hören", "gehört"), ("hears", "hear", "heard")),
    Verb(("sucht", "suchen", "gesucht"), ("seeks", "seek", "sought")),
    Verb(("findet", "finden", "gefunden"), ("finds", "find", "found")),
    Verb(("ruft", "rufen", "gerufen"), ("calls", "call", "called")),
    Verb(("malt", "malen", "gemalt"), ("paints", "paint", "painted")),
    Verb(("kennt", "kennen", "gekannt"), ("knows", "know", "known")),
)
RESTING = {"schläft": "sleeps", "lacht": "laughs", "wartet": "waits", "singt": "sings", "läuft": "runs"}
TORN = {"auf": ("opens", "open"), "zu": ("closes", "close")}
TIMES = {"heute": "today", "jetzt": "now", "manchmal": "sometimes", "morgens": "in the morning"}
MODALS = {"will": "wants to", "muss": "must", "kann": "can"}
ARTICLES = {"m": ("der", "den", "ein", "einen"), "f": ("die", "die", "eine", "eine"), "n": ("das", "das", "ein", "ein")}
ENDINGS = {"m": ("e", "en", "er", "en"), "f": ("e", "e", "e", "e"), "n": ("e", "e", "es", "es")}


class Drawing:
    """Draws parts of sentences, from numbers of its own."""

    def __init__(self, seed: int) -> None:
        source = torch.Generator().manual_seed(mix(seed))
        draws = (torch.rand(4_096, generator=source, dtype=torch.float64).tolist() for _ in count())
        self._numbers = chain.from_iterable(draws)

    def one(self, options: Sequence[Item]) -> Item:
        return options[int(next(self._numbers) * len(options))]

    def often(self, share: float) -> bool:
        return bool(next(self._numbers) < share)

    def person(
        self,
        nouns: Sequence[Noun] = NOUNS,
        adjectives: Sequence[str] = tuple(ADJECTIVES),
        *,
        definite: bool | None = None,
    ) -> Person:
        """A noun with an article and, half of the time, an adjective."""
        noun = self.one(nouns)
        definite = self.often(0.6) if definite is None else definite
        case = 0 if definite else 2
        adjective = self.one(adjectives) if self.often(0.5) else None
        german = []
        for place in (case, case + 1):
            described = [] if adjective is None else [adjective + ENDINGS[noun.gender][place]]
            german.append(" ".join([ARTICLES[noun.gender][place], *described, noun.german]))
        words = noun.english if adjective is None else f"{ADJECTIVES[adjective]} {noun.english}"
        article = "the" if definite else "an" if words[0] in "aeiou" else "a"
        return Person(german[0], german[1], f"{article} {words}", noun.gender, definite)


def statement(draw: Drawing) -> tuple[str, str]:
    who, whom, verb = draw.person(), draw.person(), draw.one(VERBS)
    return f"{who.acting} {verb.german[0]} {whom.acted_upon}.", f"{who.english} {verb.english[0]} {whom.english}."


def short_statement(draw: Drawing) -> tuple[str, str]:
    who, rest = draw.person(), draw.one(list(RESTING))
    return f"{who.acting} {rest}.", f"{who.english} {RESTING[rest]}."


def perfect(draw: Drawing) -> tuple[str, str]:
    who, whom, verb = draw.person(), draw.person(), draw.one(VERBS)
    german = f"{who.acting} hat {whom.acted_upon} {verb.german[2]}."
    return german, f"{who.english} has {verb.english[2]} {whom.english}."


def modal(draw: Drawing) -> tuple[str, str]:
    who, whom, verb, word = draw.person(), draw.person(), draw.one(VERBS), draw.one(list(MODALS))
    german = f"{who.acting} {word} {whom.acted_upon} {verb.german[1]}."
    return german, f"{who.english} {MODALS[word]} {verb.english[1]} {whom.english}."


def that_clause(draw: Drawing) -> tuple[str, str]:
    knows, who, whom, verb = draw.person(definite=True), draw.person(), draw.person(), draw.one(VERBS)
    german = f"{knows.acting} weiß, dass {who.acting} {whom.acted_upon} {verb.german[0]}."
    return german, f"{knows.english} knows that {who.english} {verb.english[0]} {whom.english}."


def because(draw: Drawing) -> tuple[str, str]:
    rests, who, whom, verb = draw.person(definite=True), draw.person(), draw.person(), draw.one(VERBS)
    rest = draw.one(list(RESTING))
    german = f"{rests.acting} {rest}, weil {who.acting} {whom.acted_upon} {verb.german[0]}."
    return german, f"{rests.english} {RESTING[rest]} because {who.english} {verb.english[0]} {whom.english}."


def time_first(draw: Drawing) -> tuple[str, str]:
    time, who, whom, verb = draw.one(list(TIMES)), draw.person(), draw.person(), draw.one(VERBS)
    german = f"{time} {verb.german[0]} {who.acting} {whom.acted_upon}."
    return german, f"{TIMES[time]} {who.english} {verb.english[0]} {whom.english}."


def question(draw: Drawing) -> tuple[str, str]:
    who, whom, verb = draw.person(), draw.person(), draw.one(VERBS)
    german = f"{verb.german[0]} {who.acting} {whom.acted_upon}?"
    return german, f"does {who.english} {verb.english[1]} {whom.english}?"


def object_first(draw: Drawing) -> tuple[str, str]:
    """Only with a masculine object, whose ending shows that it does not act."""
    masculine = [noun for noun in NOUNS if noun.gender == "m"]
    who, whom, verb = draw.person(), draw.person(masculine), draw.one(VERBS)
    german = f"{whom.acted_upon} {verb.german[0]} {who.acting}."
    return german, f"{who.english} {verb.english[0]} {whom.english}."


def negation(draw: Drawing) -> tuple[str, str]:
    who, whom, verb = draw.person(), draw.person(definite=True), draw.one(VERBS)
    german = f"{who.acting} {verb.german[0]} {whom.acted_upon} nicht."
    return german, f"{who.english} does not {verb.english[1]} {whom.english}."


def torn_verb(draw: Drawing) -> tuple[str, str]:
    """The verb's second half comes last, and decides what is done."""
    who, what, half = draw.person(), draw.person(THINGS, OF_THINGS), draw.one(list(TORN))
    if draw.often(0.5):
        return f"{who.acting} macht {what.acted_upon} {half}.", f"{who.english} {TORN[half][0]} {what.english}."
    german = f"{who.acting} will {what.acted_upon} {half}machen."
    return german, f"{who.english} wants to {TORN[half][1]} {what.english}."


def relative_clause(draw: Drawing) -> tuple[str, str]:
    who, whom, verb, rest = draw.person(), draw.person(), draw.one(VERBS), draw.one(list(RESTING))
    which = ARTICLES[who.gender][0]
    german = f"{who.acting}, {which} {whom.acted_upon} {verb.german[0]}, {rest}."
    return german, f"{who.english} that {verb.english[0]} {whom.english} {RESTING[rest]}."


ORDERS: dict[str, tuple[Callable[[Drawing], tuple[str, str]], ...]] = {
    "as in English": (statement, short_statement, negation),
    "verb parted": (perfect, modal, torn_verb),
    "verb last": (that_clause, because, relative_clause),
    "subject not first": (time_first, question, object_first),
}
"""What German does to the order of words, and the sentences in which it does."""
KINDS = [(order, kind) for order, kinds in ORDERS.items() for kind in kinds]


def phrases(number: int, *, seed: int = 0) -> list[Phrase]:
    """`number` different sentences, all kinds equally often as they are drawn."""
    if number < 0:
        raise ValueError(f"the number of sentences must not be negative; got number={number}")
    draw = Drawing(seed)
    found: dict[str, Phrase] = {}
    while len(found) < number:
        order, kind = draw.one(KINDS)
        german, english = kind(draw)
        found.setdefault(german, Phrase(german, english, order))
    return list(found.values())


def german_phrases(train: int = 4_000, valid: int = 200, test: int = 500, *, seed: int = 0) -> Translations:
    """Pairs from German to English; no sentence is in two of the parts."""
    pairs = [(phrase.german, phrase.english) for phrase in phrases(train + valid + test, seed=seed)]
    return Translations("de", "en", pairs[:train], pairs[train : train + valid], pairs[train + valid :])
