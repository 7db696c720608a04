"""Evaluation of a probe: its controls, read from the signature, and its answers to external values."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, get_type_hints

from parnassus.train.trained import TrainedRun
from parnassus.widgets.answers import Answer
from parnassus.widgets.controls import Control

ProbeFunction: TypeAlias = Callable[..., Sequence[Answer]]


def read_controls(probe: ProbeFunction, trained: TrainedRun | None) -> dict[str, Control]:
    """The controls of a probe by the names of their arguments, with the limits of this run."""
    hints = get_type_hints(probe, include_extras=True)
    extras = [(name, extra) for name, hint in hints.items() for extra in getattr(hint, "__metadata__", ())]
    return {name: extra.resolve(trained) for name, extra in extras if isinstance(extra, Control)}


def initial_values(probe: ProbeFunction, controls: Mapping[str, Control]) -> dict[str, object]:
    """The initial values of the controls: the defaults of the arguments, clipped to the limits."""
    defaults = {name: each.default for name, each in inspect.signature(probe).parameters.items()}
    return {name: control.initial_value(defaults[name]) for name, control in controls.items()}


def evaluate_probe(
    probe: ProbeFunction, trained: TrainedRun | None, controls: Mapping[str, Control], values: Mapping[str, object]
) -> Sequence[Answer]:
    """The answers of a probe to external `values`; controls without a value keep their initial value."""
    unknown = set(values) - set(controls)
    if unknown:
        raise ValueError(f"unknown controls: {', '.join(sorted(unknown))}; available: {', '.join(controls)}")
    given = initial_values(probe, controls) | {name: controls[name].read(value) for name, value in values.items()}
    answers = probe(**given) if trained is None else probe(trained, **given)
    for answer in answers:
        if not isinstance(answer, Answer):
            raise TypeError(f"a probe must return instances of Answer; got {type(answer).__name__}")
    return answers
