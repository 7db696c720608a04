"""The atlas joins rows, claims and experiments, and finds them by prefix."""

import pytest

from parnassus.atlas.catalogue import part_of
from parnassus.atlas.index import AmbiguousError, Atlas, UnknownError, examine, nearest, resolve
from parnassus.atlas.reading import Entry, Mark


def make_entry(name: str, *covers: str) -> Entry:
    return Entry(name, f"parnassus.latent.experiments.{name}", name, "", covers, {}, {}, ())


@pytest.fixture
def atlas() -> Atlas:
    """The real rows with synthetic claims and experiments."""
    index = Atlas()
    index.marks = [
        Mark("claim", "one_holds", "parnassus.latent.claims", ("B1.1-1",), "One."),
        Mark(
            "erratum", "two_is_wrong", "parnassus.optim.claims.learning_rates", ("B13.1-1", "B1.1-2"), "Two.", "2", "3"
        ),
    ]
    entries = [make_entry("vae", "B1.1-1"), make_entry("vae_on_digits"), make_entry("wave", "B1.1-1")]
    index.experiments = {each.name: each for each in entries}
    return index


def test_experiments_are_found_by_unambiguous_prefix(atlas: Atlas) -> None:
    assert atlas.experiment("vae").name == "vae"
    assert atlas.experiment("vae_").name == "vae_on_digits"
    assert atlas.experiment("w").name == "wave"


def test_ambiguous_prefix_raises_with_candidates(atlas: Atlas) -> None:
    with pytest.raises(AmbiguousError, match="'va' could be any of vae, vae_on_digits"):
        atlas.experiment("va")


def test_unknown_experiment_raises_with_suggestion(atlas: Atlas) -> None:
    with pytest.raises(UnknownError, match=r"no experiment 'wawe' \(did you mean wave.*\?\); see: parnassus list"):
        atlas.experiment("wawe")


def test_marks_are_found_by_part_room_and_name(atlas: Atlas) -> None:
    def names(part: str) -> list[str]:
        return [mark.name for mark in atlas.marks_of(part)]

    assert names("B1") == ["one_holds", "two_is_wrong"]
    assert names("B1.1-1") == ["one_holds"]
    assert names("B13") == ["two_is_wrong"]
    assert names("latent") == ["one_holds"]
    assert names("two_is_wrong") == ["two_is_wrong"]
    assert names("B2") == []  # rows and rooms without claims are allowed
    assert names("games") == []


def test_unknown_part_raises_with_suggestion(atlas: Atlas) -> None:
    with pytest.raises(UnknownError, match=r"'latnt' is not an id.* \(did you mean latent"):
        atlas.marks_of("latnt")


def test_rows_are_joined_with_claims_and_experiments(atlas: Atlas) -> None:
    assert [mark.name for mark in atlas.claims_of("B1.1-2")] == ["two_is_wrong"]
    assert [each.name for each in atlas.experiments_of("B1.1-1")] == ["vae", "wave"]


def test_chapters_count_each_claim_and_experiment_once(atlas: Atlas) -> None:
    chapters = {chapter.name: chapter for chapter in atlas.chapters()}
    assert sum(chapter.rows for chapter in chapters.values()) == len(atlas.rows)
    first = chapters["B1"]
    assert (first.claims, first.errata, first.experiments) == (1, 1, 2)
    assert (chapters["B13"].claims, chapters["B13"].errata, chapters["B13"].experiments) == (0, 1, 0)
    for name, chapter in chapters.items():
        assert chapter.implemented + len(chapter.empty) + chapter.no_code == chapter.rows
        assert all(part_of(name, row_id) for row_id in chapter.empty)


def test_rooms_are_those_of_rows_claims_and_experiments(atlas: Atlas) -> None:
    assert {"latent", "optim", "games"} <= set(atlas.rooms)
    assert atlas.rooms == sorted(set(atlas.rooms))


def test_resolve_finds_modules_classes_and_methods() -> None:
    assert resolve("parnassus.atlas.index.Atlas") is Atlas
    assert resolve("parnassus.atlas.index.Atlas.experiment") is Atlas.experiment
    assert getattr(resolve("parnassus.atlas.index"), "Atlas") is Atlas  # noqa: B009 - resolve returns an object
    with pytest.raises(AttributeError):
        resolve("parnassus.atlas.index.Nothing")


def test_claim_without_evidence_raises_type_error() -> None:
    with pytest.raises(TypeError, match="must return Evidence or Correction; got list"):
        examine(Mark("claim", "row_files", "parnassus.atlas.catalogue", ("B1.1-1",), "Files are no evidence."))


def test_nearest_names_are_distinct() -> None:
    assert nearest("latnt", ["latent", "latent", "games"]) == " (did you mean latent?)"
    assert nearest("on_digits", ["vae_on_digits_again_and_again", "other"]).startswith(" (did you mean vae_on")
    assert nearest("qqqq", ["latent"]) == ""
