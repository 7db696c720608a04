"""A run looked at again: its settings, its trained model, and what was worked out from them once."""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from types import ModuleType
from typing import Protocol, TypeVar, cast

from torch import nn

from parnassus.atlas.index import Atlas
from parnassus.runs.errors import RunError
from parnassus.runs.folder import RunFolder
from parnassus.train.checkpoint import load_weights
from parnassus.train.execute import Experiment

Thing = TypeVar("Thing")


class Builder(Protocol):
    """An experiment that can build its model again."""

    def model(self, **facts: object) -> nn.Module: ...


@dataclass(frozen=True)
class Trained:
    """A finished run: the folder, and the experiment with the settings it was started with."""

    folder: RunFolder
    experiment: Experiment
    _worked_out: dict[Callable[..., object], object] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def open(cls, folder: RunFolder) -> "Trained":
        about = folder.read_json("run.json")
        module = importlib.import_module(Atlas().experiment(str(about["experiment"])).module)
        return cls(folder, experiment_from(module, about))

    @cached_property
    def model(self) -> nn.Module:
        """The trained model, in evaluation mode, on the CPU."""
        weights = self.folder.path / "weights.safetensors"
        name = self.folder.path.name
        if not weights.exists():
            raise RunError(f"{name} has no weights yet: its status is {self.folder.status}; parnassus resume {name}")
        model = cast("Builder", self.experiment).model(**self.folder.read_json("model.json"))
        try:
            model.load_state_dict(load_weights(weights))
        except RuntimeError as error:
            raise RunError(f"{weights} does not fit the model: {str(error).splitlines()[0]}") from None
        return model.eval()

    def once(self, work: "Callable[[Trained], Thing]") -> Thing:
        """`work(self)`, done when it is first asked for and remembered."""
        if work not in self._worked_out:
            self._worked_out[work] = work(self)
        return cast("Thing", self._worked_out[work])


def experiment_from(module: ModuleType, about: Mapping[str, object]) -> Experiment:
    """The experiment with the settings a folder was started with."""
    saved = about.get("settings")
    settings = {key: _untupled(value) for key, value in (saved if isinstance(saved, dict) else {}).items()}
    known = {each.name for each in fields(module.Experiment)}
    if set(settings) - known:
        unknown = ", ".join(sorted(set(settings) - known))
        raise RunError(f"the run was started by another version of {about['experiment']}: it has settings {unknown}")
    return cast("Experiment", module.Experiment(**settings))


def _untupled(value: object) -> object:
    return tuple(_untupled(item) for item in value) if isinstance(value, list) else value
