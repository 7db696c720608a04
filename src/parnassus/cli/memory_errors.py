"""Errors of memory: what was requested, what is available, and which argument of the command to reduce."""

import os
import re
import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TypeGuard

from parnassus.errors import first_line

CPU_REQUEST = re.compile(r"DefaultCPUAllocator: .*you tried to allocate (\d+) bytes")
"""What torch's CPU allocator reports: its error is a plain RuntimeError, so that its text is its only mark."""


def is_memory_error(error: BaseException | None) -> TypeGuard[Exception]:
    """Whether memory ran out, on the CPU or on a device; does not import torch."""
    torch = sys.modules.get("torch")
    is_device_error = torch is not None and isinstance(error, torch.OutOfMemoryError)
    return is_device_error or isinstance(error, MemoryError) or requested_bytes(error) is not None


def requested_bytes(error: BaseException | None) -> int | None:
    """The size that torch's CPU allocator refused; None for other errors."""
    found = CPU_REQUEST.search(str(error)) if isinstance(error, RuntimeError) else None
    return None if found is None else int(found[1])


def describe_memory_error(error: Exception, arguments: Sequence[str]) -> str:
    """What was requested and is available, and the largest number in the command with a value that may fit."""
    requested, available = requested_bytes(error), available_bytes()
    if requested is None:
        return f"out of memory: {first_line(error)}; try a smaller batch or another --device"
    stated = f"out of memory: {format_bytes(requested)} were requested"
    if available is not None:
        stated += f" and {format_bytes(available)} are available"
    largest = max(_integer_flags(arguments), key=lambda each: each[1], default=None)
    if largest is None:
        return f"{stated}; try a smaller --batch-size or smaller data"
    flag, value = largest
    fitting = None if available is None else value * available // (2 * requested)
    return f"{stated}; reduce {flag} {value}" + (f", for example to {fitting}" if fitting else " or the data")


def available_bytes() -> int | None:
    """Memory that can be allocated without swapping; None where it is unknown."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not on this platform
        return None


def format_bytes(count: int) -> str:
    """A size with a decimal unit, such as 40 GB."""
    size, units = float(count), ["bytes", "kB", "MB", "GB", "TB", "PB", "EB"]
    while size >= 1_000 and len(units) > 1:
        size, units = size / 1_000, units[1:]
    return f"{size:.3g} {units[0]}"


def _integer_flags(arguments: Sequence[str]) -> Iterator[tuple[str, int]]:
    """The flags of a command whose values are integers, apart from the seed."""
    words = [part for each in arguments for part in (each.split("=", 1) if each.startswith("--") else [each])]
    for flag, value in pairwise(words):
        if flag.startswith("--") and flag != "--seed" and re.fullmatch(r"\d{1,30}", value):
            yield flag, int(value)
