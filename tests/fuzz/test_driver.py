"""The driver of the fuzz tests finds what it looks for."""

from pathlib import Path

import pytest

from fuzz import driver
from fuzz.driver import Case, Outcome, Sandbox, case_numbers, run_cases


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    return Sandbox(tmp_path / "sandbox").create()


def failures(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, main: object) -> str:
    """What the driver reports about one case whose command is `main`."""
    monkeypatch.setattr(driver, "main", main)
    monkeypatch.setattr(driver, "CASES", 1)
    return "".join(run_cases("kind", 1.0, lambda random: Case("label", ["verb"]), sandbox))


def test_tracebacks_exit_codes_and_hangs_are_reported(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "MAX_SECONDS", 0.05)

    def fail() -> None:
        raise KeyError("an internal error")

    def leave(code: int) -> None:
        raise SystemExit(code)

    def hang() -> None:
        while True:
            pass

    assert "KeyError: 'an internal error'" in failures(sandbox, monkeypatch, fail)
    assert "exit code 3" in failures(sandbox, monkeypatch, lambda: leave(3))
    assert "exit code 2 without a sentence" in failures(sandbox, monkeypatch, lambda: leave(2))
    assert "hangs for more than 0.05 s" in failures(sandbox, monkeypatch, hang)
    assert failures(sandbox, monkeypatch, lambda: leave(0)) == ""


def test_writes_outside_the_sandbox_fail_and_are_reported(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    target = sandbox.root.parent / "target"
    link = sandbox.work / "link"
    link.symlink_to(target)

    def write(path: Path) -> None:
        try:
            path.write_text("x")
        except PermissionError:
            raise SystemExit(0) from None

    for path in (target, link, sandbox.work / ".." / ".." / ".." / ".." / "target"):
        assert "wrote outside the folder: open" in failures(sandbox, monkeypatch, lambda path=path: write(path))
        assert not target.exists()
    assert "changed files outside" in failures(sandbox, monkeypatch, lambda: write(sandbox.outside / "canary.txt"))
    assert failures(sandbox, monkeypatch, lambda: write(sandbox.work / "file")) == ""


def test_pieces_contain_every_case_once(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[int] = []
    for first in range(0, 2_000, 500):
        monkeypatch.setattr(driver, "FIRST", first)
        monkeypatch.setattr(driver, "CASES", 500)
        found += case_numbers(0.003)
    assert found == list(range(6))


def test_a_sentence_is_not_a_failure() -> None:
    assert Outcome(2, "", "parnassus: the rule; got 3\n").problem == ""
    assert "a message of 13 lines" in Outcome(2, "", "parnassus: x\n" + "y\n" * 12).problem
