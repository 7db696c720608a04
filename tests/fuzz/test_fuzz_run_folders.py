"""Commands on run folders with one mutated file: the same result as before, or a sentence."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from fuzz.driver import Case, Outcome, Sandbox, run_cases, run_command
from fuzz.mutations import mutate_file

COMMANDS: dict[str, list[list[str]]] = {
    "classifier": [["predict", "RUN", "digit.png", "--json"], ["evaluate", "RUN", "--json"]],
    "text": [["sample", "RUN", "--max-new-tokens", "3", "--out", "sampled"]],
    "points": [["sample", "RUN", "--num-samples", "5", "--out", "sampled"]],
    "table": [["predict", "RUN", "rows.csv", "--json"]],
    "agent": [["evaluate", "RUN", "--n-eval-episodes", "1", "--json"]],
}
"""Commands whose output depends on the files of a run, for each finished run of the sandbox."""
LISTS = [["runs"], ["runs", "compare", "RUN", "agent"], ["runs", "open", "RUN"], ["runs", "keep", "RUN"]]
LISTS += [["resume", "RUN"]]


@pytest.fixture
def sandbox(fuzz_sandbox: Sandbox, tmp_path: Path) -> Sandbox:
    sandbox = Sandbox(tmp_path / "sandbox").create()
    shutil.copytree(fuzz_sandbox.work, sandbox.work, dirs_exist_ok=True)
    return sandbox


class MutatedRuns:
    """Copies of finished runs with one mutated file, and the results of commands on the intact runs."""

    def __init__(self, sandbox: Sandbox, commands: dict[str, list[list[str]]]) -> None:
        self.sandbox = sandbox
        self.commands = [(run, command) for run, each in commands.items() for command in each]
        self.intact = {" ".join([run, *each]): self._result(run, each) for run, each in self.commands}

    def _result(self, run: str, command: Sequence[str]) -> tuple[str, bytes]:
        outcome = run_command([run if each == "RUN" else each for each in command], self.sandbox)
        assert (outcome.code, outcome.crash) == (0, ""), outcome
        return outcome.out, self._sampled()

    def _sampled(self) -> bytes:
        """What the last command wrote to --out, which is then removed."""
        found = b""
        for name in ("sampled.npy", "sampled.txt"):
            path = self.sandbox.work / name
            found += path.read_bytes() if path.is_file() else b""
            path.unlink(missing_ok=True)
        return found

    def case(self, random: Random) -> Case:
        run, command = random.choice(self.commands)
        shutil.rmtree(self.sandbox.work / "mutated", ignore_errors=True)
        copy = self.sandbox.work / "mutated" / run  # of the same name, which tables contain
        shutil.copytree(self.sandbox.work / "runs" / run, copy)
        files = sorted(each for each in copy.iterdir() if each.is_file() and each.stat().st_size)
        label = mutate_file(random, random.choice(files), self.sandbox.outside)
        intact, key = self.intact, " ".join([run, *command])

        def check(outcome: Outcome) -> str:
            result = outcome.out, self._sampled()
            return "" if outcome.code or result == intact[key] else f"another result: {result} instead of {intact[key]}"

        arguments = [run if each == "RUN" else each for each in command]
        return Case(f"{run}/{label}", [*arguments, "--folder", "mutated"], check=check)


def test_a_mutated_run_gives_the_same_result_or_a_sentence(sandbox: Sandbox) -> None:
    failures = run_cases("results", 0.3, MutatedRuns(sandbox, COMMANDS).case, sandbox)
    assert not failures, "\n\n".join(failures)
