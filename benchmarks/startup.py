"""Benchmark of the startup time of the command line against the import of the library that prints its tables.

`parnassus list`, `parnassus show` and `parnassus --help` are timed alternately with `import rich.table`, so that
background load affects all; the fastest run of each is reported. They run on a copy of the package in which
experiments are duplicated until there are 300.
Limit: `parnassus list` takes at most 4 times as long as `import rich.table`; the others are only printed.
Run: python benchmarks/startup.py
"""

import os
import shutil
import subprocess
import sys
import time
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory

import parnassus

TURNS, LIMIT, NUM_EXPERIMENTS = 15, 4.0, 300
COMMANDS = {
    "import rich.table": ("-c", "import rich.table"),
    "parnassus list": ("-m", "parnassus", "list"),
    "parnassus show B4.3-4": ("-m", "parnassus", "show", "B4.3-4"),
    "parnassus --help": ("-m", "parnassus", "--help"),
}


def copy_package(folder: Path) -> None:
    """Copy the package into `folder` and duplicate its experiments until there are `NUM_EXPERIMENTS`."""
    package = folder / "parnassus"
    shutil.copytree(Path(parnassus.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    experiments = [path for path in package.glob("*/experiments/*.py") if path.stem != "__init__"]
    for number, path in zip(range(len(experiments), NUM_EXPERIMENTS), cycle(experiments), strict=False):
        shutil.copy(path, path.with_stem(f"{path.stem}_{number}"))


def measure(environment: dict[str, str]) -> dict[str, float]:
    """Return the seconds of the fastest run of each command."""
    seconds = dict.fromkeys(COMMANDS, float("inf"))
    for _ in range(TURNS):
        for name, arguments in COMMANDS.items():
            start_time = time.perf_counter()
            subprocess.run([sys.executable, *arguments], check=True, capture_output=True, env=environment)
            seconds[name] = min(seconds[name], time.perf_counter() - start_time)
    return seconds


def main() -> int:
    with TemporaryDirectory() as folder:
        copy_package(Path(folder))
        environment = os.environ | {"PYTHONPATH": folder, "XDG_CACHE_HOME": folder}
        listing = subprocess.run(
            [sys.executable, "-m", "parnassus", "list"], check=True, capture_output=True, text=True, env=environment
        ).stdout
        assert sum(line.startswith("  ") for line in listing.splitlines()) >= NUM_EXPERIMENTS
        measure(environment)  # warm-up: writes the index and fills the file cache
        seconds = measure(environment)
    baseline = seconds["import rich.table"]
    for name, elapsed in seconds.items():
        print(f"{name:<22} {1_000 * elapsed:7.0f} ms {elapsed / baseline:6.2f} x")
    return int(seconds["parnassus list"] > LIMIT * baseline)


if __name__ == "__main__":
    sys.exit(main())
