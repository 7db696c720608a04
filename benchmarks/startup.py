"""Benchmark of the startup time of the command line against the import of the library that prints its tables.

`parnassus list`, `parnassus show` and `parnassus --help` are timed alternately with `import rich.table`, so that
background load affects all; the fastest run of each is reported.
Limit: `parnassus list` takes at most 4 times as long as `import rich.table`; the others are only printed.
Run: python benchmarks/startup.py
"""

import subprocess
import sys
import time

TURNS, LIMIT = 15, 4.0
COMMANDS = {
    "import rich.table": ("-c", "import rich.table"),
    "parnassus list": ("-m", "parnassus", "list"),
    "parnassus show B4.3-4": ("-m", "parnassus", "show", "B4.3-4"),
    "parnassus --help": ("-m", "parnassus", "--help"),
}


def measure() -> dict[str, float]:
    """Return the seconds of the fastest run of each command."""
    seconds = dict.fromkeys(COMMANDS, float("inf"))
    for _ in range(TURNS):
        for name, arguments in COMMANDS.items():
            start_time = time.perf_counter()
            subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
            seconds[name] = min(seconds[name], time.perf_counter() - start_time)
    return seconds


def main() -> int:
    measure()  # warm-up: writes the index and fills the file cache
    seconds = measure()
    baseline = seconds["import rich.table"]
    for name, elapsed in seconds.items():
        print(f"{name:<22} {1_000 * elapsed:7.0f} ms {elapsed / baseline:6.2f} x")
    return int(seconds["parnassus list"] > LIMIT * baseline)


if __name__ == "__main__":
    sys.exit(main())
