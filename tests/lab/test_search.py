"""Search: by id, name, word and formula, however it is written; every hit leads to a page."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from lab.conftest import StartLab
from lab.wire import Wire
from parnassus.atlas.index import Atlas
from parnassus.lab.search import Hit, Index, folded

ATLAS = Atlas()
INDEX = Index(ATLAS)


def first(query: str) -> Hit:
    return INDEX.find(query)[0]


def test_every_id_name_and_title_is_found() -> None:
    """Whatever has a name comes first when one searches for it, or only after its namesakes."""
    names = [*ATLAS.rows, *ATLAS.experiments, *ATLAS.probes, *(mark.name for mark in ATLAS.marks)]
    assert len(names) > 500
    for name in names:
        shown = name.replace("_", " ") if name in {mark.name for mark in ATLAS.marks} else name
        assert first(shown).name == shown


@pytest.mark.parametrize("query", ["b4.3-4", "B4.3-4", "  B4.3-4  "])
def test_an_id_is_found_however_it_is_typed(query: str) -> None:
    assert first(query).name == "B4.3-4"
    assert first(query).address == "/subjects/latent#B4.3-4"


def test_a_part_of_an_id_finds_what_begins_with_it() -> None:
    hits = INDEX.find("B4.3")
    assert len(hits) == 40
    assert hits[0].name.startswith("B4.3")


WORDS = [("pca digits", "pca_on_digits"), ("DIGITS classifier", "classifier_on_digits")]


@pytest.mark.parametrize(("query", "name"), WORDS)
def test_all_words_must_be_there_in_any_order(query: str, name: str) -> None:
    assert name in [hit.name for hit in INDEX.find(query)]
    assert INDEX.find(f"{query} zzzz") == []


@pytest.mark.parametrize(
    ("query", "written"),
    [
        ("√ᾱ_t", "√α_t"),
        ("ᾱ_t", "αt"),
        ("x_{t-1}", "xt-1"),
        ("É", "e"),
        ("x²", "x2"),
        ("σ²", "σ^2"),
        ("Wᵀ", "W^T"),
        ("ℝ", "r"),
        ("𝒩", "n"),
        ("ϵ", "ε"),
        ("Straße", "STRASSE"),
        ("a \n\t b", "a b"),
    ],
)
def test_accents_indices_and_alphabets_make_no_difference(query: str, written: str) -> None:
    assert folded(query) == folded(written)


@pytest.mark.parametrize("text", ["Wᵀ", "ℝⁿ", "𝔼", "ᾱ_t", "İ", "ﬁ", "½", "ß", "Å"])
def test_folding_twice_is_folding_once(text: str) -> None:
    assert folded(folded(text)) == folded(text)


def test_a_formula_is_found_by_a_part_of_it() -> None:
    with_formula = [row for row in ATLAS.rows.values() if "ᾱ" in row.formula]
    assert with_formula
    for query in ("√ᾱ_t", "√α_t", "√αt"):
        found = INDEX.find(query, most=10_000)
        assert {row.id for row in with_formula if "√ᾱ_t" in row.formula} <= {hit.name for hit in found}


def test_a_transpose_is_found_by_the_letter_t() -> None:
    rows = {row.id for row in ATLAS.rows.values() if "Wᵀ" in row.formula}
    assert rows
    assert rows <= {hit.name for hit in INDEX.find("W^T", most=10_000)}
    assert rows <= {hit.name for hit in INDEX.find("wᵀ", most=10_000)}


@pytest.mark.parametrize("query", ["", "   ", "_^{}", "zzzz-no-such-thing", "\0", "<script>", "x" * 10_000, "́"])
def test_nothing_is_found_for_nothing(query: str) -> None:
    assert INDEX.find(query) == []


def test_the_best_comes_first_and_the_list_is_short() -> None:
    names = [hit.name for hit in INDEX.find("diffusion")]
    assert len(names) == 40
    starts = [folded(name).startswith("diffusion") for name in names]
    assert starts == sorted(starts, reverse=True)  # names that begin with it, before those that only hold it
    assert len(INDEX.find("a", most=7)) == 7


@pytest.mark.network
def test_every_hit_leads_to_a_page_that_has_it(start_lab: StartLab, tmp_path: Path) -> None:
    lab = start_lab(tmp_path)
    hits = [hit for query in ("a", "e", "i", "o", "1") for hit in INDEX.find(query, most=100_000)]
    wanted: dict[str, set[str]] = {}
    for hit in hits:
        parts = urlsplit(hit.address)
        wanted.setdefault(parts.path, set()).add(unquote(parts.fragment))
    assert {path.split("/")[1] for path in wanted} == {"subjects", "experiments", "claims", "errata", "probes"}
    with Wire(lab.port) as wire:
        for path, anchors in wanted.items():
            answer = wire.ask(path)
            assert answer.status == 200, path
            source = answer.body.decode()
            for anchor in filter(None, anchors):
                assert f'"id":"{anchor}"' in source, f"{path}#{anchor}"
    lab.stop()
