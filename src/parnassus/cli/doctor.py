"""`parnassus doctor`: report installed packages, devices and data sets, and how to get missing ones."""

import importlib.metadata
import os
import platform
import re

from rich.console import Console

from parnassus import __version__
from parnassus.cli.plain_table import plain_table

console = Console(highlight=False)


def examine_machine() -> int:
    """Report versions, devices, extras and data sets; exit code 1 if a required package is missing."""
    missing = _packages()
    _devices()
    _data()
    return 1 if missing else 0


def _packages() -> list[str]:
    console.print(f"[bold]parnassus {__version__}[/], Python {platform.python_version()}\n")
    try:
        requirements = importlib.metadata.requires("parnassus") or []
    except importlib.metadata.PackageNotFoundError:
        console.print("run from its source folder, not installed: requirements are listed in pyproject.toml")
        return []
    table = plain_table("package", "installed", "required")
    missing = []
    for requirement in requirements:
        if "extra ==" in requirement and "dev" not in requirement and "bench" not in requirement:
            kind = re.findall(r"extra == ['\"](\w+)['\"]", requirement)[0]
        elif "extra ==" in requirement:
            continue
        else:
            kind = ""
        name = re.split(r"[<>=!~;\s\[]", requirement)[0]
        wanted = requirement.split(";")[0].removeprefix(name).strip()
        try:
            found = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found = (
                f"[yellow]missing: pip install 'parnassus\\[{kind}]'[/]"
                if kind
                else f"[red]missing: pip install '{name}{wanted}'[/]"
            )
            missing += [] if kind else [name]
        table.add_row(name, found, wanted)
    console.print(table)
    return missing


def _devices() -> None:
    import torch

    console.print(f"\n[bold]devices[/]\ncpu: {os.cpu_count()} cores, torch uses {torch.get_num_threads()} threads")
    for index in range(torch.cuda.device_count()):
        properties = torch.cuda.get_device_properties(index)
        console.print(f"cuda:{index}: {properties.name}, {properties.total_memory / 2**30:.0f} GiB")
    if torch.backends.mps.is_available():
        console.print("mps: Apple GPU")
    if not torch.cuda.is_available() and not torch.backends.mps.is_available():
        console.print("no accelerator: everything runs on the CPU")


def _data() -> None:
    from parnassus.data import data_folder, data_status

    console.print(f"\n[bold]data[/] in {data_folder()} (set PARNASSUS_DATA to move it)", soft_wrap=True)
    table = plain_table("data set", "available", "location, or how to obtain it")
    for status in data_status():
        table.add_row(
            status.name, "[green]yes[/]" if status.present else "no", status.where if status.present else status.how
        )
    console.print(table)
