"""Every experiment follows the conventions of its file, and its smoke profile runs to a report."""

import importlib
import re
from dataclasses import fields
from html import unescape
from math import isfinite
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from parnassus.atlas.bands import Band
from parnassus.atlas.index import Atlas
from parnassus.atlas.reading import Entry, experiments
from parnassus.cli.run import Launch, recipe_of, with_profile
from parnassus.cli.sample import Draw, Writer, draw_samples
from parnassus.report.page import heading
from parnassus.runs import RunFolder
from parnassus.train import Options
from parnassus.train.execute import execute, start
from parnassus.train.trained import Trained

ATLAS = Atlas()
ENTRIES = experiments()
REFERENCE = re.compile(r"\((?:book|Diehl|Zhao) (?:eqs?|thm|lem|alg|def|figs?|ex|secs?|ch)\. \d")


def test_there_is_something_to_run_and_to_check() -> None:
    assert len(ENTRIES) >= 10
    assert len(ATLAS.marks) >= 60
    assert {mark.kind for mark in ATLAS.marks} == {"claim", "erratum"}
    assert any(entry.generative for entry in ENTRIES)


@pytest.fixture(params=ENTRIES, ids=lambda entry: entry.name)
def entry(request: pytest.FixtureRequest) -> Entry:
    chosen = request.param
    assert isinstance(chosen, Entry)
    return chosen


@pytest.fixture(autouse=True)
def a_line_on_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a sample that takes what it works on from there."""
    monkeypatch.setattr("sys.stdin", ["der hund sieht die katze.\n"])


@pytest.fixture
def module(entry: Entry) -> ModuleType:
    return importlib.import_module(entry.module)


def test_it_has_a_title_with_a_reference_and_covers_rows(entry: Entry) -> None:
    assert REFERENCE.search(entry.title), entry.title
    assert len(entry.title) <= 120
    assert entry.covers
    assert set(entry.covers) <= set(ATLAS.rows)


def test_it_says_what_a_good_run_gives(module: ModuleType) -> None:
    assert module.expected
    assert all(isinstance(band, Band) and band.about for band in module.expected.values())


def test_its_profiles_are_presets_of_its_own_flags(entry: Entry, module: ModuleType) -> None:
    assert "smoke" in entry.profiles
    assert set(entry.profiles) <= {"smoke", "gpu"}
    for profile in ("laptop", *entry.profiles):
        with_profile(module, profile)


def test_its_flags_have_help_and_meet_no_other_flag(entry: Entry, module: ModuleType) -> None:
    for setting in entry.settings:
        assert setting.help, f"--{setting.name} has no help"
        assert setting.default, f"--{setting.name} has no default"
    taken = {field.name for kind in (Options, Launch) for field in fields(kind)}
    assert not taken & {field.name for field in fields(module.Experiment)}
    if entry.generative:
        drawing = {field.name for field in fields(module.Sample)}
        assert not drawing & {field.name for field in fields(Draw)}


def test_its_smoke_profile_runs_to_a_report(entry: Entry, module: ModuleType, tmp_path: Path) -> None:
    experiment = with_profile(module, "smoke")
    recipe = recipe_of(ATLAS, entry, module, experiment, "smoke", as_is=True)
    options = Options(device="cpu", quiet=True)
    folder = start(recipe, options, tmp_path)
    numbers = execute(recipe, options, folder)
    assert set(recipe.expected) == set(numbers)
    assert all(isfinite(value) for value in numbers.values()), numbers
    assert folder.status == "finished"
    check_report((folder.path / "report.html").read_text(encoding="utf-8"), entry.title)
    if entry.generative:
        check_samples(folder, module)


def check_report(html: str, title: str) -> None:
    """The page shows the title and a drawing, and asks for nothing from elsewhere."""
    assert all(part in unescape(html) for part in heading(title))
    assert "<svg" in html
    links = re.findall(r"""(?:src|href)\s*=\s*["']([^"']*)""", html) + re.findall(r"url\(([^)]*)\)", html)
    assert all(link.startswith(("#", "data:")) for link in links)
    assert re.findall(r"https?://\S*", re.sub(r'xmlns(:\w+)?="[^"]*"', "", html)) == []


def check_samples(folder: RunFolder, module: ModuleType) -> None:
    """The same seed draws the same samples from the saved weights, another seed others; of text the same is true."""
    first, again, other = (
        draw_samples(Trained.open(folder), module.Sample(), Draw(seed, "cpu", folder.path / name))
        for seed, name in ((0, "first"), (0, "again"), (1, "other"))
    )
    if isinstance(module.Sample(), Writer):
        words = [Path(f"{path}.txt").read_text(encoding="utf-8") for path in (first, again, other)]
        assert words[0] == words[1]
        assert (words[0] != words[2]) is hasattr(module.Sample(), "temperature")  # without one, nothing is drawn
        return
    drawn = [np.load(f"{path}.npy") for path in (first, again, other)]
    assert np.isfinite(drawn[0]).all()
    assert np.array_equal(drawn[0], drawn[1])
    assert not np.array_equal(drawn[0], drawn[2])
    assert (folder.path / "first.png").stat().st_size > 0
