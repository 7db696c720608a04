"""What the lab knows: the atlas, the runs on disk, the processes at work. Pages ask it; it knows no page."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from parnassus.atlas.index import Atlas
from parnassus.atlas.reading import PACKAGE, Entry, Mark, Probe, names_in, settings
from parnassus.lab.forms import Field, fields_of, fields_of_experiment
from parnassus.lab.jobs import Jobs
from parnassus.lab.search import Index
from parnassus.lab.uploads import Uploads
from parnassus.lab.workbench import Workbench
from parnassus.lab.worker import Verdict
from parnassus.runs import RunError, RunFolder, Status, run_folders

MACHINE = ("seed", "device", "precision", "threads", "compile", "save_seconds")
"""The options of a run that a page offers."""


@dataclass(frozen=True)
class RunFacts:
    """A run as a list shows it."""

    name: str
    experiment: str
    title: str
    profile: str
    status: Status
    started: str
    seconds: float | None
    settings: Mapping[str, object]
    used: Mapping[str, object]  # the same, with what was taken for those left open
    options: Mapping[str, object]
    result: Mapping[str, float]


@dataclass
class Library:
    """Everything that pages are made from; the runs lie in `root`."""

    root: Path
    atlas: Atlas = field(default_factory=Atlas)
    claims: Workbench = field(default_factory=Workbench)
    probes: Workbench = field(default_factory=Workbench)
    verdicts: dict[Mark, Verdict] = field(default_factory=dict)
    _seen: dict[str, tuple[tuple[int, int], RunFacts]] = field(default_factory=dict)

    @cached_property
    def jobs(self) -> Jobs:
        return Jobs(self.root)

    @cached_property
    def index(self) -> Index:
        return Index(self.atlas)

    @cached_property
    def uploads(self) -> Uploads:
        return Uploads(self.root / ".uploads")

    def runs(self) -> list[RunFacts]:
        """Every run, the newest first; those that cannot be read are left out."""
        found = []
        for folder in reversed(self.folders()):
            try:
                found.append(self.facts(folder))
            except (RunError, OSError):  # damaged, or deleted while we looked
                continue
        return found

    def folders(self) -> list[RunFolder]:
        """The folders of runs, oldest first; one whose name is no text cannot be shown."""
        return [folder for folder in run_folders(self.root) if _is_text(folder.path.name)]

    def facts(self, folder: RunFolder) -> RunFacts:
        """What a list shows of a run; read again only when it changed."""
        stamp = _changed(folder.path / "run.json"), _changed(folder.path / "result.json")
        known = self._seen.get(folder.path.name)
        if known is not None and known[0] == stamp and known[1].status == "finished":
            return known[1]
        facts = _facts(folder)
        self._seen[folder.path.name] = stamp, facts
        return facts

    def run(self, name: str) -> RunFolder | None:
        """The run of this name, looked up in the list of what is there: a name never becomes a path."""
        return next((folder for folder in self.folders() if folder.path.name == name), None)

    def runs_for(self, probe: Probe) -> list[RunFacts]:
        """Finished runs that a probe can touch, the newest first."""
        return [run for run in self.runs() if run.status == "finished" and run.experiment in probe.experiments]

    def probes_for(self, experiment: str) -> list[Probe]:
        return [probe for probe in self.atlas.probes.values() if experiment in probe.experiments]

    @cached_property
    def choices(self) -> dict[str, list[str]]:
        """The names that text fields may hold."""
        return {
            "data": names_in(PACKAGE / "data" / "own.py", "DATASETS", "TOYS"),
            "text": names_in(PACKAGE / "data" / "own.py", "TEXTS"),
            "pairs": names_in(PACKAGE / "data" / "pairs.py", "PAIRS"),
            "env": names_in(PACKAGE / "reinforcement" / "evaluation.py", "GOALS"),
            "device": ["auto", "cpu", "cuda", "mps"],
            "precision": ["float32", "tf32", "bf16"],
        }

    def fields(self, entry: Entry) -> list[Field]:
        return fields_of_experiment(entry, self.choices)

    @cached_property
    def machine(self) -> list[Field]:
        """The fields of the options that a page offers."""
        options = fields_of(settings(PACKAGE / "train" / "options.py", "Options"), self.choices)
        return [option for option in options if option.name in MACHINE]

    async def check(self, mark: Mark) -> Verdict:
        """Run a claim and remember what came out."""
        verdict = await self.claims.do(_check, mark)
        self.verdicts[mark] = verdict
        return verdict

    def close(self) -> None:
        self.claims.close()
        self.probes.close()


def _check(mark: Mark) -> Verdict:
    from parnassus.lab.worker import check

    return check(mark)


def _facts(folder: RunFolder) -> RunFacts:
    about, result = folder.read_json("run.json"), folder.read_json("result.json")
    numbers, seconds = result.get("result"), result.get("seconds")
    return RunFacts(
        name=folder.path.name,
        experiment=str(about.get("experiment", "")),
        title=str(about.get("title", "")),
        profile=str(about.get("profile", "")),
        status=folder.status,
        started=str(about.get("started", "")),
        seconds=_real(seconds),
        settings=_mapping(about.get("settings")),
        used=_mapping(about.get("used", about.get("settings"))),
        options=_mapping(about.get("options")),
        result={name: real for name, value in _mapping(numbers).items() if (real := _real(value)) is not None},
    )


def _mapping(value: object) -> dict[str, object]:
    return {str(key): each for key, each in value.items()} if isinstance(value, dict) else {}


def _real(value: object) -> float | None:
    """A number; None for what is none, or is too large for one."""
    try:
        return float(value) if isinstance(value, int | float) else None
    except OverflowError:
        return None


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _changed(path: Path) -> int:
    return path.stat().st_mtime_ns if path.exists() else 0
