"""Formatting of numbers."""

import json
from math import inf, nan

import pytest

from parnassus.report.formatting import format_json, format_number


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3, "3"),
        (1_234_567, "1,234,567"),
        (4_000.0, "4,000"),
        (-0.0, "0"),
        (0.123456, "0.1235"),
        (1e-7, "1e-07"),
        (31_718.4, "31,718"),
        (-12_345.6, "-12,346"),
        (9_999.6, "10,000"),
        (1e20, "1e+20"),
        (True, "True"),
        ("text", "text"),
        (None, "—"),
        (nan, "nan"),
        (inf, "inf"),
        (-inf, "-inf"),
        ((1, 2), "(1, 2)"),
    ],
)
def test_numbers_have_significant_digits_and_separators(value: object, text: str) -> None:
    assert format_number(value) == text


def test_numbers_that_are_not_finite_become_null_in_json() -> None:
    rows = [{"loss": nan, "parts": [1.5, inf, (-inf,)], "name": "größe"}, {"loss": 2}]
    assert json.loads(format_json(rows)) == [{"loss": None, "parts": [1.5, None, [None]], "name": "größe"}, {"loss": 2}]
