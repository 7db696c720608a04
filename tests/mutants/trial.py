"""Tries a mutation: runs claims or tests against it in a fork of this process, which has imported torch already."""

import importlib
import os
import time
from collections.abc import Callable, Sequence

import pytest

from .mutations import Mutation, plant
from .storage import ROOT

TIME_LIMIT = 120
"""Seconds after which a mutation that makes claims or tests hang counts as noticed."""


def import_libraries() -> None:
    """Import what every fork needs, so that it does not have to."""
    for name in ("torch", "scipy.stats", "sklearn.linear_model", "matplotlib.pyplot", "jaxtyping", "beartype"):
        importlib.import_module(name)
    import torch

    torch.set_num_threads(1)


def notices(mutation: Mutation | None, check: Callable[[Sequence[str]], int], names: Sequence[str]) -> bool:
    """Whether `check`, which returns 0 if all of these claims or tests pass, does not do so with the mutation."""
    child = os.fork()
    if child == 0:
        status = 1  # an error while importing is noticed too
        try:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            os.dup2(null, 2)
            os.chdir(ROOT)
            if mutation is not None:
                plant({mutation.path: mutation.mutated()})
            status = check(names)
        finally:
            os._exit(status)
    status = _wait(child)
    if status == pytest.ExitCode.USAGE_ERROR:
        raise RuntimeError("a recorded test does not exist any more: record again by --record")
    return status != 0


def _wait(child: int) -> int:
    end = time.monotonic() + TIME_LIMIT
    while time.monotonic() < end:
        finished, status = os.waitpid(child, os.WNOHANG)
        if finished:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return 1


def check_claims(names: Sequence[str]) -> int:
    """Run claims until one fails."""
    for name in names:
        module, _, function = name.rpartition(".")
        if not getattr(importlib.import_module(module), function)().holds:
            return 1
    return 0


def check_tests(names: Sequence[str]) -> int:
    """Run tests until one fails. Plugins that this process has imported already are no error."""
    options = ("-x", "-q", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning")
    return int(pytest.main([*options, *names]))
