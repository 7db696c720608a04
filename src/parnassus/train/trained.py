"""A finished run: its settings, its trained model, and cached values computed from them."""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from types import ModuleType
from typing import Protocol, TypeVar, cast

import torch
from torch import nn

from parnassus import __version__
from parnassus.atlas.declarations import Entry
from parnassus.atlas.index import load_atlas
from parnassus.runs.errors import RunError
from parnassus.runs.folder import RunFolder
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
        about = folder.read_json("run.json")
        return cls(folder, experiment_from(importlib.import_module(find_entry(about).module), about))

    @cached_property
    def model(self) -> nn.Module:
        """The trained model, in evaluation mode, on the CPU."""
        weights = self.folder.path / "weights.safetensors"
        name = self.folder.path.name
        if not weights.exists():
            raise RunError(f"{name} has no weights yet: its status is {self.folder.status}; parnassus resume {name}")
        made = _version(self.folder.read_json("run.json"))
        try:
            with torch.random.fork_rng(devices=[]):  # building draws initial weights
                model = cast("Builder", self.experiment).model(**self.folder.read_json("model.json"))
        except TypeError as error:  # arguments of an earlier version
            raise RunError(
                f"the model of {name} cannot be rebuilt from model.json: {str(error).splitlines()[0]}; "
                f"the run was made by parnassus {made}, this is {__version__}: run it again"
            ) from error
        try:
            model.load_state_dict(load_weights(weights))
        except RuntimeError as error:
            reason = f"made by parnassus {made}, this is {__version__}" if made != __version__ else str(error)
            raise RunError(f"{weights} does not match the model: {reason.splitlines()[0]}") from None
        return model.eval()

    def compute_once(self, work: "Callable[[TrainedRun], Thing]") -> Thing:
        """`work(self)`, computed on first use and cached."""
        if work not in self._cache:
            self._cache[work] = work(self)
        return cast("Thing", self._cache[work])


def find_entry(about: Mapping[str, object]) -> Entry:
    """The experiment of a run, by its exact name."""
    name = str(about["experiment"])
    found = load_atlas().experiments.get(name)
    if found is None:
        raise RunError(
            f"the run was made by parnassus {_version(about)} with the experiment {name!r}; "
            f"version {__version__} has no experiment of that name"
        )
    return found


def _version(about: Mapping[str, object]) -> str:
    versions = about.get("versions")
    return str(versions.get("parnassus", "unknown")) if isinstance(versions, dict) else "unknown"


def experiment_from(module: ModuleType, about: Mapping[str, object]) -> Experiment:
    """The experiment with the settings of a run."""
    saved = about.get("settings")
    settings = {key: _lists_to_tuples(value) for key, value in (saved if isinstance(saved, dict) else {}).items()}
    known = {each.name for each in fields(module.Experiment)}
    if set(settings) - known:
        unknown = ", ".join(sorted(set(settings) - known))
        raise RunError(
            f"the run was made by parnassus {_version(about)}, whose {about['experiment']} had the settings {unknown}; "
            f"this is version {__version__}: run it again"
        )
    return cast("Experiment", module.Experiment(**settings))


def _lists_to_tuples(value: object) -> object:
    return tuple(_lists_to_tuples(item) for item in value) if isinstance(value, list) else value
