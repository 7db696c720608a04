"""`check` evaluates the selected claims only and reports the results."""

import pytest

from parnassus.atlas import Correction, Evidence, all_of, close, less_equal, runs
from parnassus.atlas.catalogue import is_part_of
from parnassus.atlas.declarations import Mark
from parnassus.atlas.index import Atlas, load_atlas
from parnassus.cli.check import run_claim
from parnassus.cli.main import dispatch

ATLAS = Atlas()


@pytest.fixture
def examined(monkeypatch: pytest.MonkeyPatch) -> list[Mark]:
    """Record the examined marks; all of them hold."""
    marks: list[Mark] = []

    def examine(mark: Mark) -> Evidence | Correction:
        marks.append(mark)
        return close(1.0, 1.0)

    monkeypatch.setattr("parnassus.cli.check.run_mark", examine)
    return marks


def check_output(arguments: list[str], capsys: pytest.CaptureFixture[str], code: int = 0) -> str:
    assert dispatch(["check", *arguments]) == code
    return " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("part", ["B1", "B4", "B13", "B1.2-8", "B4.3", "B13.2.5"])
def test_part_selects_the_rows_below_it(part: str, examined: list[Mark], capsys: pytest.CaptureFixture[str]) -> None:
    expected = [mark for mark in ATLAS.marks if any(is_part_of(part, row_id) for row_id in mark.ids)]
    assert expected
    text = check_output([part], capsys)
    assert examined == expected
    assert f"{len(expected)} of {len(expected)} hold" in text


def test_chapter_one_does_not_match_chapter_thirteen(examined: list[Mark], capsys: pytest.CaptureFixture[str]) -> None:
    check_output(["B1"], capsys)
    assert not [mark.name for mark in examined if all(is_part_of("B13", row_id) for row_id in mark.ids)]


def test_rooms_and_names_are_selected_without_duplicates(
    examined: list[Mark], capsys: pytest.CaptureFixture[str]
) -> None:
    name = next(mark.name for mark in ATLAS.marks if mark.room == "losses")
    check_output(["losses", name, "optim"], capsys)
    assert len(examined) == len(set(examined))
    assert {mark.room for mark in examined} == {"losses", "optim"}


def test_all_claims_are_checked_by_default(examined: list[Mark], capsys: pytest.CaptureFixture[str]) -> None:
    check_output([], capsys)
    assert examined == ATLAS.marks


def test_rows_without_claims_are_accepted(capsys: pytest.CaptureFixture[str]) -> None:
    row_id = next(row.id for row in ATLAS.rows.values() if not ATLAS.claims_of(row.id))
    assert check_output([row_id], capsys) == f"no claims for {row_id} yet"


def test_claims_are_evaluated_and_numbers_printed(capsys: pytest.CaptureFixture[str]) -> None:
    text = check_output(["B4.1-1"], capsys)
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
def three_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    crash = Mark("claim", "three", "parnassus.latent.claims.three", ("B1.2-1",), "Crashes.")
    monkeypatch.setattr(load_atlas(), "marks", [CLAIM, ERRATUM, crash])
    monkeypatch.setattr("parnassus.cli.check.run_mark", outcome)


@pytest.mark.usefixtures("three_marks")
def test_failures_are_printed_with_exit_code_1(capsys: pytest.CaptureFixture[str]) -> None:
    text = check_output([], capsys, code=1)
    assert "1 of 3 hold" in text
    assert text.count("✗") == 3  # the claim, its part, and the one that crashed
    assert "✗ second part: 3 ≤ 2" in text


@pytest.mark.usefixtures("three_marks")
def test_crashing_claim_fails_without_stopping_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    assert "RuntimeError: no weight called [bias] is here" in check_output([], capsys, code=1)


@pytest.mark.usefixtures("three_marks")
def test_brackets_of_formulas_are_not_markup(capsys: pytest.CaptureFixture[str]) -> None:
    text = check_output([], capsys, code=1)
    assert "E[x | y] is a mean. first: 1 = 1" in text
    assert "erratum: It forgets [/] a root." in text


@pytest.mark.usefixtures("three_marks")
def test_erratum_prints_both_formulas(capsys: pytest.CaptureFixture[str]) -> None:
    text = check_output(["B1.1-2"], capsys)
    assert "printed value fails: 1 ≠ 2" in text
    assert "corrected value holds: 1 = 1" in text
    assert "1 of 1 hold" in text


@pytest.mark.parametrize(
    ("printed", "corrected", "shown"),
    [
        (close(1.0, 1.0), close(1.0, 1.0), "✗ printed value holds: 1 = 1"),
        (close(1.0, 2.0), close(1.0, 3.0), "✗ corrected value fails: 1 = 3"),
        (all_of(first=close(1.0, 1.0), second_part=less_equal(3.0, 2.0)), close(1.0, 1.0), "second part: 3 ≰ 2"),
        (runs(lambda: int("x"), unless=ValueError), close(1.0, 1.0), "with base 10: 'x' is not no error"),
    ],
)
def test_erratum_shows_which_side_is_unexpected(printed: Evidence, corrected: Evidence, shown: str) -> None:
    mark = Mark("erratum", "two", "parnassus.latent.claims.two", ("B1.1-2",), "Two.", "x", "y")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("parnassus.cli.check.run_mark", lambda _: Correction(printed, corrected))
        holds, text = run_claim(mark)
    assert shown in text
    assert holds is (corrected.holds and not printed.holds)
    assert "first: " not in text  # of the printed formula only what fails


@pytest.mark.usefixtures("three_marks")
def test_failed_flag_prints_failures_only(capsys: pytest.CaptureFixture[str]) -> None:
    text = check_output(["--failed"], capsys, code=1)
    assert "B1.1-1" in text
    assert "B1.1-2" not in text
    assert "1 of 3 hold" in text
