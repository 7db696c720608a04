"""Every claim of this room holds, and every corrected misprint is one."""

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator

import pytest

from parnassus.atlas import Correction, Evidence
from parnassus.diffusion import claims


def marked() -> Iterator[Callable[[], Evidence | Correction]]:
    for info in pkgutil.iter_modules(claims.__path__):
        module = importlib.import_module(f"{claims.__name__}.{info.name}")
        for _, function in inspect.getmembers(module, inspect.isfunction):
            returned = inspect.signature(function).return_annotation
            unasked = not inspect.signature(function).parameters
            if function.__module__ == module.__name__ and unasked and returned in (Evidence, Correction):
                yield function


@pytest.mark.parametrize("statement", list(marked()), ids=lambda function: function.__name__)
def test_the_claim_holds(statement: Callable[[], Evidence | Correction]) -> None:
    evidence = statement()
    assert evidence.holds, evidence
