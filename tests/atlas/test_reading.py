"""What is read from the files without importing them is what the modules hold."""

import ast
import importlib
import inspect
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from types import FunctionType

import pytest

import parnassus.atlas
from parnassus.atlas import Correction, Evidence
from parnassus.atlas.catalogue import rows
from parnassus.atlas.reading import Entry, Mark, Setting, experiments, heads, marks, names_in

MARKS = marks()
IDS = {row.id for row in rows()}
CLAIM_MODULES = sorted({mark.module for mark in MARKS})


@pytest.mark.parametrize("module", CLAIM_MODULES)
def test_every_function_that_gives_evidence_is_marked(module: str) -> None:
    imported = importlib.import_module(module)
    kinds: dict[object, str] = {Evidence: "claim", Correction: "erratum"}
    held = {}
    for name, function in inspect.getmembers(imported, inspect.isfunction):
        signature = inspect.signature(function)
        own = function.__module__ == module and not name.startswith("_") and not signature.parameters
        if own and signature.return_annotation in kinds:
            held[name] = kinds[signature.return_annotation], inspect.getdoc(function)
    read = {mark.name: (mark.kind, mark.statement) for mark in MARKS if mark.module == module}
    assert read == held


@pytest.mark.parametrize("module", CLAIM_MODULES)
def test_the_marks_say_what_python_makes_of_them(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    said: dict[str, tuple[tuple[str, ...], str, str]] = {}

    def record(*ids: str, printed: str = "", right: str = "") -> Callable[[FunctionType], FunctionType]:
        def mark(function: FunctionType) -> FunctionType:
            said[function.__name__] = ids, printed, right
            return function

        return mark

    source = Path(str(importlib.import_module(module).__file__))
    monkeypatch.setattr(parnassus.atlas, "claim", record)
    monkeypatch.setattr(parnassus.atlas, "erratum", record)
    exec(compile(source.read_text(encoding="utf-8"), source, "exec"), {"__name__": module})
    assert said == {mark.name: (mark.ids, mark.printed, mark.right) for mark in MARKS if mark.module == module}


@pytest.mark.parametrize("mark", MARKS, ids=lambda mark: mark.name)
def test_a_mark_is_complete(mark: Mark) -> None:
    assert mark.ids
    assert len(set(mark.ids)) == len(mark.ids)
    assert set(mark.ids) <= IDS
    assert mark.statement
    assert len(mark.statement.splitlines()[0]) <= 120
    assert (mark.printed != "" and mark.right != "") is (mark.kind == "erratum")


def test_names_are_unique_so_that_one_can_be_asked_for() -> None:
    for names in ([mark.name for mark in MARKS], [entry.name for entry in experiments()]):
        assert len(names) == len(set(names)), sorted({name for name in names if names.count(name) > 1})


@pytest.mark.parametrize("entry", experiments(), ids=lambda entry: entry.name)
def test_an_experiment_is_read_as_it_is(entry: Entry) -> None:
    module = importlib.import_module(entry.module)
    assert f"{entry.title}\n{entry.text}".split() == str(module.__doc__).split()
    assert entry.covers == module.covers
    assert entry.presets == module.profiles
    assert entry.expected == module.expected
    assert entry.generative == hasattr(module, "Sample")
    declared = {each.name: each.default for each in fields(module.Experiment)}
    assert {each.name: eval(each.default) for each in entry.settings} == declared


FILE = '''"""A title (book sec. 1.1).

And more of it.
"""

covers = ("B1.1-1",)
expected = {"error": at_most(0.5, "a"), "gain": between(-1, 2.5, "b"), "share": at_least(1e-3, "c"), "n": reported("d")}
profiles: dict[str, dict[str, object]] = {"smoke": {"steps": 3}, "gpu": {}}


@dataclass(frozen=True)
class Experiment:
    steps: int = 1_000  # gradient steps
    sizes: tuple[int, ...] = (
        1,
        2,
    )  # of the layers
    bare: float = 0.5

    def __call__(self, run): ...


class Sample: ...
'''


def test_a_file_is_read_without_being_imported(tmp_path: Path) -> None:
    (tmp_path / "room" / "experiments").mkdir(parents=True)
    (tmp_path / "room" / "experiments" / "__init__.py").touch()
    (tmp_path / "room" / "experiments" / "method.py").write_text(FILE, encoding="utf-8")
    (entry,) = experiments(tmp_path)
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
    assert entry.generative
    assert [(each.name, each.default, each.help) for each in entry.settings] == [
        ("steps", "1000", "gradient steps"),
        ("sizes", "(1, 2)", "of the layers"),
        ("bare", "0.5", ""),
    ]


@pytest.mark.parametrize(
    ("annotation", "default", "about", "least"),
    [
        ("int", "12", "steps of descent", 1),
        ("int", "12", "blocks that learn x + 0.1 sin x", 1),
        ("int", "0", "processes", 0),
        ("int", "4", "processes; 0 for this one alone", 0),
        ("int", "-3", "the first exponent", -3),
        ("int | None", "None", "unless told, all", 1),
        ("tuple[int, ...]", "(8, 4)", "of the layers", 1),
        ("tuple[int, ...]", "()", "of the layers", 1),
        ("float", "0.5", "rate", None),
    ],
)
def test_the_least_of_a_whole_number(annotation: str, default: str, about: str, least: int | None) -> None:
    assert Setting("x", annotation, default, about).least == least


@pytest.mark.parametrize("where", ["claims.py", "claims/some.py"])
def test_marks_are_found_in_a_file_or_a_folder(where: str, tmp_path: Path) -> None:
    path = tmp_path / "room" / where
    path.parent.mkdir(parents=True)
    path.write_text(
        "@claim('B1.1-1', 'B1.1-2')\ndef one():\n    '''It is so.'''\n\n"
        "@erratum('B1.1-1', printed='a', right='b')\ndef two():\n    '''It is not.'''\n\ndef three(): ...\n"
    )
    one, two = marks(tmp_path)
    module = f"parnassus.room.{where.removesuffix('.py').replace('/', '.')}"
    assert one == Mark("claim", "one", module, ("B1.1-1", "B1.1-2"), "It is so.")
    assert two == Mark("erratum", "two", module, ("B1.1-1",), "It is not.", "a", "b")
    assert one.room == "room"


@pytest.mark.parametrize("line", ["expected = {'a': at_most(1 - 1e-6, 'b')}", "covers = (*ROWS,)", "covers = ("])
def test_what_cannot_be_read_is_told_with_its_file(tmp_path: Path, line: str) -> None:
    place = tmp_path / "room" / "experiments" / "odd_one.py"
    place.parent.mkdir(parents=True)
    place.write_text(line)
    with pytest.raises(ValueError, match=r"odd_one\.py must say its rows, bands and profiles in plain values"):
        experiments(tmp_path)


def test_bodies_are_left_out_and_all_else_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "room.py"
    path.write_text(
        '"""A file."""\n\nclass Law(Protocol):\n    @property\n    def name(self) -> str: ...\n\n'
        "    def draw(\n        self, count: int\n    ) -> int: ...  # of any kind\n\n\n"
        'def work(x: int) -> int:\n    """It works."""\n    return x\n\n\nGOALS = {"a": 1}\n'
    )
    kept = heads(path)
    assert names_in(path, "GOALS") == ["a"]
    assert ") -> int: ...  # of any kind\n" in kept
    assert "return" not in kept
    assert ast.parse(kept)
