"""The examples in the docstrings of public classes run as doctests.

Its examples know the names that a package exports, `torch` and `nn`; `parnassus show CLASS` prints the import.
"""

import doctest
import importlib
import inspect
from types import ModuleType

import pytest
import torch
from torch import nn

from parnassus.atlas.symbols import exported_symbols

SYMBOLS = exported_symbols()
PACKAGES = list(dict.fromkeys(symbol.package for symbol in SYMBOLS))


def public_classes(package: ModuleType) -> dict[str, type]:
    """The classes that a package exports, without protocols and exceptions, which are not used by calling them."""
    exported = {each.name: getattr(package, each.name) for each in SYMBOLS if each.package == package.__name__}
    return {
        name: found
        for name, found in exported.items()
        if inspect.isclass(found) and not getattr(found, "_is_protocol", False) and not issubclass(found, Exception)
    }


def examples_of(package: ModuleType, name: str, found: type) -> list[doctest.DocTest]:
    """The examples of a class, without those of its methods and of classes that it only inherits."""
    if "__doc__" not in vars(found) or ">>>" not in (found.__doc__ or ""):
        return []
    names = {"torch": torch, "nn": nn, **{each: getattr(package, each) for each in package.__all__}}
    return doctest.DocTestFinder(recurse=False).find(found, name, globs=names)


@pytest.mark.parametrize("name", PACKAGES)
def test_examples_run(name: str) -> None:
    package = importlib.import_module(name)
    runner = doctest.DocTestRunner(verbose=False)
    with torch.random.fork_rng():
        for each, found in public_classes(package).items():
            for example in examples_of(package, each, found):
                lines: list[str] = []
                assert runner.run(example, out=lines.append).failed == 0, "".join(lines)


@pytest.mark.parametrize("name", PACKAGES)
def test_every_public_class_has_an_example(name: str) -> None:
    package = importlib.import_module(name)
    missing = [each for each, found in public_classes(package).items() if not examples_of(package, each, found)]
    assert missing == []
