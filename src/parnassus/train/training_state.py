"""The objects of a training loop whose states are saved in checkpoints and restored when a run resumes."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, cast

from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from parnassus.runs.errors import RunError
from parnassus.train import parallel
from parnassus.train.checkpoint import check_finite

State = dict[str, object]


class Prepared(NamedTuple):
    """A model with what updates it."""

    model: nn.Module
    optimizer: Optimizer
    schedule: LRScheduler | None


class TrainingState:
    """Register objects, collect their states, and restore them from the states of a checkpoint.

    `restore` is called when a loop starts, not on registration: constructors change each other's objects (a schedule
    sets the rate of its optimiser), and code before the loop must find the same objects as in an uninterrupted run.
    """

    def __init__(self, mode: parallel.Mode | None, checkpoint: Path, saved: State) -> None:
        """`saved` is the content of `checkpoint`, which contains a value of `collect`; empty for a new run."""
        self.prepared: list[Prepared] = []
        self._kept: dict[str, parallel.Stateful] = {}
        self._mode, self._checkpoint = mode, checkpoint
        self._saved_prepared = cast("list[dict[str, State]]", saved.get("prepared", []))
        self._saved_kept = cast("dict[str, State]", saved.get("kept", {}))
        self._loads: list[Callable[[], object]] = []

    def add(self, each: Prepared) -> None:
        """Register a model with its optimiser and its schedule; they are identified by their order."""
        index = len(self.prepared)
        self.prepared.append(each)
        if index < len(self._saved_prepared):
            state = self._saved_prepared[index]
            self._loads.append(lambda: self._load(each, state))

    def keep(self, name: str, thing: parallel.Stateful) -> None:
        """Register another object under a unique name."""
        if name in self._kept:
            raise ValueError(f"the name {name!r} is already in use; choose another for run.keep")
        self._kept[name] = thing
        if name in self._saved_kept:
            self._loads.append(lambda: thing.load_state_dict(self._saved_kept[name]))

    def restore(self) -> None:
        """Load the saved states of the objects registered since the last call."""
        loads, self._loads = self._loads, []
        try:
            for load in loads:
                load()
        except (RuntimeError, KeyError, ValueError, TypeError) as error:
            reason = " ".join(line.strip() for line in str(error).split("\n")[:3])
            raise RunError(f"{self._checkpoint} does not match this model: {reason}") from None

    def collect(self) -> State:
        """The states of all objects; a collective call under torchrun, with the full states on the first process."""
        return {
            "prepared": [self._collect(each) for each in self.prepared],
            "kept": {name: thing.state_dict() for name, thing in self._kept.items()},
        }

    def _collect(self, each: Prepared) -> State:
        return {
            "model": parallel.model_state(each.model, self._mode),
            "optimizer": parallel.optimizer_state(each.model, each.optimizer, self._mode),
            "schedule": None if each.schedule is None else each.schedule.state_dict(),
        }

    def _load(self, each: Prepared, state: dict[str, State]) -> None:
        parallel.load_model_state(each.model, state["model"], self._mode)
        parallel.load_optimizer_state(each.model, each.optimizer, state["optimizer"], self._mode)
        if each.schedule is not None:
            each.schedule.load_state_dict(state["schedule"])


def check_weights(state: State) -> None:
    """Raise a NotFiniteError that names the first tensor of a collected state with values that are not finite."""
    for index, each in enumerate(cast("list[dict[str, dict[str, Tensor]]]", state["prepared"])):
        name = "model" if index == 0 else f"model {index + 1}"
        check_finite({f"{name}, {key}": value for key, value in each["model"].items()})
