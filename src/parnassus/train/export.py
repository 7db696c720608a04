"""Export of trained models as programs that run without this package: torch's .pt2 files, or ONNX.

A program is a function of tensors that a trained model computes, such as the logits of images. Which programs a model
has is declared once for its class: `PROGRAMS = {VAE: vae_programs}` in `ROOM/commands/programs.py`, or beside a class
that an experiment defines itself. A collection of models has the programs of each.
"""

import importlib
import importlib.util
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar, cast

import torch
from torch import Tensor, nn

from parnassus.runs.errors import RunError
from parnassus.train.trained import TrainedRun

BATCH = {0: "batch"}


@dataclass(frozen=True)
class Program:
    """A function of tensors, with an example of each input; the first axis of every input is the batch."""

    function: Callable[..., Tensor | Sequence[Tensor]]
    inputs: Mapping[str, Tensor]
    outputs: tuple[str, ...]
    about: str  # what the inputs and outputs are, for config.json
    axes: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    """Names of further axes of variable length, such as {"tokens": {1: "time"}}."""

    def __post_init__(self) -> None:
        if set(self.inputs) & set(self.outputs):
            raise ValueError(f"inputs and outputs must have different names; got {list(self.inputs)}, {self.outputs}")

    def dynamic_axes(self, name: str) -> dict[int, str]:
        """The axes of an input whose length may vary, with their names."""
        return {**BATCH, **self.axes.get(name, {})}

    def shape(self, name: str) -> list[int | str]:
        """The shape of an input, with names for the axes of variable length."""
        names = self.dynamic_axes(name)
        return [names.get(axis, size) for axis, size in enumerate(self.inputs[name].shape)]

    def other_inputs(self) -> dict[str, Tensor]:
        """Inputs of other sizes and values than the examples, with which an export is compared to the model."""
        return {name: _other(value, self.axes.get(name, {})) for name, value in self.inputs.items()}

    @torch.no_grad()
    def compute(self, inputs: Mapping[str, Tensor]) -> tuple[Tensor, ...]:
        """The outputs of the model itself."""
        return as_tuple(self.function(*inputs.values()))


Programs: TypeAlias = dict[str, Program]
"""The programs of a model by name; the names become those of the files."""
ProgramsOf: TypeAlias = Callable[[nn.Module, TrainedRun], Programs]
Model = TypeVar("Model", bound=nn.Module)


def trained_programs(trained: TrainedRun) -> Programs:
    """All programs of the model of a run."""
    return programs_of(trained.model, trained)


def programs_of(model: nn.Module, trained: TrainedRun) -> Programs:
    """The programs declared for the class of the model or the nearest base class; of a collection, those of each."""
    for kind in type(model).__mro__:
        declared = _declared_programs(kind)
        if kind in declared:
            return declared[kind](model, trained)
    if isinstance(model, nn.ModuleDict | nn.ModuleList):
        return join_programs(trained, **dict(model.named_children()))
    raise RunError(
        f"{trained.folder.path.name} cannot be exported: no programs are declared for models of the class "
        f"{type(model).__name__}"
    )


def join_programs(trained: TrainedRun, **models: nn.Module) -> Programs:
    """The programs of several models, with the names of the models before theirs."""
    return {
        f"{re.sub(r'[^A-Za-z0-9]+', '_', name)}_{key}": program
        for name, model in models.items()
        for key, program in programs_of(model, trained).items()
    }


def fact(trained: TrainedRun, name: str) -> list[int]:
    """A list of numbers in model.json, such as the shape of an example."""
    return cast("list[int]", trained.folder.read_json("model.json")[name])


def example_tokens(vocabulary: int, length: int, *, batch: int = 2) -> Tensor:
    """Example tokens of any sequence model: all different rows, no special tokens where there are others."""
    low = min(3, vocabulary - 1)
    return low + torch.arange(batch * length).view(batch, length) % (vocabulary - low)


def as_tuple(outputs: Tensor | Sequence[Tensor]) -> tuple[Tensor, ...]:
    return (outputs,) if isinstance(outputs, Tensor) else tuple(outputs)


def _declared_programs(kind: type) -> Mapping[type, ProgramsOf]:
    """The declarations of the module that defines a class, and of its room."""
    package, *rest = kind.__module__.split(".")
    if package != "parnassus":
        return {}
    found: dict[type, ProgramsOf] = dict(getattr(importlib.import_module(kind.__module__), "PROGRAMS", {}))
    place = f"parnassus.{rest[0]}.commands"
    if importlib.util.find_spec(place) and importlib.util.find_spec(f"{place}.programs"):
        found |= getattr(importlib.import_module(f"{place}.programs"), "PROGRAMS", {})
    return found


def _other(value: Tensor, axes: Mapping[int, str]) -> Tensor:
    """Other values in the same range, with one more row and one fewer entry on each further axis."""
    more = torch.cat([value, value[:1]])
    for axis in axes:
        more = more.narrow(axis, 0, value.shape[axis] - 1)
    if value.is_floating_point():
        return 0.9 * more
    return more.flip(0)
