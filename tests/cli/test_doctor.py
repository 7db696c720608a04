"""`doctor` says what is here and how to get what is not."""

import importlib.metadata

import pytest

from parnassus.cli.main import dispatch
from parnassus.data import data_status


def test_everything_the_core_needs_is_here(capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["doctor"]) == 0
    printed = capsys.readouterr().out
    for package in ("torch", "numpy", "matplotlib", "tyro"):
        assert f"{package} " in printed
        assert importlib.metadata.version(package) in printed
    assert "cpu: " in printed
    for status in data_status():
        assert status.name in printed
    assert "PARNASSUS_DATA" in printed


def test_a_missing_package_is_named_with_the_command_that_gets_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    version = importlib.metadata.version

    def without(name: str) -> str:
        if name in ("pooch", "nicegui"):
            raise importlib.metadata.PackageNotFoundError(name)
        return version(name)

    needed = ["torch>=2.11", "pooch>=1.8", "nicegui>=2 ; extra == 'lab'", "ruff ; extra == 'dev'"]
    monkeypatch.setattr(importlib.metadata, "version", without)
    monkeypatch.setattr(importlib.metadata, "requires", lambda _: needed)
    assert dispatch(["doctor"]) == 1
    printed = " ".join(capsys.readouterr().out.split())
    assert "missing: pip install 'pooch>=1.8'" in printed
    assert "missing: pip install 'parnassus[lab]'" in printed
    assert "ruff" not in printed


def test_it_answers_without_being_installed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def unknown(name: str) -> list[str]:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "requires", unknown)
    assert dispatch(["doctor"]) == 0
    assert "not installed" in capsys.readouterr().out
