"""A finished run: its settings, its trained model, and cached values computed from them."""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol, TypeVar, cast

import torch
from torch import nn

from parnassus import __version__
from parnassus.atlas.declarations import Entry
from parnassus.atlas.index import load_atlas
from parnassus.errors import convert_value_errors, first_line
from parnassus.runs.errors import RunError
from parnassus.runs.folder import RunFolder
from parnassus.runs.lookup import command_for
from parnassus.train.checkpoint import load_weights
from parnassus.train.execute import Experiment

Thing = TypeVar("Thing")


class Builder(Protocol):
    """An experiment that can rebuild its model."""

    def model(self, **facts: object) -> nn.Module: ...


@dataclass(frozen=True)
class TrainedRun:
    """A finished run: its folder, and its experiment with the settings of the run."""

    folder: RunFolder
    experiment: Experiment
    _cache: dict[Callable[..., object], object] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def open(cls, folder: RunFolder) -> "TrainedRun":
        return cls(folder, rebuild_experiment(folder))

    @cached_property
    def model(self) -> nn.Module:
        """The trained model, in evaluation mode, on the CPU."""
        weights = self.folder.file("weights.safetensors")
        name, again = self.folder.path.name, command_for(self.folder, "resume")
        if not weights.exists():
            status = self.folder.status
            state = "no weights" if status == "finished" else f"no weights yet: its status is {status}"
            raise RunError(f"{name} has {state}; {again}")
        made, facts = _version(self.folder.read_json("run.json")), self.folder.read_json("model.json")
        try:
            with torch.random.fork_rng(devices=[]):  # building draws initial weights
                model = cast("Builder", self.experiment).model(**facts)
        except Exception as error:  # arguments of an earlier version, or edited ones: any part may refuse them
            raise RunError(
                f"the model of {name} cannot be rebuilt from model.json: {first_line(error)}; "
                f"the run was made by parnassus {made}, this is {__version__}: run it again"
            ) from error
        try:
            found = load_weights(weights)
        except RunError as error:
            raise RunError(f"{error}; delete it, then write it again from the checkpoint: {again}") from None
        try:
            check_types(model, found)
            model.load_state_dict(found)
        except RuntimeError as error:
            reason = f"made by parnassus {made}, this is {__version__}" if made != __version__ else first_line(error)
            raise RunError(f"{weights} does not match the model: {reason}") from None
        return model.eval()

    def compute_once(self, work: "Callable[[TrainedRun], Thing]") -> Thing:
        """`work(self)`, computed on first use and cached."""
        if work not in self._cache:
            self._cache[work] = work(self)
        return cast("Thing", self._cache[work])


def check_types(model: nn.Module, weights: Mapping[str, torch.Tensor]) -> None:
    """Raise a RuntimeError for a weight of another type than the model's, which torch would convert."""
    for name, own in model.state_dict().items():
        if name in weights and weights[name].dtype != own.dtype:
            raise RuntimeError(f"{name} must have the type {own.dtype}; got {weights[name].dtype}")


def find_entry(folder: RunFolder) -> Entry:
    """The experiment of a run, by its exact name."""
    name = folder.experiment
    found = load_atlas().experiments.get(name)
    if found is None:
        raise RunError(
            f"the run was made by parnassus {_version(folder.read_json('run.json'))} with the experiment {name!r}; "
            f"version {__version__} has no experiment of that name"
        )
    return found


def _version(about: Mapping[str, object]) -> str:
    versions = about.get("versions")
    return str(versions.get("parnassus", "unknown")) if isinstance(versions, dict) else "unknown"


def rebuild_experiment(folder: RunFolder) -> Experiment:
    """The experiment with the settings of a run; raises a RunError for unknown or invalid settings."""
    entry, about = find_entry(folder), folder.read_json("run.json")
    saved = about.get("settings")
    settings = {key: _lists_to_tuples(value) for key, value in (saved if isinstance(saved, dict) else {}).items()}
    known = {each.name: each for each in entry.settings}
    if settings.keys() - known.keys():
        unknown = ", ".join(sorted(settings.keys() - known.keys()))
        raise RunError(
            f"the run was made by parnassus {_version(about)}, whose {entry.name} had the settings {unknown}; "
            f"this is version {__version__}: run it again"
        )
    for name, value in settings.items():
        if not known[name].accepts(value):
            raise RunError(
                f"{folder.path / 'run.json'} is damaged: {name} must be a valid {known[name].annotation}; "
                f"got {value!r:.60}"
            )
    with convert_value_errors():
        return cast("Experiment", importlib.import_module(entry.module).Experiment(**settings))


def _lists_to_tuples(value: object) -> object:
    return tuple(_lists_to_tuples(item) for item in value) if isinstance(value, list) else value
