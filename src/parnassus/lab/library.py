"""The state shared by all pages: the atlas, runs on disk, jobs, worker processes, and results of claims."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from parnassus.atlas.declarations import Entry, Mark, Probe
from parnassus.atlas.index import Atlas, load_atlas
from parnassus.atlas.reading import read_settings
from parnassus.atlas.settings import PACKAGE
from parnassus.lab.forms import FormField, form_fields
from parnassus.lab.jobs import Jobs
from parnassus.lab.search import SearchIndex
from parnassus.lab.uploads import Uploads
from parnassus.lab.worker import ClaimResult, check_claim
from parnassus.lab.worker_process import WorkerProcess
from parnassus.report.formatting import display_name, format_number
from parnassus.runs import RunError, RunFolder, Status, run_folders

OPTIONS = ("seed", "device", "precision", "threads", "compile", "save_seconds")
"""The options of a run that can be set on a page."""
SAMPLE_OPTIONS = ("seed", "device")
"""The options of `parnassus sample` that can be set on a page."""


@dataclass(frozen=True)
class RunSummary:
    """The properties of a run that are shown in lists and on pages."""

    name: str
    experiment: str
    title: str
    profile: str
    status: Status
    started: str
    seconds: float | None
    settings: Mapping[str, object]
    options: Mapping[str, object]
    result: Mapping[str, float]

    @property
    def main_results(self) -> str:
        """The first three results as one line of text."""
        return " · ".join(f"{display_name(name)} {format_number(x)}" for name, x in list(self.result.items())[:3])


@dataclass
class Library:
    """The data of all pages; `root` is the folder of the runs."""

    root: Path
    atlas: Atlas = field(default_factory=load_atlas)
    claims: WorkerProcess = field(default_factory=WorkerProcess)
    probes: WorkerProcess = field(default_factory=WorkerProcess)
    claim_results: dict[Mark, ClaimResult] = field(default_factory=dict)
    _cache: dict[str, tuple[tuple[int, int], RunSummary]] = field(default_factory=dict)

    @cached_property
    def jobs(self) -> Jobs:
        return Jobs(self.root)

    @cached_property
    def index(self) -> SearchIndex:
        return SearchIndex(self.atlas)

    @cached_property
    def uploads(self) -> Uploads:
        return Uploads(self.root / ".uploads")

    def runs(self) -> list[RunSummary]:
        """All runs, newest first, except those that cannot be read."""
        runs = []
        for folder in reversed(self.folders()):
            try:
                runs.append(self.summary(folder))
            except (RunError, OSError):  # damaged, or deleted in the meantime
                continue
        return runs

    def folders(self) -> list[RunFolder]:
        """The folders of runs, oldest first, except those whose names are not valid UTF-8."""
        return [folder for folder in run_folders(self.root) if _is_text(folder.path.name)]

    def summary(self, folder: RunFolder) -> RunSummary:
        """The summary of a run; the summary of a finished run is cached until its files change."""
        stamp = modification_time(folder.path / "run.json"), modification_time(folder.path / "result.json")
        known = self._cache.get(folder.path.name)
        if known is not None and known[0] == stamp and known[1].status == "finished":
            return known[1]
        summary = _read_summary(folder)
        self._cache[folder.path.name] = stamp, summary
        return summary

    def run(self, name: str) -> RunFolder | None:
        """The run with this name, looked up in the listing, so that names are never used as paths."""
        return next((folder for folder in self.folders() if folder.path.name == name), None)

    def runs_for(self, probe: Probe) -> list[RunSummary]:
        """Finished runs that a probe can use, newest first."""
        return [run for run in self.runs() if run.status == "finished" and run.experiment in probe.experiments]

    def probes_for(self, experiment: str) -> list[Probe]:
        return [probe for probe in self.atlas.probes.values() if experiment in probe.experiments]

    def fields(self, entry: Entry) -> list[FormField]:
        return form_fields(entry.settings)

    @cached_property
    def option_fields(self) -> list[FormField]:
        """The fields of the options that can be set on a page."""
        return _fields_of("train/options.py", "Options", OPTIONS)

    @cached_property
    def sample_fields(self) -> list[FormField]:
        """The fields of the options of `parnassus sample` that can be set on a page."""
        return _fields_of("cli/sample.py", "SampleOptions", SAMPLE_OPTIONS)

    async def check(self, mark: Mark) -> ClaimResult:
        """Run a claim and store its result."""
        result = await self.claims.run(check_claim, mark)
        self.claim_results[mark] = result
        return result

    def close(self) -> None:
        self.claims.close()
        self.probes.close()


def _fields_of(path: str, name: str, chosen: Collection[str]) -> list[FormField]:
    """The fields of the `chosen` settings of a dataclass of the package, whose file is not imported."""
    return form_fields([setting for setting in read_settings(PACKAGE / path, name) if setting.name in chosen])


def _read_summary(folder: RunFolder) -> RunSummary:
    about, result = folder.read_json("run.json"), folder.read_json("result.json")
    metrics, seconds = result.get("result"), result.get("seconds")
    return RunSummary(
        name=folder.path.name,
        experiment=str(about.get("experiment", "")),
        title=str(about.get("title", "")),
        profile=str(about.get("profile", "")),
        status=folder.status,
        started=str(about.get("started", "")),
        seconds=_read_float(seconds),
        settings=_read_mapping(about.get("settings")),
        options=_read_mapping(about.get("options")),
        result={name: x for name, value in _read_mapping(metrics).items() if (x := _read_float(value)) is not None},
    )


def _read_mapping(value: object) -> dict[str, object]:
    return {str(key): each for key, each in value.items()} if isinstance(value, dict) else {}


def _read_float(value: object) -> float | None:
    """A number; None for other values and for integers that are too large."""
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


def modification_time(path: Path) -> int:
    """The modification time of a file in nanoseconds; 0 if it does not exist."""
    return path.stat().st_mtime_ns if path.exists() else 0
