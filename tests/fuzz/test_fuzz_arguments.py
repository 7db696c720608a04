"""Every verb with random arguments: a result, or a sentence and exit code 2."""

import shutil
from pathlib import Path
from random import Random

import pytest

from fuzz.driver import Case, Sandbox, run_cases
from parnassus.atlas.index import load_atlas
from parnassus.atlas.reading import settings_of
from parnassus.atlas.settings import Setting
from parnassus.cli.verbs import VERBS
from parnassus.train.options import Options

VALUES = ["", " ", "0", "1", "-1", "2", "3.5", "1e9", "1e400", "-0", "nan", "inf", "-inf", "9" * 30, "0x10", "1_000"]
VALUES += ["true", "None", "[]", "{}", "x", "--", "-", "-h", "--help", "last", "las", "a", "text", "agent", "points"]
VALUES += ["table", "classifier", "table/../text", "runs/text", "runs", "./runs/text/", "nothing", "../..", "~"]
VALUES += ["digit.png", "rows.csv", "empty.txt", ".", "empty.txt/x", "loop", "x" * 300]
VALUES += [
    "a/" * 200,
    "\udcff",
    "größe",
    "a b",
    "'\"",
    "$(touch x)",
    "cpu",
    "cuda:7",
    "mps",
    "meta",
    "B4.3",
    "B",
    "vae",
]
VALUES += ["latent", "PCA", "digits", "moons", "1,2", "1-5", "all", "new.csv", "new.json", "new.gif", "smoke", "fsdp"]
FLAGS = ["--folder", "--name", "--profile", "--device", "--seed", "--out", "--export", "--json", "--metric", "--note"]
FLAGS += ["--model", "--data", "--row", "--target", "--background", "--max-evals", "--tolerance", "--host", "--port"]
FLAGS += ["--no-browser", "--failed", "--episodes", "--learner", "--stochastic", "--nope", "--quiet", "--compile"]
ACTIONS = ["list", "compare", "open", "keep", "burn", ""]


@pytest.fixture
def sandbox(fuzz_sandbox: Sandbox, tmp_path: Path) -> Sandbox:
    sandbox = Sandbox(tmp_path / "sandbox").create()
    shutil.copytree(fuzz_sandbox.work, sandbox.work, dirs_exist_ok=True)
    (sandbox.work / "loop").symlink_to(sandbox.work / "loop")
    return sandbox


class RandomArguments:
    """Commands of random verbs with random names and flags; those of an experiment with its own flags too."""

    def __init__(self) -> None:
        atlas = load_atlas()
        self.experiments = list(atlas.experiments.values())
        self.verbs = [*VERBS, *atlas.commands]
        self.parts = [*atlas.rows, *atlas.rooms, *atlas.experiments]
        self.options = settings_of(Options)

    def case(self, random: Random) -> Case:
        verb = random.choice(self.verbs)
        match verb:
            case "run":
                entry = random.choice(self.experiments)
                names, settings = [entry.name], [*entry.settings, *self.options]
            case "sample" | "predict" | "evaluate" | "watch":
                runs = {"sample": ["text", "points"], "watch": ["agent"]}
                names = [random.choice([*runs.get(verb, ["classifier", "table", "text"]), *VALUES])]
                each = [each for entry in self.experiments for each in entry.verb_settings.get(verb, ())]
                settings = random.sample(each, min(5, len(each)))
            case "runs":
                names, settings = [random.choice(ACTIONS)], []
            case "check":  # claims take long: only those of one row, or none
                names, settings = [random.choice(["B1.4-1", "NOPE", *VALUES[20:]])], []
            case "list" | "show" | "atlas":
                names, settings = [random.choice(self.parts)][: random.randrange(2)], []
            case _:
                names, settings = [], []
        arguments = [verb, *names]
        for _ in range(random.choice((0, 1, 1, 2, 2, 3, 5))):
            arguments += self._argument(random, settings)
        if random.random() < 0.1:
            random.shuffle(arguments)
        return Case(verb, arguments)

    def _argument(self, random: Random, settings: list[Setting]) -> list[str]:
        choice = random.random()
        if choice < 0.2:
            return [random.choice(VALUES)]
        if settings and choice < 0.7:
            setting = random.choice(settings)
            values = [*VALUES, *setting.type.choices, setting.default.strip("\"'")]
            return [setting.flag, random.choice(values)]
        return [random.choice(FLAGS), *random.choices(VALUES, k=random.choice((0, 1, 1, 1, 2)))]


def test_random_arguments_give_a_result_or_a_sentence(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("parnassus.cli.run.execute", lambda recipe, options, folder: {})  # parse, check and create only
    monkeypatch.setattr("parnassus.cli.check.run_claim", lambda mark: (True, ""))  # claims read no input
    monkeypatch.setattr("parnassus.lab.serve.serve", lambda *args, **kwargs: 0)
    failures = run_cases("arguments", 0.6, RandomArguments().case, sandbox)
    assert not failures, "\n\n".join(failures)
