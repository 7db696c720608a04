"""Search by id, name, word and formula, independent of notation; every result links to an existing page."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from lab.conftest import StartLab
from lab.wire import Wire
from parnassus.atlas.index import Atlas
from parnassus.lab.search import SearchHit, SearchIndex, normalise_text

ATLAS = Atlas()
INDEX = SearchIndex(ATLAS)


def first_hit(query: str) -> SearchHit:
    return INDEX.find(query)[0]


def test_every_id_name_and_title_is_found() -> None:
    """A search for a name has an entry with this name as its first result."""
    names = [*ATLAS.rows, *ATLAS.experiments, *ATLAS.probes, *(mark.name for mark in ATLAS.marks)]
    assert len(names) > 500
    for name in names:
        query = name.replace("_", " ") if name in {mark.name for mark in ATLAS.marks} else name
        assert first_hit(query).name == query


@pytest.mark.parametrize("query", ["b4.3-4", "B4.3-4", "  B4.3-4  "])
def test_ids_are_found_independent_of_case_and_spaces(query: str) -> None:
    assert first_hit(query).name == "B4.3-4"
    assert first_hit(query).address == "/subjects/latent#B4.3-4"


def test_id_prefix_finds_all_matching_ids() -> None:
    hits = INDEX.find("B4.3")
    assert len(hits) == 40
    assert hits[0].name.startswith("B4.3")


WORDS = [("pca digits", "pca_on_digits"), ("DIGITS classifier", "classifier_on_digits")]


@pytest.mark.parametrize(("query", "name"), WORDS)
def test_all_words_must_match_in_any_order(query: str, name: str) -> None:
    assert name in [hit.name for hit in INDEX.find(query)]
    assert INDEX.find(f"{query} zzzz") == []


def test_normalisation_ignores_accents_indices_and_alphabets() -> None:
    pairs = [
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
    ]
    assert [pair for pair in pairs if normalise_text(pair[0]) != normalise_text(pair[1])] == []


def test_normalisation_is_idempotent() -> None:
    for text in ("Wᵀ", "ℝⁿ", "𝔼", "ᾱ_t", "İ", "ﬁ", "½", "ß", "Å"):
        assert normalise_text(normalise_text(text)) == normalise_text(text)


def test_formulas_are_found_by_a_part() -> None:
    with_formula = [row for row in ATLAS.rows.values() if "ᾱ" in row.formula]
    assert with_formula
    for query in ("√ᾱ_t", "√α_t", "√αt"):
        hits = INDEX.find(query, max_hits=10_000)
        assert {row.id for row in with_formula if "√ᾱ_t" in row.formula} <= {hit.name for hit in hits}


def test_transpose_is_found_by_the_letter_t() -> None:
    rows = {row.id for row in ATLAS.rows.values() if "Wᵀ" in row.formula}
    assert rows
    assert rows <= {hit.name for hit in INDEX.find("W^T", max_hits=10_000)}
    assert rows <= {hit.name for hit in INDEX.find("wᵀ", max_hits=10_000)}


def test_empty_and_unknown_queries_have_no_results() -> None:
    queries = ["", "   ", "_^{}", "zzzz-no-such-thing", "\0", "<script>", "x" * 10_000, "́"]
    assert [query for query in queries if INDEX.find(query)] == []


def test_results_are_ranked_and_limited() -> None:
    names = [hit.name for hit in INDEX.find("diffusion")]
    assert len(names) == 40
    starts = [normalise_text(name).startswith("diffusion") for name in names]
    assert starts == sorted(starts, reverse=True)  # names that begin with the query come first
    assert len(INDEX.find("a", max_hits=7)) == 7


@pytest.mark.network
def test_every_result_links_to_a_page_that_contains_it(start_lab: StartLab, tmp_path: Path) -> None:
    lab = start_lab(tmp_path)
    hits = [hit for query in ("a", "e", "i", "o", "1") for hit in INDEX.find(query, max_hits=100_000)]
    expected: dict[str, set[str]] = {}
    for hit in hits:
        parts = urlsplit(hit.address)
        expected.setdefault(parts.path, set()).add(unquote(parts.fragment))
    assert {path.split("/")[1] for path in expected} == {"subjects", "experiments", "claims", "errata", "probes"}
    with Wire(lab.port) as wire:
        for path, anchors in expected.items():
            response = wire.request(path)
            assert response.status == 200, path
            source = response.body.decode()
            for anchor in filter(None, anchors):
                assert f'"id":"{anchor}"' in source, f"{path}#{anchor}"
    lab.stop()
