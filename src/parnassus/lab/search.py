"""Search over everything that has a name: experiments, probes, rows and claims, by words, ids and formulas."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from parnassus.atlas.index import Atlas
from parnassus.lab.addresses import claim_address, experiment_address, probe_address, row_address


@dataclass(frozen=True)
class Hit:
    """Something found: what it is called, what it is, where its page is."""

    kind: str
    name: str
    line: str
    address: str


class Index:
    """Everything the atlas names, folded once so that a search is a scan."""

    def __init__(self, atlas: Atlas) -> None:
        self._entries = [
            (hit, folded(f"{hit.name} {hit.line}"), folded(f"{hit.name} {text}")) for hit, text in _all(atlas)
        ]

    def find(self, query: str, most: int = 40) -> list[Hit]:
        """What holds every word of the query, best first: in the name, in its line, then anywhere."""
        words = folded(query[:200]).split()
        if not words:
            return []
        ranked = []
        for order, (hit, line, text) in enumerate(self._entries):
            if all(word in text for word in words):
                name = folded(hit.name)
                whole = " ".join(words)
                rank = 0 if name == whole else 1 if name.startswith(whole) else 2 if whole in name else 3
                rank += 2 * (rank == 3 and not all(word in line for word in words))
                ranked.append((rank, order, hit))
        return [hit for _, _, hit in sorted(ranked, key=lambda entry: entry[:2])[:most]]


def folded(text: str) -> str:
    """Text without case, accents and the signs that set indices: ᾱ_t and αt are the same to search for."""
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    plain = "".join(letter for letter in plain if not unicodedata.combining(letter))
    return re.sub(r"\s+", " ", re.sub(r"[_^{}]", "", plain)).strip()


def _all(atlas: Atlas) -> Iterator[tuple[Hit, str]]:
    for entry in atlas.experiments.values():
        hit = Hit("experiment", entry.name, entry.title, experiment_address(entry.name))
        yield hit, f"{entry.name.replace('_', ' ')} {entry.title} {entry.text} {entry.room} {' '.join(entry.covers)}"
    for probe in atlas.probes.values():
        yield (
            Hit("probe", probe.name, probe.title, probe_address(probe.name)),
            f"{probe.title} {probe.text} {probe.room}",
        )
    for row in atlas.rows.values():
        text = f"{row.title} {row.formula} {row.about} {row.source} {row.subject} {' '.join(row.symbols)}"
        yield Hit(row.kind, row.id, row.title, row_address(row)), text
    for mark in atlas.marks:
        first = mark.statement.split("\n\n")[0].replace("\n", " ")
        text = f"{mark.statement} {mark.printed} {mark.right} {' '.join(mark.ids)} {mark.room}"
        yield Hit(mark.kind, mark.name.replace("_", " "), first, claim_address(mark)), text
