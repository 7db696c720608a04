"""What it takes to start: `parnassus list` and `--help` beside importing the library that prints their tables.

The commands take turns, so that a noisy machine slows all alike; each is given by its fastest run. `list` may take at
most four times as long as `import rich.table`.
Run it with: python benchmarks/startup.py
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
    """The fewest seconds of each command."""
    seconds = dict.fromkeys(COMMANDS, float("inf"))
    for _ in range(TURNS):
        for name, arguments in COMMANDS.items():
            began = time.perf_counter()
            subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
            seconds[name] = min(seconds[name], time.perf_counter() - began)
    return seconds


def main() -> int:
    measure()  # the index is written, files are in memory
    seconds = measure()
    base = seconds["import rich.table"]
    for name, own in seconds.items():
        print(f"{name:<22} {1_000 * own:7.0f} ms {own / base:6.2f} x")
    return int(seconds["parnassus list"] > LIMIT * base)


if __name__ == "__main__":
    sys.exit(main())
