"""Search in experiments, probes, rows and claims, by words, ids and formulas."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from parnassus.atlas.index import Atlas
from parnassus.lab.addresses import claim_address, experiment_address, probe_address, row_address
from parnassus.report.formatting import display_name


@dataclass(frozen=True)
class SearchHit:
    """A search result: its kind, its name, a summary, and the address of its page."""

    kind: str
    name: str
    line: str
    address: str


class SearchIndex:
    """All entries of the atlas with normalised text; a search scans them."""

    def __init__(self, atlas: Atlas) -> None:
        self._entries = [
            (hit, normalise_text(f"{hit.name} {hit.line}"), normalise_text(f"{hit.name} {text}"))
            for hit, text in _entries(atlas)
        ]

    def find(self, query: str, max_hits: int = 40) -> list[SearchHit]:
        """Entries with every word of the query, ranked: words in the name, in the summary, elsewhere."""
        words = normalise_text(query[:200]).split()
        if not words:
            return []
        ranked = []
        for order, (hit, line, text) in enumerate(self._entries):
            if all(word in text for word in words):
                name = normalise_text(hit.name)
                phrase = " ".join(words)
                rank = 0 if name == phrase else 1 if name.startswith(phrase) else 2 if phrase in name else 3
                rank += 2 * (rank == 3 and not all(word in line for word in words))
                ranked.append((rank, order, hit))
        return [hit for _, _, hit in sorted(ranked, key=lambda entry: entry[:2])[:max_hits]]


def normalise_text(text: str) -> str:
    """Text without case, accents and index markup, so that a search for αt finds ᾱ_t."""
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    plain = "".join(letter for letter in plain if not unicodedata.combining(letter))
    return re.sub(r"\s+", " ", re.sub(r"[_^{}]", "", plain)).strip()


def _entries(atlas: Atlas) -> Iterator[tuple[SearchHit, str]]:
    for entry in atlas.experiments.values():
        hit = SearchHit("experiment", entry.name, entry.title, experiment_address(entry.name))
        yield hit, f"{display_name(entry.name)} {entry.title} {entry.text} {entry.room} {' '.join(entry.covers)}"
    for probe in atlas.probes.values():
        yield (
            SearchHit("probe", probe.name, probe.title, probe_address(probe.name)),
            f"{probe.title} {probe.text} {probe.room}",
        )
    for row in atlas.rows.values():
        text = f"{row.title} {row.formula} {row.about} {row.source} {row.subject} {' '.join(row.symbols)}"
        yield SearchHit(row.kind, row.id, row.title, row_address(row)), text
    for mark in atlas.marks:
        text = f"{mark.statement} {mark.printed} {mark.right} {' '.join(mark.ids)} {mark.room}"
        yield SearchHit(mark.kind, mark.label, mark.summary, claim_address(mark)), text
