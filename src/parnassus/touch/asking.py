"""Touching a probe: its controls, found in the signature, and its answer to values from outside."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, get_type_hints

from parnassus.touch.answers import Answer
from parnassus.touch.controls import Control, Drawing, Pick, Point, Points, Real, Typed, Whole
from parnassus.train.trained import Trained

ProbeFunction: TypeAlias = Callable[..., Sequence[Answer]]
CONTROLS = (Whole, Real, Pick, Drawing, Point, Points, Typed)


def controls_of(probe: ProbeFunction, trained: Trained | None) -> dict[str, Control]:
    """The controls of a probe by the name of their argument, with limits settled for this run."""
    found: dict[str, Control] = {}
    for name, hint in get_type_hints(probe, include_extras=True).items():
        for extra in getattr(hint, "__metadata__", ()):
            if isinstance(extra, CONTROLS):
                found[name] = extra.settled(trained)
    return found


def start_of(probe: ProbeFunction, controls: Mapping[str, Control]) -> dict[str, object]:
    """Where the controls stand before anybody touched them."""
    defaults = {name: each.default for name, each in inspect.signature(probe).parameters.items()}
    return {name: control.start(defaults[name]) for name, control in controls.items()}


def answer(
    probe: ProbeFunction, trained: Trained | None, controls: Mapping[str, Control], values: Mapping[str, object]
) -> Sequence[Answer]:
    """The answer to `values` from outside, each read by its control; those not given stand where they start."""
    unknown = set(values) - set(controls)
    if unknown:
        raise ValueError(f"there is no control {', '.join(sorted(unknown))}; there are {', '.join(controls)}")
    given = start_of(probe, controls) | {name: controls[name].read(value) for name, value in values.items()}
    return probe(**given) if trained is None else probe(trained, **given)
