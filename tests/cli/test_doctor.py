"""`doctor` reports installed packages, devices, data, and how to install what is missing."""

import importlib.metadata

import pytest

from parnassus.cli.main import dispatch
from parnassus.data import data_status


def test_required_packages_are_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["doctor"]) == 0
    printed = capsys.readouterr().out
    for package in ("torch", "numpy", "matplotlib", "tyro"):
        assert f"{package} " in printed
        assert importlib.metadata.version(package) in printed
    assert "cpu: " in printed
    for status in data_status():
        assert status.name in printed
    assert "PARNASSUS_DATA" in printed


def test_missing_packages_are_reported_with_the_install_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    version = importlib.metadata.version

    def version_or_missing(name: str) -> str:
        if name in ("pooch", "nicegui"):
            raise importlib.metadata.PackageNotFoundError(name)
        return version(name)

    requirements = ["torch>=2.11", "pooch>=1.8", "nicegui>=2 ; extra == 'lab'", "ruff ; extra == 'dev'"]
    monkeypatch.setattr(importlib.metadata, "version", version_or_missing)
    monkeypatch.setattr(importlib.metadata, "requires", lambda _: requirements)
    assert dispatch(["doctor"]) == 1
    printed = " ".join(capsys.readouterr().out.split())
    assert "missing: pip install 'pooch>=1.8'" in printed
    assert "missing: pip install 'parnassus[lab]'" in printed
    assert "ruff" not in printed


def test_doctor_works_without_installation(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def not_found(name: str) -> list[str]:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "requires", not_found)
    assert dispatch(["doctor"]) == 0
    assert "not installed" in capsys.readouterr().out
