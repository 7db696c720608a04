"""The examples in the docstrings of the estimators."""

import doctest
import importlib
import pkgutil

import pytest

from parnassus import estimators

MODULES = [f"parnassus.estimators.{each.name}" for each in pkgutil.iter_modules(estimators.__path__)]


@pytest.mark.parametrize("name", MODULES)
def test_examples_print_what_they_show(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_every_estimator_has_an_example() -> None:
    for name in set(estimators.__all__) - {"Explanation", "InlineFigure"}:
        assert ">>> " in (getattr(estimators, name).__doc__ or ""), name
