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
import random
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from parnassus.atlas.index import Atlas

from .mutations import Mutation, read_mutations
from .recording import TARGET
from .storage import FOLDER, ROOT, load, store
from .trial import check_claims, check_tests, import_libraries, notices

STAGES = ("claims", "nearby tests", "tests")
"""Tests are tried where no claim notices the mutation: first those of the same folder, then those of the room."""
MAX_SECONDS = 15.0
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
    random.Random(0).shuffle(mutations)  # the shares so far then estimate the final ones
    if options.again:
        chosen = {each.name for each in mutations}
        store(OUTCOMES, {name: outcome for name, outcome in load(OUTCOMES).items() if name not in chosen})
    if options.record:
        for path in FOLDER.glob("reached by *.json"):
            path.unlink()
    if not options.report:
        import_libraries()
        for stage in STAGES:
            if not (record(stage, mutations, end) and try_all(stage, mutations, end)):
                break
    return report(mutations)


def record(stage: str, mutations: Sequence[Mutation], end: float) -> bool:
    """Record the pieces that the mutations of this stage need; False if time ran out."""
    needed = {piece for each in remaining(stage, mutations) for piece in pieces(stage, each)}
    for piece in sorted(needed):
        if time.monotonic() > end:
            return False
        record_piece(stage, piece)
    return True


def pieces(stage: str, mutation: Mutation) -> set[str]:
    """The rooms whose claims, or the folders whose tests, may reach the mutation."""
    if stage == "claims":
        return {each.room for each in read_mutations()}
    folder = Path("tests", mutation.file).parent if stage == "nearby tests" else Path("tests", mutation.room)
    return {folder.as_posix() if (ROOT / folder).exists() else f"tests/{mutation.room}", "tests/contracts"}


def record_piece(stage: str, piece: str) -> None:
    """Record what the claims or tests of a piece reach, unless this is known for all mutations of its room."""
    path = FOLDER / f"reached by {'claims' if stage == 'claims' else 'tests'} {piece.replace('/', '.')}.json"
    known = load(FOLDER / "recorded.json")
    expected = sorted(each.name for each in read_mutations() if each.room in piece.split("/"))
    if path.exists() and set(expected) <= set(known.get(path.name, [])):
        return
    _say(f"recording {'the claims of ' if stage == 'claims' else ''}{piece}")
    plugin = "tests.mutants.recording"
    command = ["-m", plugin, piece] if stage == "claims" else ["-m", "pytest", "-p", plugin, *PYTEST, piece]
    subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env={**os.environ, TARGET: str(path), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        check=False,  # a failing test is left out
    )
    store(FOLDER / "recorded.json", {**known, path.name: expected})


def remaining(stage: str, mutations: Sequence[Mutation]) -> list[Mutation]:
    """The mutations that this stage has not tried and that no stage has noticed."""
    outcomes = load(OUTCOMES)
    tried = [(each, outcomes.get(each.name, {})) for each in mutations]
    return [each for each, outcome in tried if stage not in outcome and not is_noticed(outcome)]


def is_noticed(outcome: Mapping[str, Any]) -> bool:
    """Whether a stage has noticed the mutation."""
    return any(outcome.get(stage, False) for stage in STAGES)


def reaching(stage: str) -> dict[str, list[str]]:
    """The claims or tests that reach each mutation, the fastest first."""
    found = {
        (entry["seconds"], name, mutation)
        for path in FOLDER.glob(f"reached by {'claims' if stage == 'claims' else 'tests'} *.json")
        for name, entry in load(path).items()
        for mutation in entry["reached"]
    }
    by_mutation: dict[str, list[str]] = {}
    total: dict[str, float] = {}
    for seconds, name, mutation in sorted(found):
        total[mutation] = total.get(mutation, 0.0) + seconds
        if total[mutation] < MAX_SECONDS:
            by_mutation.setdefault(mutation, []).append(name)
    return by_mutation


def try_all(stage: str, mutations: Sequence[Mutation], end: float) -> bool:
    """Try the mutations that this stage has not tried yet; False if time ran out."""
    check, names = check_claims if stage == "claims" else check_tests, reaching(stage)
    is_sound = False
    for mutation in remaining(stage, mutations):
        if time.monotonic() > end:
            return False
        selected = names.get(mutation.name, [])
        if not is_sound and selected and notices(None, check, selected):
            raise RuntimeError(f"the {stage} that reach {mutation.name} fail without it: mend them first")
        is_sound = is_sound or bool(selected)
        outcomes = load(OUTCOMES)
        outcome = outcomes.setdefault(mutation.name, {"kind": mutation.kind, "reached by": {}})
        outcome[stage] = bool(selected) and notices(mutation, check, selected)
        outcome["reached by"][stage] = len(selected)
        store(OUTCOMES, outcomes)
        _say(f"{'noticed by' if outcome[stage] else 'survives'} {stage}: {mutation.name}")
    return True


def report(mutations: Sequence[Mutation]) -> int:
    """Print what claims do not notice, and the shares; 1 if a mutation of the list has not been tried."""
    outcomes = load(OUTCOMES)
    tried = {each.name: outcomes[each.name] for each in mutations if each.name in outcomes}
    done = {name: each for name, each in tried.items() if is_noticed(each) or STAGES[-1] in each}
    files = listed_files()
    listed = [tried[each.name] for each in mutations if each.name in tried and each.file in files]
    for name, outcome in tried.items():
        if not outcome["claims"]:
            verdict = "tests only" if is_noticed(outcome) else "SURVIVES" if name in done else "not yet tried by tests"
            _say(
                f"{verdict}: {name} ({', '.join(f'{count} {stage}' for stage, count in outcome['reached by'].items())})"
            )
    for title, noticed, total in (
        ("claims alone", sum(each["claims"] for each in tried.values()), len(tried)),
        ("claims alone, in files that a row lists", sum(each["claims"] for each in listed), len(listed)),
    ):
        _say(f"noticed by {title}: {noticed} of {total} ({100 * noticed / max(total, 1):.1f} %)")
    noticed, total = sum(map(is_noticed, done.values())), len(mutations)
    share = f" ({100 * noticed / total:.1f} %)" if len(done) == total else ""  # the easy ones are done first
    _say(f"noticed by claims or tests: {noticed} of {total}{share}; {len(done) - noticed} survive")
    _say(f"tried: {len(done)} of {total} mutations")
    return int(len(done) < total)


def listed_files() -> set[str]:
    """The files with a symbol that a row of the atlas lists; only these can be reached by claims of their own."""
    symbols = {symbol for row in Atlas().rows.values() for symbol in row.symbols}
    modules = {symbol.rsplit(".", count)[0] for symbol in symbols for count in (1, 2)}
    return {f"{module.removeprefix('parnassus.').replace('.', '/')}.py" for module in modules}


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
