"""Every experiment follows the conventions, and its smoke profile writes a report."""

import importlib
import re
from dataclasses import fields
from html import unescape
from math import isfinite
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from parnassus.atlas.declarations import Entry
from parnassus.atlas.index import Atlas
from parnassus.atlas.settings import check_limits
from parnassus.cli.run import Launch, find_recipe, with_profile
from parnassus.cli.sample import AnimationOptions, CompileOptions, SampleOptions, draw_samples
from parnassus.cli.tables import TableOptions
from parnassus.report.page import split_title
from parnassus.runs import RunFolder
from parnassus.train import Options
from parnassus.train.execute import execute, start
from parnassus.train.sample_predict_evaluate import TextSample
from parnassus.train.trained import TrainedRun

ATLAS = Atlas()
ENTRIES = list(ATLAS.experiments.values())
REFERENCE = re.compile(r"\((?:book|Diehl|Zhao) (?:eqs?|thm|lem|alg|def|figs?|ex|secs?|ch)\. \d")


def test_experiments_and_marks_are_found() -> None:
    assert len(ENTRIES) >= 10
    assert len(ATLAS.marks) >= 60
    assert {mark.kind for mark in ATLAS.marks} == {"claim", "erratum"}
    assert any("sample" in entry.verbs for entry in ENTRIES)


@pytest.fixture(params=ENTRIES, ids=lambda entry: entry.name)
def entry(request: pytest.FixtureRequest) -> Entry:
    chosen = request.param
    assert isinstance(chosen, Entry)
    return chosen


@pytest.fixture(autouse=True)
def standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line of text, for experiments whose `Sample` reads standard input."""
    monkeypatch.setattr("sys.stdin", ["der hund sieht die katze.\n"])


@pytest.fixture
def module(entry: Entry) -> ModuleType:
    return importlib.import_module(entry.module)


def test_titles_have_a_reference_and_covered_rows_exist() -> None:
    for each in ENTRIES:
        assert REFERENCE.search(each.title), each.title
        assert len(each.title) <= 120, each.title
        assert each.covers, each.name
        assert set(each.covers) <= set(ATLAS.rows), each.name


def test_every_result_has_a_description() -> None:
    for each in ENTRIES:
        assert each.expected, each.name
        assert all(band.about for band in each.expected.values()), each.name


def test_profiles_are_presets_of_settings() -> None:
    for each in ENTRIES:
        assert "smoke" in each.profiles, each.name
        assert set(each.profiles) <= {"smoke", "gpu"}, each.name
        for profile in ("laptop", *each.profiles):
            check_limits(each.settings, with_profile(each, profile))


def test_flags_have_help_and_default_and_unique_names() -> None:
    reserved = {field.name for kind in (Options, Launch) for field in fields(kind)}
    options = {
        "sample": (CompileOptions, AnimationOptions),
        "predict": (TableOptions,),
        "evaluate": (TableOptions,),
    }
    for each in ENTRIES:
        assert all(setting.help and setting.default for setting in each.settings), each.name
        assert not reserved & {setting.name for setting in each.settings}, each.name
        for verb, declared in each.verb_settings.items():
            of_verb = {field.name for kind in options[verb] for field in fields(kind)}
            assert not of_verb & {setting.name for setting in declared}, each.name
            assert all(setting.help and setting.default for setting in declared), each.name


def test_smoke_profile_writes_a_report(entry: Entry, module: ModuleType, tmp_path: Path) -> None:
    experiment = with_profile(entry, "smoke")
    recipe = find_recipe(ATLAS, entry, experiment, "smoke")
    options = Options(device="cpu", quiet=True)
    folder = start(recipe, options, tmp_path)
    results = execute(recipe, options, folder)
    assert set(recipe.expected) == set(results)
    assert all(isfinite(value) for value in results.values()), results
    assert folder.status == "finished"
    check_report((folder.path / "report.html").read_text(encoding="utf-8"), entry.title)
    if entry.verbs and hasattr(experiment, "model"):
        assert not TrainedRun.open(folder).model.training
    if "sample" in entry.verbs:
        check_samples(folder, module)


def check_report(html: str, title: str) -> None:
    """Check that the page shows the title and a figure, and loads no external resources."""
    assert all(part in unescape(html) for part in split_title(title))
    assert "<svg" in html
    links = re.findall(r"""(?:src|href)\s*=\s*["']([^"']*)""", html) + re.findall(r"url\(([^)]*)\)", html)
    assert all(link.startswith(("#", "data:")) for link in links)
    assert re.findall(r"https?://\S*", re.sub(r'xmlns(:\w+)?="[^"]*"', "", html)) == []


def check_samples(folder: RunFolder, module: ModuleType) -> None:
    """Check that samples, also of text, depend on the seed only."""
    first, repeated, other = (
        draw_samples(TrainedRun.open(folder), module.Sample(), SampleOptions(seed, "cpu", folder.path / name))
        for seed, name in ((0, "first"), (0, "again"), (1, "other"))
    )
    if isinstance(module.Sample(), TextSample):
        texts = [Path(f"{path}.txt").read_text(encoding="utf-8") for path in (first, repeated, other)]
        assert texts[0] == texts[1]
        assert (texts[0] != texts[2]) is hasattr(
            module.Sample(), "temperature"
        )  # without temperature, decoding is deterministic
        return
    samples = [np.load(f"{path}.npy") for path in (first, repeated, other)]
    assert np.isfinite(samples[0]).all()
    assert np.array_equal(samples[0], samples[1])
    assert not np.array_equal(samples[0], samples[2])
    assert (folder.path / "first.png").stat().st_size > 0
