"""Declarations read from source files match the imported modules."""

import importlib
import inspect
import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from types import FunctionType

import pytest

import parnassus.atlas
from parnassus.atlas import Correction, Evidence, reading
from parnassus.atlas.declarations import RUN_VERBS, Entry, Mark, entry_as_plain, entry_from_plain
from parnassus.atlas.index import Atlas
from parnassus.atlas.reading import read_experiment, read_marks, read_settings
from parnassus.atlas.settings import Setting

ATLAS = Atlas()
MARKS = ATLAS.marks
ENTRIES = list(ATLAS.experiments.values())
IDS = set(ATLAS.rows)
CLAIM_MODULES = sorted({mark.module for mark in MARKS})


def test_every_function_that_returns_evidence_is_marked() -> None:
    kinds: dict[object, str] = {Evidence: "claim", Correction: "erratum"}
    for module in CLAIM_MODULES:
        imported = importlib.import_module(module)
        expected = {}
        for name, function in inspect.getmembers(imported, inspect.isfunction):
            signature = inspect.signature(function)
            is_claim = function.__module__ == module and not name.startswith("_") and not signature.parameters
            if is_claim and signature.return_annotation in kinds:
                expected[name] = kinds[signature.return_annotation], inspect.getdoc(function)
        actual = {mark.name: (mark.kind, mark.statement) for mark in MARKS if mark.module == module}
        assert actual == expected, module


def test_marks_match_the_evaluated_decorators(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluated: dict[str, tuple[tuple[str, ...], str, str]] = {}

    def record(
        *ids: str, printed: str = "", right: str = "", slow: bool = False
    ) -> Callable[[FunctionType], FunctionType]:
        def mark(function: FunctionType) -> FunctionType:
            evaluated[function.__name__] = ids, printed, right
            return function

        return mark

    sources = {module: Path(str(importlib.import_module(module).__file__)) for module in CLAIM_MODULES}
    monkeypatch.setattr(parnassus.atlas, "claim", record)  # after the imports, which must not be recorded
    monkeypatch.setattr(parnassus.atlas, "erratum", record)
    for module, source in sources.items():
        evaluated.clear()
        exec(compile(source.read_text(encoding="utf-8"), source, "exec"), {"__name__": module})
        assert evaluated == {
            mark.name: (mark.ids, mark.printed, mark.right) for mark in MARKS if mark.module == module
        }, module


def test_every_mark_is_complete() -> None:
    incomplete = [
        mark.name
        for mark in MARKS
        if not mark.ids
        or len(set(mark.ids)) < len(mark.ids)
        or not set(mark.ids) <= IDS
        or not mark.statement
        or len(mark.statement.splitlines()[0]) > 120
        or (mark.printed != "" and mark.right != "") is not (mark.kind == "erratum")
    ]
    assert incomplete == []


def test_names_are_unique() -> None:
    for names in ([mark.name for mark in MARKS], [entry.name for entry in ENTRIES]):
        assert len(names) == len(set(names)), sorted({name for name in names if names.count(name) > 1})


def test_experiments_match_their_modules() -> None:
    for entry in ENTRIES:
        module = importlib.import_module(entry.module)
        assert f"{entry.title}\n{entry.text}".split() == str(module.__doc__).split(), entry.name
        assert entry.covers == module.covers, entry.name
        assert entry.presets == module.profiles, entry.name
        assert entry.expected == module.expected, entry.name
        assert entry.verbs == tuple(verb for name, verb in RUN_VERBS.items() if hasattr(module, name)), entry.name
        declared = {each.name: each.default for each in fields(module.Experiment)}
        assert {each.name: each.default_value for each in entry.settings} == declared, entry.name
        assert [each.name for each in entry.settings] == list(declared), entry.name
        assert entry.tuned == getattr(module, "tuned", {}), entry.name
        for kind, verb in RUN_VERBS.items():
            options = {each.name: each.default for each in fields(getattr(module, kind))} if verb in entry.verbs else {}
            read = {each.name: each.default_value for each in entry.verb_settings.get(verb, ())}
            assert read == options, (entry.name, verb)


def test_entries_survive_a_json_round_trip() -> None:
    for entry in ENTRIES:
        assert entry_from_plain(json.loads(json.dumps(entry_as_plain(entry)))) == entry


FILE = '''"""A title (book sec. 1.1).

And more of it.
"""

covers = ("B1.1-1",)
expected = {"error": at_most(0.5, "a"), "gain": between(-1, 2.5, "b"), "share": at_least(1e-3, "c"), "n": no_band("d")}
profiles: dict[str, dict[str, object]] = {"smoke": {"steps": 3}, "gpu": {}}


@dataclass(frozen=True)
class Experiment:
    steps: Positive[int] = 1_000  # gradient steps
    sizes: tuple[int, ...] = (
        1,
        2,
    )  # of the layers
    bare: float = 0.5

    def __call__(self, run): ...


class Sample: ...
'''


def test_experiment_is_read_without_import(tmp_path: Path) -> None:
    (tmp_path / "room" / "experiments").mkdir(parents=True)
    (tmp_path / "room" / "experiments" / "method.py").write_text(FILE, encoding="utf-8")
    entry = read_experiment(tmp_path / "room" / "experiments" / "method.py")
    assert (entry.name, entry.room, entry.module) == ("method", "room", "parnassus.room.experiments.method")
    assert (entry.title, entry.text) == ("A title (book sec. 1.1).", "And more of it.")
    assert entry.covers == ("B1.1-1",)
    assert [(name, str(band), band.about) for name, band in entry.expected.items()] == [
        ("error", "≤ 0.5", "a"),
        ("gain", "-1 … 2.5", "b"),
        ("share", "≥ 0.001", "c"),
        ("n", "", "d"),
    ]
    assert entry.profiles == ("smoke", "gpu")
    assert entry.verbs == ("sample",)
    assert [(each.name, each.default, each.help) for each in entry.settings] == [
        ("steps", "1000", "gradient steps"),
        ("sizes", "(1, 2)", "of the layers"),
        ("bare", "0.5", ""),
    ]


@pytest.mark.parametrize("location", ["claims.py", "claims/some.py"])
def test_marks_are_found_in_a_file_or_a_folder(location: str, tmp_path: Path) -> None:
    path = tmp_path / "room" / location
    path.parent.mkdir(parents=True)
    path.write_text(
        "@claim('B1.1-1', 'B1.1-2')\ndef one():\n    '''It is so.'''\n\n"
        "@erratum('B1.1-1', printed='a', right='b')\ndef two():\n    '''It is not.'''\n\ndef three(): ...\n"
    )
    one, two = read_marks(path)
    module = f"parnassus.room.{location.removesuffix('.py').replace('/', '.')}"
    assert one == Mark("claim", "one", module, ("B1.1-1", "B1.1-2"), "It is so.")
    assert two == Mark("erratum", "two", module, ("B1.1-1",), "It is not.", "a", "b")
    assert one.room == "room"


@pytest.mark.parametrize("line", ["expected = {'a': at_most(1 - 1e-6, 'b')}", "covers = (*ROWS,)", "covers = ("])
def test_unreadable_declarations_raise_with_the_file_name(tmp_path: Path, line: str) -> None:
    path = tmp_path / "room" / "experiments" / "odd_one.py"
    path.parent.mkdir(parents=True)
    path.write_text(line)
    with pytest.raises(ValueError, match=r"odd_one\.py must declare its rows, bands and profiles as literals"):
        read_experiment(path)


def test_bands_apply_to_the_defaults_of_the_laptop_profile() -> None:
    settings = (
        Setting("env", "str", "'a'", ""),
        Setting("steps", "int", "3", ""),
        Setting("sizes", "tuple", "(1,)", ""),
    )
    tuned = {"env": {"a": {"steps": 5}, "b": {"steps": 7}}}
    entry = Entry("name", "parnassus.room.experiments.name", "", "", (), {}, {"smoke": {}}, settings, tuned=tuned)
    defaults = {"env": "a", "steps": 5, "sizes": (1,)}
    assert entry.bands_apply("laptop", defaults)
    assert entry.bands_apply("laptop", {**defaults, "sizes": [1]})  # as in run.json
    assert not entry.bands_apply("smoke", defaults)
    assert not entry.bands_apply("laptop", {**defaults, "steps": 3})
    assert not entry.bands_apply("laptop", {**defaults, "env": "b", "steps": 7})
    assert not entry.bands_apply("laptop", {"env": "a", "steps": 5})


def test_summary_is_the_first_paragraph_in_one_line() -> None:
    mark = Mark("claim", "one_holds", "parnassus.room.claims", ("B1",), "It is\nso.\n\nMore of it.")
    assert (mark.label, mark.summary) == ("one holds", "It is so.")


def test_class_variables_are_not_settings(tmp_path: Path) -> None:
    path = tmp_path / "file.py"
    path.write_text("class Predict:\n    suffixes: ClassVar[tuple[str, ...]] = ()\n    top_k: int = 3  # classes\n")
    assert [setting.name for setting in read_settings(path, "Predict")] == ["top_k"]


FILES = {
    "agents/first.py": "class First:\n    gamma: float = 0.9  # discount\n",
    "agents/second.py": "from parnassus.room.agents.first import First\nclass Second(First):\n    steps: int = 3\n",
    "agents/__init__.py": "from parnassus.room.agents.second import Second\n",
    "tables.py": "TUNED = {'a': {'steps': 5}}\n",
    "commands/sampling.py": "class Draw:\n    count: int = 4  # number of samples\n",
    "experiments/method.py": (
        "from parnassus.room.agents import Second as Base\n"
        "from parnassus.room.commands.sampling import Draw as Sample\n"
        "from parnassus.room.tables import TUNED\n\n"
        "Name = Literal['a', 'b']\n"
        "tuned = {'env': TUNED}\n\n"
        "class Local(Base):\n    env: Name | None = 'a'  # environment\n\n"
        "class Experiment(Local): ...\n"
    ),
}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A room whose experiment inherits settings through several modules."""
    root = tmp_path / "parnassus"
    for name, content in FILES.items():
        (root / "room" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "room" / name).write_text(content, encoding="utf-8")
    monkeypatch.setattr(reading, "PACKAGE", root)
    return root


def test_settings_are_inherited_through_modules_and_aliases_are_resolved(package: Path) -> None:
    entry = read_experiment(package / "room" / "experiments" / "method.py")
    assert [(each.name, each.annotation) for each in entry.settings] == [
        ("gamma", "float"),
        ("steps", "int"),
        ("env", "Literal['a', 'b'] | None"),
    ]
    assert entry.settings[2].type.choices == ("a", "b")
    assert [each.name for each in entry.verb_settings["sample"]] == ["count"]


def test_sources_are_all_modules_that_declare_settings(package: Path) -> None:
    entry = read_experiment(package / "room" / "experiments" / "method.py")
    modules = ("agents", "agents.second", "agents.first", "commands.sampling", "tables")
    assert entry.sources == tuple(f"parnassus.room.{module}" for module in modules)
