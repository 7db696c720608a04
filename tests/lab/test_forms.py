"""Forms: every setting has a field, what is typed is read or refused in a sentence, and the command says the same."""

import importlib
import json
import random
from collections.abc import Callable
from dataclasses import asdict, fields, replace
from math import isinf
from pathlib import Path

import pytest

from parnassus.atlas.index import Atlas
from parnassus.atlas.reading import Entry
from parnassus.atlas.settings import Limits, Setting
from parnassus.cli.main import dispatch
from parnassus.cli.run import parse, with_profile
from parnassus.lab.forms import MAX_LENGTH, Field, Kind, Value, command, form_fields, profile_values, snippet
from parnassus.lab.library import Library
from parnassus.train.options import Options

LIBRARY = Library(Path("runs"), Atlas())
ENTRIES = list(LIBRARY.atlas.experiments.values())
PROFILES = [(entry, profile) for entry in ENTRIES for profile in ("laptop", *entry.presets)]


def test_every_setting_is_a_field_with_its_default_and_its_help() -> None:
    for entry in ENTRIES:
        experiment = importlib.import_module(entry.module).Experiment
        shown = LIBRARY.fields(entry)
        assert [field.name for field in shown] == [each.name for each in fields(experiment)], entry.name
        for field in shown:
            default = getattr(experiment(), field.name)
            assert field.default == default, (entry.name, field.name)
            assert field.help, (entry.name, field.name)
            assert field.read(default if field.kind == "switch" else field.format(default)) == default, field.name


def test_the_machine_has_the_options_that_a_page_offers() -> None:
    assert {field.name: field.default for field in LIBRARY.option_fields} == {
        name: value for name, value in asdict(Options()).items() if name not in ("parallel", "save_steps", "quiet")
    }


def other(field: Field, draw: random.Random) -> Value:
    """A value that the field does not hold by itself, of every size and sign that it accepts."""
    small = draw.choice((-1, 1)) * 10.0 ** draw.randint(-12, 3) * draw.random()
    low = 0 if isinf(field.limits.low) else int(field.limits.low)
    numbers = [x for x in (small, abs(small), -1e-05, 0.1 + 0.2, 3.0, 1e22) if field.limits.violation(x) is None]
    draws: dict[Kind, Callable[[], Value]] = {
        "int": lambda: draw.randint(low, 99999 if isinf(field.limits.high) else int(field.limits.high)),
        "float": lambda: draw.choice(numbers),
        "ints": lambda: tuple(draw.randint(low, 10**6) for _ in range(draw.randint(1, 6))),
        "floats": lambda: (*numbers[:2], *(draw.uniform(0.1, 1) for _ in range(draw.randint(0, 4)))),
        "switch": lambda: not field.default,
        "optional switch": lambda: draw.choice((True, False)),
        "text": lambda: draw.choice(("S.G/.#.", "not so good", "x")),
        "choice": lambda: draw.choice(field.choices),
    }
    return draws[field.kind]()


def test_the_command_means_what_the_form_shows() -> None:
    """Its flags, read by the parser of the command line, give back every value to the last bit."""
    for entry, profile in PROFILES:
        compare_form_and_command(entry, profile)


def compare_form_and_command(entry: Entry, profile: str) -> None:
    draw = random.Random(f"{entry.name} {profile}")
    settings, machine = LIBRARY.fields(entry), LIBRARY.option_fields
    for share in (0.0, 0.7):
        changed = {field.name: other(field, draw) for field in (*settings, *machine) if draw.random() < share}
        choices = {name: changed[name] for name in entry.tuned if name in changed}
        presets = profile_values(entry, profile, settings, choices) | {field.name: field.default for field in machine}
        shown = {field.name: field.format((presets | changed)[field.name]) for field in (*settings, *machine)}
        values = {
            field.name: field.read(shown[field.name] if field.kind != "switch" else (presets | changed)[field.name])
            for field in (*settings, *machine)
        }
        verb, name, *flags = command(entry, profile, [*settings, *machine], values, presets)
        assert (verb, name) == ("run", entry.name)
        experiment, options, launch = parse(entry, flags)
        names = {field.name for field in settings}
        assert launch.profile == profile
        preset = with_profile(entry, profile, choices)
        assert experiment == replace(preset, **{key: value for key, value in changed.items() if key in names})
        assert options == replace(Options(), **{key: value for key, value in changed.items() if key not in names})  # type: ignore[arg-type]
        assert share or flags == (["--profile", profile] if profile != "laptop" else [])


def test_an_option_that_may_be_empty_can_be_set_and_emptied() -> None:
    (threads,) = [field for field in LIBRARY.option_fields if field.name == "threads"]
    entry = LIBRARY.atlas.experiments["pca_on_digits"]
    assert threads.read("") is None
    assert threads.read("2") == 2
    for value in (None, 2):
        assert parse(entry, threads.flags(value))[1].threads == value


def test_a_switch_can_be_turned_both_ways() -> None:
    (switch,) = [field for field in LIBRARY.option_fields if field.name == "compile"]
    entry = LIBRARY.atlas.experiments["pca_on_digits"]
    for value in (True, False):
        assert parse(entry, ["--compile", *switch.flags(value)])[1].compile is value


# what a person types

WHOLE = Field("steps", "int", 2_000, "gradient steps")
REAL = Field("rate", "float", 0.1, "learning rate")
MAYBE = Field("threads", "int", None, "threads", optional=True)


@pytest.mark.parametrize(
    ("kind", "typed", "value"),
    [
        ("int", "12", 12),
        ("int", "  12 ", 12),
        ("int", "-3", -3),
        ("int", "1_000_000", 1_000_000),
        ("int", 12, 12),
        ("float", "1e-3", 0.001),
        ("float", ".5", 0.5),
        ("float", "-2", -2.0),
        ("float", 0.25, 0.25),
        ("switch", True, True),
        ("switch", False, False),
        ("choice", "b", "b"),
        ("text", " not good ", "not good"),
        ("optional switch", "yes", True),
        ("optional switch", "no", False),
        ("ints", "1 2, 3", (1, 2, 3)),
        ("ints", "7", (7,)),
        ("floats", "0.1,0.2", (0.1, 0.2)),
        ("floats", "1e-3  -1", (0.001, -1.0)),
    ],
)
def test_what_is_typed_is_read(kind: Kind, typed: object, value: Value) -> None:
    assert Field("x", kind, 1, "", choices=("a", "b")).read(typed) == value


@pytest.mark.parametrize(("kind", "typed"), [("int", "0"), ("ints", "3 0")])
def test_less_than_the_least_is_refused(kind: Kind, typed: str) -> None:
    assert Field("x", kind, 1, "", limits=Limits(0)).read(typed) in (0, (3, 0))
    with pytest.raises(ValueError, match="x must be at least 1; got 0"):
        Field("x", kind, 1, "", limits=Limits(1)).read(typed)


@pytest.mark.parametrize(
    ("field", "typed", "sentence"),
    [
        (WHOLE, "", "steps must be an integer, such as 2000; got “”"),
        (WHOLE, "ten", "steps must be an integer, such as 2000; got “ten”"),
        (WHOLE, "1.5", "steps must be an integer, such as 2000; got “1.5”"),
        (WHOLE, "0x10", "steps must be an integer, such as 2000; got “0x10”"),
        (WHOLE, True, "steps must be an integer, such as 2000; got “True”"),
        (WHOLE, None, "steps must be an integer, such as 2000; got “”"),
        (WHOLE, "9" * (MAX_LENGTH + 1), "steps must have at most 200 characters; got 201"),
        (WHOLE, "x" * 100, f"steps must be an integer, such as 2000; got “{'x' * 30}”"),
        (REAL, "nan", "rate must be finite; got nan"),
        (REAL, "-Infinity", "rate must be finite; got -Infinity"),
        (REAL, "1e999", "rate must be finite; got 1e999"),
        (REAL, "1,5", "rate must be a number, such as 0.1; got “1,5”"),
        (REAL, "0.1; rm -r x", "rate must be a number, such as 0.1; got “0.1; rm -r x”"),
        (REAL, ["0.1"], "rate must be a number, such as 0.1; got “['0.1']”"),
        (Field("compile", "switch", False, ""), "yes", "compile must be on or off"),
        (Field("compile", "switch", False, ""), 1, "compile must be on or off"),
        (Field("data", "choice", "a", "", ("a", "b")), "/etc/passwd", "data must be one of a, b"),
        (Field("data", "choice", "a", "", ("a", "b")), "A", "data must be one of a, b"),
        (Field("data", "choice", "a", "", ("a", "b")), None, "data must be one of a, b"),
        (Field("map", "text", "S.G", ""), "", "map must be text that does not begin with a dash"),
        (Field("map", "text", "S.G", ""), "--seed", "map must be text that does not begin with a dash"),
        (Field("scaled", "optional switch", None, "", optional=True), "perhaps", "scaled must be one of yes, no"),
        (Field("counts", "ints", (20, 60), ""), " , ", "counts must be one or more numbers, such as 20 60"),
        (Field("counts", "ints", (20, 60), ""), "1 x", "counts must be an integer, such as 20; got “x”"),
        (Field("rates", "floats", (0.1,), ""), "1 nan", "rates must be finite; got nan"),
        (MAYBE, "two", "threads must be an integer, such as 1; got “two”"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(field: Field, typed: object, sentence: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - the whole sentence is compared below
        field.read(typed)
    assert str(refused.value) == sentence


# what a page may never say


def test_text_that_is_no_choice_has_no_field() -> None:
    """A path, a name or a formula typed into a page would reach the disk; only known names do."""
    free = [
        Setting("folder", "str", "'runs'", "where"),
        Setting("name", "str | None", "None", "name of the run"),
        Setting("weights", "Path", "'x'", "a file"),
        Setting("extra", "dict[str, int]", "{}", ""),
    ]
    assert form_fields(free) == []
    (data,) = form_fields([Setting("data", 'Annotated[str, BuiltIn("wine", "digits")]', "'digits'", "")])
    assert data.choices == ("digits", "wine")


def test_no_experiment_offers_a_path() -> None:
    shown = [*LIBRARY.option_fields, *(field for entry in ENTRIES for field in LIBRARY.fields(entry))]
    for field in shown:
        if field.kind == "choice":
            assert field.default in field.choices
            assert not any("/" in choice or "." in choice for choice in field.choices)
            for typed in ("/etc/passwd", "../x.csv", "x.npy", "~", "", "digits\0", "digits, x"):
                with pytest.raises(ValueError, match=f"{field.label} must be one of"):
                    field.read(typed)


def test_what_a_profile_sets_can_be_chosen() -> None:
    for entry in ENTRIES:
        named = {field.name: field for field in LIBRARY.fields(entry)}
        for profile in entry.presets:
            for name, value in profile_values(entry, profile, list(named.values()), {}).items():
                field = named[name]
                assert field.read(value if field.kind == "switch" else field.format(value)) == value


# the same in a program


def test_the_snippet_gives_the_numbers_of_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    entry = LIBRARY.atlas.experiments["noise_schedules"]
    settings = profile_values(entry, "smoke", LIBRARY.fields(entry), {})
    changed = {name: value for name, value in settings.items() if value != _default(entry, name)} | {"timesteps": 7}
    monkeypatch.chdir(tmp_path)
    exec(snippet(entry, changed, {"seed": 7, "device": "cpu"}), {})
    said = capsys.readouterr().out
    words = ["--profile", "smoke", "--timesteps", "7", "--seed", "7", "--device", "cpu", "--quiet", "--name", "theirs"]
    assert dispatch(["run", entry.name, *words, "--folder", "runs"]) == 0
    results = {path.parent.name: json.loads(path.read_text())["result"] for path in Path("runs").glob("*/result.json")}
    theirs = results.pop("theirs")
    ((name, mine),) = results.items()
    assert mine == pytest.approx(theirs, rel=1e-6)  # the last bits depend on where an array lies in memory
    assert said == f"{mine} {Path('runs') / name}\n"


def _default(entry: Entry, name: str) -> Value:
    return next(field.default for field in LIBRARY.fields(entry) if field.name == name)
