"""`make mutants`: plant every mutation of the list and report the share that claims and tests notice.

    python -m tests.mutants --minutes 5      work for five minutes; call it again to continue
    python -m tests.mutants --room flows     only the mutations of a room
    python -m tests.mutants --report         the shares and the survivors so far

Once, a run of all claims and tests records which of them execute each mutated statement. A mutation is then tried
against these only, the fast ones first, and against tests only where the claims pass. What was recorded and the
outcomes are stored in `.mutants/`: a mutation is tried again if it changed in the list, or after `--again`.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence

from .mutations import Mutation, read_mutations
from .recording import TARGET
from .storage import FOLDER, ROOT, load, store
from .trial import check_claims, check_tests, import_libraries, notices

MAX_SECONDS = 30.0
"""Claims, and tests, are tried for this many seconds of their recorded time; the slowest are left out."""
OUTCOMES = FOLDER / "outcomes.json"
PYTEST = ("-q", "-m", "not slow and not network", "-p", "no:cacheprovider")


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
    if not options.report:
        import_libraries()
        for kind in ("claims", "tests"):  # tests are tried where no claim notices the mutation
            if not (record(kind, mutations, end) and try_all(kind, mutations, end)):
                break
    return report(mutations)


def record(kind: str, mutations: Sequence[Mutation], end: float) -> bool:
    """Record the pieces that are missing or precede a mutation of their room; False if time ran out."""
    open_rooms = {each.room for each in remaining(kind, mutations)}
    rooms = {each.room for each in read_mutations()} if kind == "claims" else open_rooms
    for room in sorted(rooms) if open_rooms else ():
        for piece in (room, "contracts") if kind == "tests" else (room,):
            if time.monotonic() > end:
                return False
            record_piece(kind, piece)
    return True


def record_piece(kind: str, room: str) -> None:
    """Record what the claims or tests of a room reach, unless this is known for all mutations of the room."""
    path = FOLDER / f"{kind}_of_{room}.json"
    known = load(FOLDER / "recorded.json")
    expected = sorted(each.name for each in read_mutations() if each.room == room)
    if path.exists() and set(expected) <= set(known.get(path.name, [])):
        return
    _say(f"recording the {kind} of {room}")
    plugin = "tests.mutants.recording"
    command = ["-m", plugin, room] if kind == "claims" else ["-m", "pytest", "-p", plugin, *PYTEST, f"tests/{room}"]
    subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env={**os.environ, TARGET: str(path), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        check=False,  # a failing test is left out
    )
    store(FOLDER / "recorded.json", {**known, path.name: expected})


def remaining(kind: str, mutations: Sequence[Mutation]) -> list[Mutation]:
    """The mutations to be tried with the claims or tests: not yet tried, and not noticed by claims."""
    outcomes = load(OUTCOMES)
    return [
        each
        for each in mutations
        if kind not in (outcome := outcomes.get(each.name, {})) and not outcome.get("claims", False)
    ]


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


def try_all(kind: str, mutations: Sequence[Mutation], end: float) -> bool:
    """Try the mutations that were not tried yet with claims or tests; False if time ran out."""
    check, names = {"claims": check_claims, "tests": check_tests}[kind], reaching(kind)
    is_sound = False
    for mutation in remaining(kind, mutations):
        if time.monotonic() > end:
            return False
        selected = names.get(mutation.name, [])
        if not is_sound and selected and notices(None, check, selected):
            raise RuntimeError(f"the {kind} that reach {mutation.name} fail without it: mend them first")
        is_sound = is_sound or bool(selected)
        outcomes = load(OUTCOMES)
        outcome = outcomes.setdefault(mutation.name, {"kind": mutation.kind})
        outcome[kind] = bool(selected) and notices(mutation, check, selected)
        outcome[f"number of {kind}"] = len(selected)
        store(OUTCOMES, outcomes)
        _say(f"{'noticed by' if outcome[kind] else 'survives'} {kind}: {mutation.name}")
    return True


def report(mutations: Sequence[Mutation]) -> int:
    """Print what survives and the shares; 1 if a mutation of the list has not been tried."""
    outcomes = load(OUTCOMES)
    tried = {each.name: outcomes[each.name] for each in mutations if each.name in outcomes}
    done = {name: each for name, each in tried.items() if each["claims"] or "tests" in each}
    for name, outcome in tried.items():
        if not outcome["claims"]:
            verdict = {True: "tests only", False: "SURVIVES", None: "tests not tried"}[outcome.get("tests")]
            counts = f"reached by {outcome['number of claims']} claims, {outcome.get('number of tests', '?')} tests"
            _say(f"{verdict}: {name} ({counts})")
    for title, noticed, total in (
        ("claims or tests", sum(each["claims"] or each["tests"] for each in done.values()), len(done)),
        ("claims alone", sum(each["claims"] for each in tried.values()), len(tried)),
    ):
        _say(f"noticed by {title}: {noticed} of {total} ({100 * noticed / max(total, 1):.1f} %)")
    _say(f"tried: {len(done)} of {len(mutations)} mutations")
    return int(len(done) < len(mutations))


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
