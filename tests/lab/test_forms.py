"""Forms: fields of settings, validation of input, and equality of form and command."""

import importlib
import json
import random
from collections.abc import Callable
from dataclasses import asdict, fields, replace
from math import isinf
from pathlib import Path

import pytest
import tyro

from parnassus.atlas.declarations import RUN_VERBS, Entry
from parnassus.atlas.index import Atlas
from parnassus.atlas.settings import Limits, Setting
from parnassus.cli.flags import flags_of, from_flags
from parnassus.cli.main import dispatch
from parnassus.cli.run import parse, with_profile
from parnassus.lab.forms import (
    MAX_LENGTH,
    FieldKind,
    FormField,
    Value,
    command,
    form_fields,
    profile_values,
    snippet,
    verb_command,
)
from parnassus.lab.library import Library
from parnassus.train.options import Options

LIBRARY = Library(Path("runs"), Atlas())
ENTRIES = list(LIBRARY.atlas.experiments.values())
PROFILES = [(entry, profile) for entry in ENTRIES for profile in ("laptop", *entry.presets)]


def test_every_setting_is_a_field_with_default_and_help() -> None:
    for entry in ENTRIES:
        experiment = importlib.import_module(entry.module).Experiment
        displayed = LIBRARY.fields(entry)
        assert [field.name for field in displayed] == [each.name for each in fields(experiment)], entry.name
        for field in displayed:
            default = getattr(experiment(), field.name)
            assert field.default == default, (entry.name, field.name)
            assert field.help, (entry.name, field.name)
            assert field.read(default if field.kind == "switch" else field.format(default)) == default, field.name


def test_option_fields_match_the_options() -> None:
    assert {field.name: field.default for field in LIBRARY.option_fields} == {
        name: value for name, value in asdict(Options()).items() if name not in ("parallel", "save_steps", "quiet")
    }


def random_value(field: FormField, source: random.Random) -> Value:
    """A random valid value other than the default of the field."""
    small = source.choice((-1, 1)) * 10.0 ** source.randint(-12, 3) * source.random()
    low = 0 if isinf(field.limits.low) else int(field.limits.low)
    numbers = [x for x in (small, abs(small), -1e-05, 0.1 + 0.2, 3.0, 1e22) if field.limits.violation(x) is None]
    generators: dict[FieldKind, Callable[[], Value]] = {
        "int": lambda: source.randint(low, 99999 if isinf(field.limits.high) else int(field.limits.high)),
        "float": lambda: source.choice(numbers),
        "ints": lambda: tuple(source.randint(low, 10**6) for _ in range(source.randint(1, 6))),
        "floats": lambda: (*numbers[:2], *(source.uniform(0.1, 1) for _ in range(source.randint(0, 4)))),
        "switch": lambda: not field.default,
        "optional switch": lambda: source.choice((True, False)),
        "text": lambda: source.choice(("S.G/.#.", "not so good", "x")),
        "texts": lambda: source.choice((("price",), ("house size", "year"))),
        "choice": lambda: source.choice(field.choices),
    }
    return generators[field.kind]()


def test_command_reproduces_the_values_of_the_form() -> None:
    """Parsing its flags restores every value exactly."""
    for entry, profile in PROFILES:
        compare_form_and_command(entry, profile)


def compare_form_and_command(entry: Entry, profile: str) -> None:
    source = random.Random(f"{entry.name} {profile}")
    settings, machine = LIBRARY.fields(entry), LIBRARY.option_fields
    for fraction in (0.0, 0.7):
        changed = {
            field.name: random_value(field, source) for field in (*settings, *machine) if source.random() < fraction
        }
        choices = {name: changed[name] for name in entry.tuned if name in changed}
        presets = profile_values(entry, profile, settings, choices) | {field.name: field.default for field in machine}
        displayed = {field.name: field.format((presets | changed)[field.name]) for field in (*settings, *machine)}
        values = {
            field.name: field.read(displayed[field.name] if field.kind != "switch" else (presets | changed)[field.name])
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
        assert fraction or flags == (["--profile", profile] if profile != "laptop" else [])


def test_commands_of_trained_runs_reproduce_the_values_of_the_form() -> None:
    source, names = random.Random(0), {verb: name for name, verb in RUN_VERBS.items()}
    for entry in ENTRIES:
        for verb, settings in entry.verb_settings.items():
            declared = getattr(importlib.import_module(entry.module), names[verb])
            displayed, flags = form_fields(settings), flags_of(declared(), settings)
            assert [field.name for field in displayed] == [setting.name for setting in settings], (entry.name, verb)
            assert verb_command(verb, "RUN", displayed, {field.name: field.default for field in displayed})[3:] == []
            values = {field.name: random_value(field, source) for field in displayed}
            words = verb_command(verb, "RUN", displayed, values)
            assert words[: 2 + (verb == "predict")] == [verb, "RUN", "INPUT"][: 2 + (verb == "predict")]
            parsed = tyro.cli(type(flags), default=flags, args=words[2 + (verb == "predict") :])
            assert vars(from_flags(declared, parsed)) == values, (entry.name, verb)


def test_samples_have_fields_for_seed_and_device() -> None:
    assert {field.name: field.default for field in LIBRARY.sample_fields} == {"seed": 0, "device": "auto"}


def test_optional_fields_can_be_set_and_cleared() -> None:
    (threads,) = [field for field in LIBRARY.option_fields if field.name == "threads"]
    entry = LIBRARY.atlas.experiments["pca_on_digits"]
    assert threads.read("") is None
    assert threads.read("2") == 2
    for value in (None, 2):
        assert parse(entry, threads.flags(value))[1].threads == value


def test_switch_flags_work_in_both_directions() -> None:
    (switch,) = [field for field in LIBRARY.option_fields if field.name == "compile"]
    entry = LIBRARY.atlas.experiments["pca_on_digits"]
    for value in (True, False):
        assert parse(entry, ["--compile", *switch.flags(value)])[1].compile is value


# user input

INT_FIELD = FormField("steps", "int", 2_000, "gradient steps")
FLOAT_FIELD = FormField("rate", "float", 0.1, "learning rate")
OPTIONAL_FIELD = FormField("threads", "int", None, "threads", optional=True)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
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
        ("texts", " house size,year, ", ("house size", "year")),
        ("texts", "", ()),
        ("optional switch", "yes", True),
        ("optional switch", "no", False),
        ("ints", "1 2, 3", (1, 2, 3)),
        ("ints", "7", (7,)),
        ("floats", "0.1,0.2", (0.1, 0.2)),
        ("floats", "1e-3  -1", (0.001, -1.0)),
    ],
)
def test_input_is_parsed(kind: FieldKind, text: object, value: Value) -> None:
    assert FormField("x", kind, 1, "", choices=("a", "b")).read(text) == value


@pytest.mark.parametrize(("kind", "text"), [("int", "0"), ("ints", "3 0")])
def test_values_below_the_limit_raise_value_error(kind: FieldKind, text: str) -> None:
    assert FormField("x", kind, 1, "", limits=Limits(0)).read(text) in (0, (3, 0))
    with pytest.raises(ValueError, match="x must be at least 1; got 0"):
        FormField("x", kind, 1, "", limits=Limits(1)).read(text)


@pytest.mark.parametrize(
    ("field", "text", "message"),
    [
        (INT_FIELD, "", "steps must be an integer, such as 2000; got “”"),
        (INT_FIELD, "ten", "steps must be an integer, such as 2000; got “ten”"),
        (INT_FIELD, "1.5", "steps must be an integer, such as 2000; got “1.5”"),
        (INT_FIELD, "0x10", "steps must be an integer, such as 2000; got “0x10”"),
        (INT_FIELD, True, "steps must be an integer, such as 2000; got “True”"),
        (INT_FIELD, None, "steps must be an integer, such as 2000; got “”"),
        (INT_FIELD, "9" * (MAX_LENGTH + 1), "steps must have at most 200 characters; got 201"),
        (INT_FIELD, "x" * 100, f"steps must be an integer, such as 2000; got “{'x' * 30}”"),
        (FLOAT_FIELD, "nan", "rate must be finite; got nan"),
        (FLOAT_FIELD, "-Infinity", "rate must be finite; got -Infinity"),
        (FLOAT_FIELD, "1e999", "rate must be finite; got 1e999"),
        (FLOAT_FIELD, "1,5", "rate must be a number, such as 0.1; got “1,5”"),
        (FLOAT_FIELD, "0.1; rm -r x", "rate must be a number, such as 0.1; got “0.1; rm -r x”"),
        (FLOAT_FIELD, ["0.1"], "rate must be a number, such as 0.1; got “['0.1']”"),
        (FormField("compile", "switch", False, ""), "yes", "compile must be on or off"),
        (FormField("compile", "switch", False, ""), 1, "compile must be on or off"),
        (FormField("data", "choice", "a", "", ("a", "b")), "/etc/passwd", "data must be one of a, b"),
        (FormField("data", "choice", "a", "", ("a", "b")), "A", "data must be one of a, b"),
        (FormField("data", "choice", "a", "", ("a", "b")), None, "data must be one of a, b"),
        (FormField("map", "text", "S.G", ""), "", "map must be text that does not begin with a dash"),
        (FormField("map", "text", "S.G", ""), "--seed", "map must be text that does not begin with a dash"),
        (FormField("scaled", "optional switch", None, "", optional=True), "perhaps", "scaled must be one of yes, no"),
        (FormField("counts", "ints", (20, 60), ""), " , ", "counts must be one or more numbers, such as 20 60"),
        (FormField("counts", "ints", (20, 60), ""), "1 x", "counts must be an integer, such as 20; got “x”"),
        (FormField("rates", "floats", (0.1,), ""), "1 nan", "rates must be finite; got nan"),
        (OPTIONAL_FIELD, "two", "threads must be an integer, such as 1; got “two”"),
    ],
)
def test_invalid_input_raises_value_error(field: FormField, text: object, message: str) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the whole message is compared below
        field.read(text)
    assert str(error.value) == message


# input that a page must not accept


def test_free_text_settings_have_no_field() -> None:
    """Paths, names and formulas from a page must not reach the disk; only known names are accepted."""
    free_text = [
        Setting("folder", "str", "'runs'", "where"),
        Setting("name", "str | None", "None", "name of the run"),
        Setting("weights", "Path", "'x'", "a file"),
        Setting("extra", "dict[str, int]", "{}", ""),
    ]
    assert form_fields(free_text) == []
    (data,) = form_fields([Setting("data", 'Annotated[str, BuiltIn("wine", "digits")]', "'digits'", "")])
    assert data.choices == ("digits", "wine")


def test_choices_do_not_include_paths() -> None:
    displayed = [*LIBRARY.option_fields, *(field for entry in ENTRIES for field in LIBRARY.fields(entry))]
    for field in displayed:
        if field.kind == "choice":
            assert field.default in field.choices
            assert not any("/" in choice or "." in choice for choice in field.choices)
            for text in ("/etc/passwd", "../x.csv", "x.npy", "~", "", "digits\0", "digits, x"):
                with pytest.raises(ValueError, match=f"{field.label} must be one of"):
                    field.read(text)


def test_profile_values_are_valid_input() -> None:
    for entry in ENTRIES:
        form = {field.name: field for field in LIBRARY.fields(entry)}
        for profile in entry.presets:
            for name, value in profile_values(entry, profile, list(form.values()), {}).items():
                field = form[name]
                assert field.read(value if field.kind == "switch" else field.format(value)) == value


# the snippet


def test_snippet_and_command_have_the_same_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    entry = LIBRARY.atlas.experiments["noise_schedules"]
    settings = profile_values(entry, "smoke", LIBRARY.fields(entry), {})
    changed = {name: value for name, value in settings.items() if value != _default(entry, name)} | {
        "num_train_timesteps": 7
    }
    monkeypatch.chdir(tmp_path)
    exec(snippet(entry, changed, {"seed": 7, "device": "cpu"}), {})
    printed = capsys.readouterr().out
    words = [
        "--profile",
        "smoke",
        "--num-train-timesteps",
        "7",
        "--seed",
        "7",
        "--device",
        "cpu",
        "--quiet",
        "--name",
        "from_command",
    ]
    assert dispatch(["run", entry.name, *words, "--folder", "runs"]) == 0
    results = {path.parent.name: json.loads(path.read_text())["result"] for path in Path("runs").glob("*/result.json")}
    from_command = results.pop("from_command")
    ((name, from_snippet),) = results.items()
    assert from_snippet == pytest.approx(
        from_command, rel=1e-6
    )  # rounding errors depend on the memory alignment of arrays
    assert printed == f"{from_snippet} {Path('runs') / name}\n"


def _default(entry: Entry, name: str) -> Value:
    return next(field.default for field in LIBRARY.fields(entry) if field.name == name)
