"""Run the laptop profile of every experiment and record whether its results are in their bands.

results/bands.json records, per experiment and seed, the date, the version, the duration and the results of the last
run. Runs that were not recorded yet come first, then the oldest. The tool can be interrupted at any time and continues
with the unfinished run; `tests/test_results.py` compares the recorded results with the bands of today.

Run: make bands ARGS="vae ppo --seeds 0 1 --minutes 30", or python tests/bands.py --help
"""

import argparse
import json
import shutil
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TypedDict, cast

from parnassus import __version__
from parnassus.atlas.bands import judge
from parnassus.atlas.index import Atlas
from parnassus.runs.durable import replace_durably
from parnassus.runs.folder import RunFolder

ROOT = Path(__file__).parents[1]
RECORDS = ROOT / "results" / "bands.json"
RUNS = ROOT / "build" / "bands"


class Record(TypedDict):
    """The last run of an experiment with a seed."""

    date: str
    version: str
    seconds: float
    results: dict[str, float]


Records = dict[str, dict[str, Record]]


def read_records() -> Records:
    """The records by experiment and seed; {} before the first run."""
    records: Records = json.loads(RECORDS.read_text(encoding="utf-8")) if RECORDS.exists() else {}
    return records


def last_date(records: Records, name: str, seed: str) -> str:
    """The date of the last run; "", which sorts first, if there was none."""
    record = records.get(name, {}).get(seed)
    return record["date"] if record else ""


def outside(name: str, record: Record) -> dict[str, str]:
    """The results outside of today's bands, with the bands."""
    verdict = judge(Atlas().experiment(name).expected, record["results"], applies=True)
    return {each.name: f"{each.value:.5g} is not {each.band}" for each in verdict.values if each.holds is False}


def describe_version() -> str:
    """The version of the package and the commit of the working tree."""
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return f"{__version__} ({commit.stdout.strip() or 'no commit'})"


def run_or_resume(name: str, seed: str, end: float) -> RunFolder | None:
    """Run an experiment, or resume its run; None if the time is over or the run failed."""
    folder = RUNS / f"{name}-seed-{seed}"
    if (folder / "checkpoint.safetensors").exists() and not (folder / "result.json").exists():
        if execute(["resume", str(folder)], end):
            return RunFolder(folder)
        if time.monotonic() > end:
            return None
    shutil.rmtree(folder, ignore_errors=True)  # recorded, without a checkpoint, or of an earlier version
    place = ["--folder", str(RUNS), "--name", folder.name]
    done = execute(["run", name, "--seed", seed, *place, "--device", "cpu", "--quiet"], end)
    return RunFolder(folder) if done else None


def execute(arguments: list[str], end: float) -> bool:
    """Whether the command succeeds before the time `end`; then it is interrupted and saves a checkpoint."""
    process = subprocess.Popen([sys.executable, "-m", "parnassus", *arguments], stdout=subprocess.DEVNULL)
    try:
        return process.wait(timeout=max(0.0, end - time.monotonic())) == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            process.wait()


def main() -> int:
    """Run what is due, print a line per run, and return 1 if a result is outside of its band."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="experiments; by default all")
    parser.add_argument("--seeds", nargs="+", default=["0"], help="seeds (default: 0)")
    parser.add_argument("--minutes", type=float, default=60.0, help="stop after this time (default: 60)")
    arguments = parser.parse_args()
    records, end, failed = read_records(), time.monotonic() + 60 * arguments.minutes, False
    names = [Atlas().experiment(name).name for name in arguments.names or Atlas().experiments]
    wanted = [(name, seed) for name in names for seed in arguments.seeds]
    wanted.sort(key=lambda pair: last_date(records, *pair))
    for name, seed in wanted:
        if time.monotonic() > end:
            break
        folder = run_or_resume(name, seed, end)
        if folder is None:
            failed |= time.monotonic() < end
            print(f"{name}, seed {seed}: {'failed' if time.monotonic() < end else 'continues next time'}", flush=True)
            continue
        result = folder.read_json("result.json")
        record = Record(
            date=datetime.now(UTC).date().isoformat(),
            version=describe_version(),
            seconds=cast("float", result["seconds"]),
            results=cast("dict[str, float]", result["result"]),
        )
        records.setdefault(name, {})[seed] = record
        new = RECORDS.with_name(".bands.json.new")
        new.write_text(json.dumps(records, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        replace_durably(new, RECORDS)
        bad = outside(name, record)
        failed |= bool(bad)
        print(f"{name}, seed {seed}: {record['seconds']:.0f} s, {bad or 'inside the bands'}", flush=True)
    runs = sum(len(seeds) for seeds in read_records().values())
    print(f"{runs} runs of {len(records)} of {len(Atlas().experiments)} experiments are recorded")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
