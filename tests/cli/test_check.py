"""`check` runs what it was asked for, nothing else, and says what holds."""

import pytest

from parnassus.atlas import Correction, Evidence, all_of, close, less_equal
from parnassus.atlas.catalogue import part_of
from parnassus.atlas.index import Atlas
from parnassus.atlas.reading import Mark
from parnassus.cli.main import dispatch

ATLAS = Atlas()


@pytest.fixture
def examined(monkeypatch: pytest.MonkeyPatch) -> list[Mark]:
    """The marks that were examined; every one of them holds at once."""
    asked: list[Mark] = []

    def examine(mark: Mark) -> Evidence | Correction:
        asked.append(mark)
        return close(1.0, 1.0)

    monkeypatch.setattr("parnassus.cli.check.examine", examine)
    return asked


def shown(arguments: list[str], capsys: pytest.CaptureFixture[str], code: int = 0) -> str:
    assert dispatch(["check", *arguments]) == code
    return " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("part", ["B1", "B4", "B13", "B1.2-8", "B4.3", "B13.2.5"])
def test_a_part_checks_what_lies_under_it(part: str, examined: list[Mark], capsys: pytest.CaptureFixture[str]) -> None:
    expected = [mark for mark in ATLAS.marks if any(part_of(part, row_id) for row_id in mark.ids)]
    assert expected
    text = shown([part], capsys)
    assert examined == expected
    assert f"{len(expected)} of {len(expected)} hold" in text


def test_chapter_one_never_touches_chapter_thirteen(examined: list[Mark], capsys: pytest.CaptureFixture[str]) -> None:
    shown(["B1"], capsys)
    assert not [mark.name for mark in examined if all(part_of("B13", row_id) for row_id in mark.ids)]


def test_rooms_and_names_can_be_asked_for_and_nothing_runs_twice(
    examined: list[Mark], capsys: pytest.CaptureFixture[str]
) -> None:
    name = next(mark.name for mark in ATLAS.marks if mark.room == "losses")
    shown(["losses", name, "optim"], capsys)
    assert len(examined) == len(set(examined))
    assert {mark.room for mark in examined} == {"losses", "optim"}


def test_without_parts_everything_is_checked(examined: list[Mark], capsys: pytest.CaptureFixture[str]) -> None:
    shown([], capsys)
    assert examined == ATLAS.marks


def test_rows_without_claims_are_no_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    bare = next(row.id for row in ATLAS.rows.values() if not ATLAS.claims_of(row.id))
    assert shown([bare], capsys) == f"nothing to check under {bare} yet"


def test_real_claims_are_run_and_their_numbers_shown(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(["B4.1-1"], capsys)
    assert text.startswith("id statement measured and predicted ✓ B4.1-1 ")
    assert " hold (" in text


CLAIM = Mark("claim", "one", "parnassus.latent.claims.one", ("B1.1-1",), "E[x | y] is a\nmean.\n\nMore.")
ERRATUM = Mark("erratum", "two", "parnassus.latent.claims.two", ("B1.1-2",), "It forgets [/] a root.", "x", "√x")


def outcome(mark: Mark) -> Evidence | Correction:
    if mark == CLAIM:
        return all_of(first=close(1.0, 1.0), second_part=less_equal(3.0, 2.0))
    if mark == ERRATUM:
        return Correction(printed=close(1.0, 2.0), corrected=close(1.0, 1.0))
    raise RuntimeError("no weight called [bias] is here")


@pytest.fixture
def three(monkeypatch: pytest.MonkeyPatch) -> None:
    crash = Mark("claim", "three", "parnassus.latent.claims.three", ("B1.2-1",), "Crashes.")
    monkeypatch.setattr(Atlas, "marks", [CLAIM, ERRATUM, crash])
    monkeypatch.setattr("parnassus.cli.check.examine", outcome)


@pytest.mark.usefixtures("three")
def test_what_fails_is_shown_and_gives_code_1(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown([], capsys, code=1)
    assert "1 of 3 hold" in text
    assert text.count("✗") == 3  # the claim, its part, and the one that crashed
    assert "✗ second part: 3 ≤ 2" in text


@pytest.mark.usefixtures("three")
def test_a_claim_that_crashes_does_not_hold_and_does_not_stop_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    assert "RuntimeError: no weight called [bias] is here" in shown([], capsys, code=1)


@pytest.mark.usefixtures("three")
def test_brackets_of_formulas_are_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown([], capsys, code=1)
    assert "E[x | y] is a mean. first: 1 = 1" in text
    assert "erratum: It forgets [/] a root." in text


@pytest.mark.usefixtures("three")
def test_an_erratum_shows_both_sides(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(["B1.1-2"], capsys)
    assert "printed: 1 = 2" in text
    assert "right: 1 = 1" in text
    assert "1 of 1 hold" in text


@pytest.mark.usefixtures("three")
def test_only_what_failed_can_be_shown(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(["--failed"], capsys, code=1)
    assert "B1.1-1" in text
    assert "B1.1-2" not in text
    assert "1 of 3 hold" in text
