"""`make mutants`: plant every mutation of the list and report the share that claims and tests notice.

    python -m tests.mutants --minutes 5      work for five minutes; call it again to continue
    python -m tests.mutants --room flows     only the mutations of a room
    python -m tests.mutants --report         the shares and the survivors so far

Once, a run of all claims and tests records which of them execute each mutated statement. A mutation is then tried
against these only, the fast ones first. What was recorded and the outcomes are stored in `.mutants/`: a mutation is
tried again if it changed in the list, or after `--again`.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .mutations import Mutation, read_mutations
from .recording import TARGET
from .storage import FOLDER, ROOT, load, store
from .trial import check_claims, check_tests, import_libraries, notices

MAX_SECONDS = 30.0
"""Claims, and tests, are tried for this many seconds of their recorded time; the slowest are left out."""
OUTCOMES = FOLDER / "outcomes.json"


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10_000.0, help="begin nothing new after this time")
    parser.add_argument("--room", help="only the mutations of this room")
    parser.add_argument("--again", action="store_true", help="try again what was tried")
    parser.add_argument("--record", action="store_true", help="record again what claims and tests execute")
    parser.add_argument("--report", action="store_true", help="report the outcomes so far")
    options = parser.parse_args(arguments)
    end = time.monotonic() + 60 * options.minutes
    mutations = [each for each in read_mutations() if options.room in (None, each.room)]
    if options.again:
        chosen = {each.name for each in mutations}
        store(OUTCOMES, {name: outcome for name, outcome in load(OUTCOMES).items() if name not in chosen})
    if options.record:
        for path in FOLDER.glob("*_of_*.json"):
            path.unlink()
    if not options.report and record(end):
        try_all(mutations, end)
    return report(mutations)


def record(end: float) -> bool:
    """Record the pieces that are missing or precede a mutation of their room; False if time ran out."""
    rooms = sorted({each.room for each in read_mutations()})
    pieces = [(kind, room) for room in rooms for kind in ("claims", "tests")] + [("tests", "contracts")]
    for kind, room in pieces:
        path = FOLDER / f"{kind}_of_{room}.json"
        expected = sorted(each.name for each in read_mutations() if each.room == room)
        if path.exists() and set(expected) <= set(load(FOLDER / f"recorded_{kind}_of_{room}.json").get("names", [])):
            continue
        if time.monotonic() > end:
            return False
        _say(f"recording the {kind} of {room}")
        command = {
            "claims": ["-m", "tests.mutants.recording", room],
            "tests": ["-m", "pytest", "-p", "tests.mutants.recording", *PYTEST, f"tests/{room}"],
        }[kind]
        subprocess.run(  # noqa: S603 - our own command
            [sys.executable, *command],
            cwd=ROOT,
            env={**os.environ, TARGET: str(path), "OMP_NUM_THREADS": "1"},
            stdout=subprocess.DEVNULL,
            check=False,  # a failing test is left out
        )
        store(FOLDER / f"recorded_{kind}_of_{room}.json", {"names": expected})
    return True


PYTEST = ("-q", "-m", "not slow and not network", "-p", "no:cacheprovider")


def reaching(kind: str) -> dict[str, list[str]]:
    """The claims or tests that reach each mutation, the fastest first."""
    found: list[tuple[float, str, str]] = [
        (entry["seconds"], name, mutation)
        for path in FOLDER.glob(f"{kind}_of_*.json")
        for name, entry in load(path).items()
        for mutation in entry["reached"]
    ]
    by_mutation: dict[str, list[str]] = {}
    total: dict[str, float] = {}
    for seconds, name, mutation in sorted(found):
        total[mutation] = total.get(mutation, 0.0) + seconds
        if total[mutation] < MAX_SECONDS:
            by_mutation.setdefault(mutation, []).append(name)
    return by_mutation


def try_all(mutations: Sequence[Mutation], end: float) -> None:
    """Try the mutations that were not tried yet until the time is over."""
    checks = {"claims": (check_claims, reaching("claims")), "tests": (check_tests, reaching("tests"))}
    outcomes, is_sound = load(OUTCOMES), False
    import_libraries()
    for mutation in mutations:
        if mutation.name in outcomes:
            continue
        if time.monotonic() > end:
            return
        outcome: dict[str, Any] = {"kind": mutation.kind}
        for kind, (check, names) in checks.items():
            selected = names.get(mutation.name, [])
            if not is_sound and selected and notices(None, check, selected):
                raise RuntimeError(f"the {kind} that reach {mutation.name} fail without it: mend them first")
            outcome[kind] = bool(selected) and notices(mutation, check, selected)
            outcome[f"number of {kind}"] = len(selected)
        is_sound = True
        outcomes[mutation.name] = outcome
        store(OUTCOMES, outcomes)
        _say(f"{_verdict(outcome)}  {mutation.name}")


def _verdict(outcome: dict[str, Any]) -> str:
    kinds = [kind for kind in ("claims", "tests") if outcome[kind]]
    return f"{' and '.join(kinds) or 'SURVIVES':<16}"


def report(mutations: Sequence[Mutation]) -> int:
    """Print the shares and what survives; 1 if a mutation of the list has not been tried."""
    outcomes = load(OUTCOMES)
    tried = {each.name: outcomes[each.name] for each in mutations if each.name in outcomes}
    for name, outcome in tried.items():
        if not (outcome["claims"] and outcome["tests"]):
            counts = f"{outcome['number of claims']} claims, {outcome['number of tests']} tests reach it"
            _say(f"{_verdict(outcome)}  {name} ({counts})")
    total = len(tried)
    for title, noticed in (
        ("claims or tests", [each["claims"] or each["tests"] for each in tried.values()]),
        ("claims alone", [each["claims"] for each in tried.values()]),
        ("tests alone", [each["tests"] for each in tried.values()]),
    ):
        _say(f"noticed by {title}: {sum(noticed)} of {total} ({100 * sum(noticed) / max(total, 1):.1f} %)")
    _say(f"tried: {total} of {len(mutations)} mutations")
    return int(total < len(mutations))


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
