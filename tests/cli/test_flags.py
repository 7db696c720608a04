"""Flags with help texts of the index, and usage lines."""

from dataclasses import dataclass

import pytest
import tyro

from parnassus.atlas.settings import Setting
from parnassus.cli.flags import flags_of, from_flags, print_usage_line
from parnassus.setting_types import Positive


@dataclass(frozen=True)
class Base:
    """Settings of a method."""

    steps: Positive[int] = 10  # not read


@dataclass(frozen=True)
class Settings(Base):
    sizes: tuple[int, ...] = (1, 2)  # not read
    data: str | None = None  # not read


SETTINGS = [
    Setting("steps", "Positive[int]", "10", "gradient steps, 10 % of them slow"),
    Setting("sizes", "tuple[int, ...]", "(1, 2)", "of the layers"),
    Setting("data", "str | None", "None", "name of a data set"),
]


def test_flags_are_converted_back_to_the_dataclass() -> None:
    flags = flags_of(Settings(steps=3), SETTINGS)
    parsed = tyro.cli(type(flags), default=flags, args=["--sizes", "4", "5"])
    assert from_flags(Settings, parsed) == Settings(steps=3, sizes=(4, 5))


def test_help_texts_are_those_of_the_settings(capsys: pytest.CaptureFixture[str]) -> None:
    pages = []
    for declared, settings in ((Settings(), SETTINGS), (Base(), SETTINGS[:1])):
        with pytest.raises(SystemExit):
            tyro.cli(type(flags_of(declared, settings)), args=["--help"])
        pages.append(" ".join(capsys.readouterr().out.split()))
    for setting in SETTINGS:
        assert setting.help in pages[0]
    assert "not read" not in pages[0]
    assert "Settings(" not in pages[0]  # the docstring that `dataclass` generates
    assert "Settings of a method." in pages[1]


@pytest.mark.parametrize(("arguments", "code"), [(["--help"], 0), (["-h", "--json"], 0), ([], 2), (["--json"], 2)])
def test_usage_is_an_error_unless_help_is_requested(
    arguments: list[str], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert print_usage_line("usage: parnassus run NAME", arguments) == code
    printed = capsys.readouterr()
    assert (printed.err if code else printed.out) == "usage: parnassus run NAME\n"
    assert not (printed.out if code else printed.err)
