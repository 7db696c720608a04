"""Types of settings: parsing of annotations, and messages for values outside the limits."""

from dataclasses import fields
from math import inf, nan
from pathlib import Path
from typing import get_type_hints

import pytest

from parnassus import setting_types
from parnassus.atlas.reading import read_settings
from parnassus.atlas.settings import Limits, Setting, SettingError, SettingType, check_limits, parse_annotation
from parnassus.train import options


@pytest.mark.parametrize(
    ("annotation", "accepted"),
    [
        ("int", SettingType("int")),
        ("Positive[int]", SettingType("int", limits=Limits(1))),
        ("Positive[float]", SettingType("float", limits=Limits(0, is_open=True))),
        ("NonNegative[float]", SettingType("float", limits=Limits(0))),
        ("UnitInterval", SettingType("float", limits=Limits(0, 1))),
        ("Annotated[int, AtLeast(-3)]", SettingType("int", limits=Limits(-3))),
        ("Annotated[float, Between(-1, 1)]", SettingType("float", limits=Limits(-1, 1))),
        ("Correlation", SettingType("float", limits=Limits(-1, 1, is_open=True))),
        ("DeviceName", SettingType("name", choices=("auto", "cpu", "cuda", "mps"))),
        ("tuple[Positive[int], ...]", SettingType("int", is_sequence=True, limits=Limits(1))),
        ("tuple[float, ...]", SettingType("float", is_sequence=True)),
        ("Positive[int] | None", SettingType("int", is_optional=True, limits=Limits(1))),
        ("bool | None", SettingType("bool", is_optional=True)),
        ("Literal['a', 'b']", SettingType("choice", choices=("a", "b"))),
        ("Literal['a']", SettingType("choice", choices=("a",))),
        ("Annotated[str, BuiltIn('a', 'b')]", SettingType("name", choices=("a", "b"))),
        ("Text", SettingType("text")),
        ("str", SettingType("other")),
        ("Path | None", SettingType("other", is_optional=True)),
        ("dict[str, int]", SettingType("other")),
    ],
)
def test_annotations_are_parsed(annotation: str, accepted: SettingType) -> None:
    assert parse_annotation(annotation) == accepted


def test_data_types_match_their_definitions() -> None:
    types = {name: value for name, value in vars(setting_types).items() if name.endswith(("Data", "Id"))}
    assert len(types) >= 6
    for name, value in types.items():
        assert parse_annotation(name) == SettingType("name", choices=value.__metadata__[0].names)


def test_settings_read_from_source_match_the_class() -> None:
    hints = get_type_hints(options.Options, include_extras=True)
    parsed = {setting.name: setting for setting in read_settings(Path(options.__file__), "Options")}
    assert list(parsed) == [field.name for field in fields(options.Options)] == list(hints)
    assert parsed["device"].type.choices == hints["device"].__metadata__[0].names
    assert parsed["precision"].type.choices == hints["precision"].__args__
    assert parsed["save_steps"].type.limits.low == 0
    assert all(setting.default_value == getattr(options.Options(), name) for name, setting in parsed.items())


@pytest.mark.parametrize(
    ("annotation", "value", "violation"),
    [
        ("Positive[int]", 0, "must be at least 1; got 0"),
        ("Positive[int]", 1, None),
        ("Positive[int]", 2**63 - 1, None),
        ("Positive[int]", 2**63, f"must be between −2⁶³ and 2⁶³ − 1; got {2**63}"),
        ("Positive[int] | None", None, None),
        ("NonNegative[int]", -1, "must be at least 0; got -1"),
        ("Positive[float]", 0.0, "must be greater than 0; got 0.0"),
        ("Positive[float]", 1e-9, None),
        ("UnitInterval", 1.5, "must be between 0 and 1; got 1.5"),
        ("UnitInterval", 1.0, None),
        ("Annotated[int, AtLeast(2)]", 1, "must be at least 2; got 1"),
        ("Positive[float]", inf, None),
        ("Positive[float]", nan, "must be greater than 0; got nan"),
        ("Correlation", 0.99, None),
        ("Correlation", 1.0, "must be between -1 and 1 (exclusive); got 1.0"),
        ("Correlation", -1.0, "must be between -1 and 1 (exclusive); got -1.0"),
        ("tuple[Positive[int], ...]", (3, 0), "must be at least 1; got 0"),
        ("tuple[Positive[int], ...]", (), None),
        ("float", -inf, None),
        ("Literal['a']", "b", None),  # left to the parser of the command line
        ("Annotated[str, BuiltIn('a')]", "my/folder", None),
    ],
)
def test_values_outside_the_limits_have_a_message(annotation: str, value: object, violation: str | None) -> None:
    setting = Setting("num_steps", annotation, "1", "gradient steps")
    assert setting.violation(value) == violation
    assert setting.flag == "--num-steps"


@pytest.mark.parametrize(
    ("annotation", "valid", "invalid"),
    [
        ("Positive[int]", [1, 2], [0, 1.0, True, "1", None, (1,)]),
        ("Positive[int] | None", [None, 3], [0, "x"]),
        ("UnitInterval", [0, 0.5, 1], [2, "0.5", False, nan]),
        ("bool", [True, False], [0, "true", None]),
        ("Literal['a', 'b']", ["a", "b"], ["c", None, 1]),
        ("Annotated[str, BuiltIn('a')]", ["a", "my/folder"], [1, None]),
        ("Text | None", [None, "x"], [1]),
        ("tuple[Positive[int], ...]", [(), (1, 2)], [(0,), ("1",), 1, None]),
    ],
)
def test_values_read_from_a_file_must_have_the_type_of_the_setting(
    annotation: str, valid: list[object], invalid: list[object]
) -> None:
    setting = Setting("size", annotation, "1", "a size")
    assert [value for value in valid if not setting.accepts(value)] == []
    assert [value for value in invalid if setting.accepts(value)] == []


def test_limits_are_checked_for_all_settings() -> None:
    class Values:
        size, rate = 1, 2.0

    settings = [Setting("size", "Positive[int]", "1", "width"), Setting("rate", "UnitInterval", "0.1", "dropout")]
    with pytest.raises(SettingError, match=r"^--rate must be between 0 and 1; got 2\.0 \(dropout\)$"):
        check_limits(settings, Values())
    check_limits(settings[:1], Values())
