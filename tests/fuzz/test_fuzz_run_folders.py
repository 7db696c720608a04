"""Commands on run folders with one mutated file: the same result as before, or a sentence."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from fuzz.driver import Case, Outcome, Sandbox, run_cases, run_command
from fuzz.mutations import mutate_file
from parnassus.runs import RunFolder
from parnassus.train import Run

EXPLAIN = ["explain", "--model", "RUN", "--data", "rows.csv", "--row", "1", "--background", "2", "--max-evals", "60"]
RESULTS = [
    *3 * [("classifier", ["predict", "RUN", "digit.png", "--json"])],
    *3 * [("table", ["predict", "RUN", "rows.csv", "--json"])],
    *2 * [("text", ["sample", "RUN", "--max-new-tokens", "3", "--out", "sampled"])],
    ("classifier", ["evaluate", "RUN", "--json"]),
    ("agent", ["evaluate", "RUN", "--n-eval-episodes", "1", "--json"]),
    ("table", EXPLAIN),
    ("points", ["sample", "RUN", "--num-samples", "5", "--out", "sampled"]),
]
"""Commands whose output depends on the files of a run, the fast ones more often."""
ACTIONS = [("classifier", ["runs", "keep", "RUN"]), ("classifier", ["runs", "open", "RUN"])]
"""Commands that read the files of a run and compute nothing."""
RESUMED = ["run", "autoencoder_memorisation", "--profile", "smoke", "--steps", "3", "--quiet", "--device", "cpu"]
FILES = {"sampled.npy", "sampled.txt"}


@pytest.fixture
def sandbox(fuzz_sandbox: Sandbox, tmp_path: Path) -> Sandbox:
    sandbox = Sandbox(tmp_path / "sandbox").create()
    shutil.copytree(fuzz_sandbox.work, sandbox.work, dirs_exist_ok=True)
    return sandbox


class MutatedRuns:
    """Commands on copies of runs with one mutated file, which must give the results of the intact runs."""

    def __init__(self, sandbox: Sandbox, commands: Sequence[tuple[str, list[str]]]) -> None:
        self.sandbox, self.commands = sandbox, commands
        self.intact: dict[str, tuple[str, dict[str, bytes]]] = {}
        for run, command in commands:
            self._copy(run)
            outcome = run_command(self._arguments(run, command), sandbox)
            assert (outcome.code, outcome.crash) == (0, ""), outcome
            self.intact[" ".join([run, *command])] = self._result(run, outcome)

    def case(self, random: Random) -> Case:
        run, command = random.choice(self.commands)
        copy = self._copy(run)
        files = sorted(each for each in copy.iterdir() if each.is_file() and each.stat().st_size)
        label = mutate_file(random, random.choice(files), self.sandbox.outside)
        intact = self.intact[" ".join([run, *command])]

        def check(outcome: Outcome) -> str:
            result = self._result(run, outcome)
            return "" if outcome.code or result == intact else f"another result: {result} instead of {intact}"

        return Case(f"{run}/{label}", self._arguments(run, command), check=check)

    def _copy(self, run: str) -> Path:
        """A copy of the run of the same name, since tables contain it, in the folder `mutated`."""
        shutil.rmtree(self.sandbox.work / "mutated", ignore_errors=True)
        shutil.copytree(self.sandbox.work / "runs" / run, self.sandbox.work / "mutated" / run)
        return self.sandbox.work / "mutated" / run

    def _arguments(self, run: str, command: Sequence[str]) -> list[str]:
        return [*(run if each == "RUN" else each for each in command), "--folder", "mutated"]

    def _result(self, run: str, outcome: Outcome) -> tuple[str, dict[str, bytes]]:
        """What a command printed, and the files that it wrote, which are removed."""
        found: dict[str, bytes] = {}
        for path in (*(self.sandbox.work / name for name in FILES), *(self.sandbox.work / "results").glob("*.json")):
            if path.is_file():
                found[path.name] = path.read_bytes()
                path.unlink()
        return outcome.out, found


def test_a_mutated_run_gives_the_same_result_or_a_sentence(sandbox: Sandbox) -> None:
    failures = run_cases("results", 0.06, MutatedRuns(sandbox, RESULTS).case, sandbox)
    assert not failures, "\n\n".join(failures)


def test_actions_on_a_mutated_run_give_the_same_result_or_a_sentence(sandbox: Sandbox) -> None:
    failures = run_cases("actions", 0.1, MutatedRuns(sandbox, ACTIONS).case, sandbox)
    assert not failures, "\n\n".join(failures)


class MutatedLists:
    """Lists of an intact run between mutated ones: the command succeeds and shows all of them."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox

    def case(self, random: Random) -> Case:
        root = self.sandbox.work / "listed"
        shutil.rmtree(root, ignore_errors=True)
        labels = []
        for name in ("early", "intact", "late"):
            run = random.choice(["classifier", "agent"])
            shutil.copytree(self.sandbox.work / "runs" / run, root / name)
            files = sorted(each for each in (root / name).glob("*.json"))
            if name != "intact":
                labels.append(mutate_file(random, random.choice(files), self.sandbox.outside))
        return Case(", ".join(labels), ["runs", "--folder", "listed"], check=self._check)

    def _check(self, outcome: Outcome) -> str:
        shown = {line.split()[0]: line.split()[1] for line in outcome.out.splitlines() if line[:1].strip()}
        is_complete = outcome.code == 0 and {"early", "late"} <= shown.keys() and shown.get("intact") == "finished"
        return "" if is_complete else f"incomplete list: {outcome.out}{outcome.err}"


def test_mutated_runs_are_listed_with_the_intact_ones(sandbox: Sandbox) -> None:
    failures = run_cases("lists", 0.1, MutatedLists(sandbox).case, sandbox)
    assert not failures, "\n\n".join(failures)


class ResumedRuns:
    """An interrupted run with one mutated file is resumed: the same results, or a sentence."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox, self.copy = sandbox, sandbox.work / "mutated" / "stopped"
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Run, "finish", _stop)
            assert run_command([*RESUMED, "--folder", "stopped", "--name", "stopped"], sandbox).code == 130
        self._copy()
        outcome = run_command(["resume", "stopped", "--folder", "mutated"], sandbox)
        assert outcome.code == 0, outcome
        self.intact = RunFolder(self.copy).results

    def case(self, random: Random) -> Case:
        self._copy()
        files = sorted(each for each in self.copy.iterdir() if each.is_file() and each.stat().st_size)
        label = mutate_file(random, random.choice(files), self.sandbox.outside)

        def check(outcome: Outcome) -> str:
            if outcome.code:
                return ""
            found = RunFolder(self.copy).results
            return "" if found == self.intact else f"another result: {found} instead of {self.intact}"

        return Case(label, ["resume", "stopped", "--folder", "mutated"], check=check)

    def _copy(self) -> None:
        shutil.rmtree(self.sandbox.work / "mutated", ignore_errors=True)
        shutil.copytree(self.sandbox.work / "stopped" / "stopped", self.copy)


def _stop(_run: Run, _result: object) -> None:
    raise KeyboardInterrupt


def test_a_mutated_run_is_resumed_with_the_same_results_or_a_sentence(sandbox: Sandbox) -> None:
    failures = run_cases("resumed", 0.003, ResumedRuns(sandbox).case, sandbox)
    assert not failures, "\n\n".join(failures)
