"""The atlas joins rows, claims and experiments, and finds them by prefix."""

from pathlib import Path

import pytest

from parnassus.atlas import reading, store
from parnassus.atlas.catalogue import is_part_of
from parnassus.atlas.declarations import Command, Entry, Mark
from parnassus.atlas.index import (
    AmbiguousError,
    Atlas,
    UnknownError,
    index_by_name,
    load_atlas,
    nearest_names,
    resolve,
    run_mark,
)


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
    with pytest.raises(AmbiguousError, match="'va' is ambiguous; it matches vae, vae_on_digits"):
        atlas.experiment("va")


def test_unknown_experiment_raises_with_suggestion(atlas: Atlas) -> None:
    with pytest.raises(UnknownError, match=r"unknown experiment: 'wawe' \(did you mean wave.*; see: parnassus list"):
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
        assert all(is_part_of(name, row_id) for row_id in chapter.empty)


def test_rooms_include_all_subjects_and_packages_with_rows(atlas: Atlas) -> None:
    assert set(atlas.subjects) <= set(atlas.rooms)
    assert {"data", "metrics", "games"} <= set(atlas.rooms)  # the lab has a page for each
    assert {mark.room for mark in Atlas().marks} <= set(atlas.rooms)
    assert atlas.rooms == sorted(set(atlas.rooms))


def test_rows_of_an_experiment_and_of_a_room(atlas: Atlas) -> None:
    assert [row.id for row in atlas.rows_of(make_entry("vae", "B1.1-1", "B99"))] == ["B1.1-1"]
    assert {row.subject for row in atlas.rows_in("latent")} == {"latent"}
    assert atlas.rows_in("nowhere") == []


def test_resolve_finds_modules_classes_and_methods() -> None:
    assert resolve("parnassus.atlas.index.Atlas") is Atlas
    assert resolve("parnassus.atlas.index.Atlas.experiment") is Atlas.experiment
    assert getattr(resolve("parnassus.atlas.index"), "Atlas") is Atlas  # noqa: B009 - resolve returns an object
    with pytest.raises(AttributeError):
        resolve("parnassus.atlas.index.Nothing")


def test_claim_without_evidence_raises_type_error() -> None:
    with pytest.raises(TypeError, match="must return Evidence or Correction; got list"):
        run_mark(Mark("claim", "row_files", "parnassus.atlas.catalogue", ("B1.1-1",), "Files are no evidence."))


def test_nearest_names_are_distinct() -> None:
    assert nearest_names("latnt", ["latent", "latent", "games"]) == " (did you mean latent?)"
    assert nearest_names("on_digits", ["vae_on_digits_again_and_again", "other"]).startswith(" (did you mean vae_on")
    assert nearest_names("qqqq", ["latent"]) == ""


def test_names_that_are_declared_twice_raise_value_error() -> None:
    first, second = (Command("play", f"parnassus.{room}.commands", "Play a game.") for room in ("games", "music"))
    assert index_by_name("verb", [("play", first), ("watch", second)]) == {"play": first, "watch": second}
    message = "the verb 'play' is declared in parnassus.games.commands and in parnassus.music.commands"
    with pytest.raises(ValueError, match=message):
        index_by_name("verb", [("play", first), ("play", second)])


@pytest.mark.parametrize(
    ("kind", "files", "content"),
    [
        ("experiments", "experiments/same.py", '"""A title."""\n'),
        ("probes", "probes/views.py", "@probe()\ndef same():\n    ...\n"),
        ("commands", "commands/__init__.py", 'COMMANDS = {"same": "One line."}\n'),
    ],
)
def test_rooms_may_not_share_names(
    kind: str, files: str, content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for room in ("one", "two"):
        (tmp_path / room / files).parent.mkdir(parents=True)
        (tmp_path / room / files).write_text(content, encoding="utf-8")
    find = {"experiments": "experiment_files", "probes": "probe_files", "commands": "command_files"}[kind]
    paths = getattr(reading, find)(tmp_path)
    assert len(paths) == 2
    monkeypatch.setattr(reading, find, lambda: paths)
    monkeypatch.setattr(store, "cache_folder", lambda: tmp_path / "cache")
    with pytest.raises(ValueError, match=r"'same' is declared in parnassus\.one\..* and in parnassus\.two\."):
        getattr(Atlas(), kind)


def test_process_has_one_atlas() -> None:
    assert load_atlas() is load_atlas()
