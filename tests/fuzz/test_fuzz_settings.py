"""Every experiment with random settings, executed: results, or a sentence and exit code 2."""

import shutil
from pathlib import Path
from random import Random

import pytest

from fuzz.driver import Case, Outcome, Sandbox, run_cases
from parnassus.atlas.declarations import Entry
from parnassus.atlas.index import load_atlas
from parnassus.atlas.settings import Setting

INTEGERS = ["0", "1", "2", "3", "5", "7", "-1"]  # not large ones, which may be numbers of steps
FLOATS = ["0", "1e-300", "1e300", "0.5", "1", "-1", "nan", "inf", "1e-8", "3"]
TEXTS = ["", "x", "digit.png", "rows.csv", "empty.txt", ".", "digits", "moons", "1 2 3", "größe", "CartPole-v1"]


@pytest.fixture
def sandbox(fuzz_sandbox: Sandbox, tmp_path: Path) -> Sandbox:
    sandbox = Sandbox(tmp_path / "sandbox").create()
    for name in ("digit.png", "rows.csv", "empty.txt"):
        shutil.copy(fuzz_sandbox.work / name, sandbox.work)
    return sandbox


class RandomSettings:
    """Runs of the smoke profile with up to four settings exchanged, most of them small or at their limits."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.root = sandbox.work / "runs"
        self.experiments = list(load_atlas().experiments.values())

    def case(self, random: Random) -> Case:
        shutil.rmtree(self.root, ignore_errors=True)
        entry = random.choice(self.experiments)
        arguments = ["run", entry.name, "--profile", "smoke", "--device", "cpu", "--quiet", *self._few_steps(entry)]
        for setting in random.sample(entry.settings, min(len(entry.settings), random.choice((1, 1, 2, 3, 4)))):
            arguments += self._flag(random, setting)
        return Case(entry.name, arguments, check=self._check)

    def _few_steps(self, entry: Entry) -> list[str]:
        return ["--steps", "2"] if any(each.name == "steps" for each in entry.settings) else []

    def _flag(self, random: Random, setting: Setting) -> list[str]:
        kind = setting.type
        values = {"int": INTEGERS, "float": FLOATS, "choice": list(map(str, kind.choices))}.get(kind.kind, TEXTS)
        if kind.kind == "bool":
            return [setting.flag] if setting.default == "False" else [setting.flag.replace("--", "--no-", 1)]
        return [setting.flag, *random.choices(values, k=random.choice((1, 2, 3)) if kind.is_sequence else 1)]

    def _check(self, outcome: Outcome) -> str:
        if outcome.code == 0 and not list(self.root.glob("*/result.json")):
            return "no results"
        left = [path.name for path in self.root.glob("*")] if self.root.is_dir() else []
        return f"left {', '.join(left)} without progress" if outcome.code and not self._have_progress(left) else ""

    def _have_progress(self, names: list[str]) -> bool:
        return all((self.root / name / "metrics.csv").exists() for name in names)


def test_random_settings_give_results_or_a_sentence(sandbox: Sandbox) -> None:
    failures = run_cases("settings", 0.002, RandomSettings(sandbox).case, sandbox)
    assert not failures, "\n\n".join(failures)
