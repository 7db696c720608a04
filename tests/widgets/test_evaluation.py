"""Controls are read from the signature of a probe, values are validated, and every probe keeps the contract."""

import importlib
import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, product
from math import isfinite, prod
from typing import Annotated, get_type_hints

import pytest
import torch
from torch import Tensor

from parnassus.atlas.index import Atlas
from parnassus.atlas.reading import Probe
from parnassus.train.trained import Trained
from parnassus.widgets import (
    Animation,
    Answer,
    Bars,
    Control,
    Curves,
    DrawingPad,
    FloatSlider,
    Graph,
    Images,
    IntSlider,
    Numbers,
    PointPicker,
    PointsPicker,
    Select,
    TextInput,
    Trajectories,
    evaluate_probe,
    initial_values,
    read_controls,
)

ATLAS = Atlas()
PROBES = list(ATLAS.probes.values())
REFERENCE = re.compile(r"\((?:book|Diehl|Zhao) (?:eqs?|thm|lem|alg|def|figs?|ex|secs?|ch)\. \d")


def lever(
    length: Annotated[int, IntSlider("length", 1, 10)] = 20,
    force: Annotated[float, FloatSlider("force", 0.0, 9.0)] = 2.0,
) -> Sequence[Answer]:
    """A probe of no run."""
    return [Numbers("Torque", {"torque": length * force})]


def test_controls_are_found_by_the_name_of_their_argument() -> None:
    assert read_controls(lever, None) == {"length": IntSlider("length", 1, 10), "force": FloatSlider("force", 0.0, 9.0)}


def test_defaults_are_clipped_to_the_limits() -> None:
    assert initial_values(lever, read_controls(lever, None)) == {"length": 10, "force": 2.0}


def test_controls_without_a_value_keep_their_initial_one() -> None:
    controls = read_controls(lever, None)
    assert evaluate_probe(lever, None, controls, {}) == [Numbers("Torque", {"torque": 20.0})]
    assert evaluate_probe(lever, None, controls, {"length": 3}) == [Numbers("Torque", {"torque": 6.0})]
    assert evaluate_probe(lever, None, controls, {"length": 3, "force": 1}) == [Numbers("Torque", {"torque": 3.0})]


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"width": 1}, "there is no control width; there are length, force"),
        ({"length": 11}, "length must be between 1 and 10; got 11"),
        ({"length": 3, "force": "much"}, "force must be a number"),
    ],
)
def test_a_wrong_value_gets_a_message(values: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        evaluate_probe(lever, None, read_controls(lever, None), values)


def test_the_rooms_with_models_have_probes() -> None:
    assert {probe.room for probe in PROBES} >= {"layers", "latent", "diffusion", "optim"}


def test_a_probe_has_a_title_with_a_reference_and_a_text_and_names_existing_experiments() -> None:
    offenders = [
        probe.name
        for probe in PROBES
        if not REFERENCE.search(probe.title)
        or len(probe.title) > 120
        or not 40 <= len(probe.text) <= 500
        or not set(probe.experiments) <= set(ATLAS.experiments)
    ]
    assert offenders == []


def test_the_arguments_of_a_probe_are_a_run_where_it_needs_one_and_controls() -> None:
    for probe in PROBES:
        function = load(probe)
        names = list(inspect.signature(function).parameters)
        hints = get_type_hints(function, include_extras=True)
        assert not probe.experiments or hints[names[0]] is Trained, probe.name
        controls = names[bool(probe.experiments) :]
        assert controls, probe.name
        for name in controls:
            extras = getattr(hints[name], "__metadata__", ())
            assert any(isinstance(extra, Control) for extra in extras), (probe.name, name)


@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.name)
def test_its_answers_are_complete_initially_and_at_every_limit(
    probe: Probe, trained_run: Callable[..., Trained]
) -> None:
    function = load(probe)
    runs: list[Trained | None] = [trained_run(name) for name in probe.experiments]
    for trained in runs or [None]:
        controls = read_controls(function, trained)
        limits = [{name: value} for name, control in controls.items() for value in limits_of(control)]
        for values in [{}, *limits]:
            answers = evaluate_probe(function, trained, controls, values)
            assert answers
            assert len({each.title for each in answers}) == len(answers)
            for each in answers:
                assert each.title
                assert all(isfinite(value) for value in numbers_of(each)), (each.title, values)


def load(probe: Probe) -> Callable[..., Sequence[Answer]]:
    function: Callable[..., Sequence[Answer]] = getattr(importlib.import_module(probe.module), probe.name)
    return function


def limits_of(control: Control) -> list[object]:
    """The values of a resolved control at its limits."""
    match control:
        case IntSlider() | FloatSlider():
            return [control.low, control.high]
        case Select(choices=choices):
            assert not callable(choices)
            return [0, len(choices) - 1]
        case DrawingPad(shape=shape):
            assert not callable(shape)
            return [[grey] * prod(shape) for grey in (0.0, 1.0)]
        case PointPicker(plane=plane):
            assert not callable(plane)
            return list(product(plane.x_range, plane.y_range))
        case PointsPicker(plane=plane, max_points=max_points):
            assert not callable(plane)
            assert not callable(max_points)
            corners = list(product(plane.x_range, plane.y_range))
            return [[], corners, [corners[0]] * max_points]
        case TextInput(max_length=max_length):
            assert not callable(max_length)
            return ["", " " * max_length]
    raise TypeError(f"{type(control).__name__} has no limits here")


def numbers_of(given: Answer) -> Iterator[float]:
    """Every number of an answer; sizes that must agree are checked first."""
    match given:
        case Images():
            assert len(given.captions) in (0, len(given.images))
            yield from pixels(given.images)
        case Animation():
            assert len(given.captions) == len(given.frames)
            yield from pixels(given.frames)
        case Bars():
            assert len(given.names) == len(given.values)
            assert given.marked is None or 0 <= given.marked < len(given.names)
            assert all(each is None or len(each) == len(given.names) for each in (given.errors, given.truth))
            yield from chain(*(each.tolist() for each in (given.values, given.errors, given.truth) if each is not None))
        case Curves():
            assert given.lines
            assert all(len(x) == len(y) > 0 for x, y in given.lines.values())
            assert not given.log_y or all(min(y) > 0 for _, y in given.lines.values())
            yield from chain(*(chain(x, y) for x, y in given.lines.values()))
        case Trajectories():
            assert given.levels.shape == (len(given.y), len(given.x))
            yield from chain(
                given.levels.flatten().tolist(), *(path.flatten().tolist() for path in given.paths.values())
            )
        case Graph():
            assert given.nodes
            assert all(0 <= end < len(given.nodes) for edge in given.edges for end in (edge.start, edge.end))
            waypoints = chain(*(edge.waypoints for edge in given.edges))
            yield from chain(*((node.x, node.y) for node in given.nodes), *waypoints)
        case Numbers():
            assert given.values
            yield from (value for value in given.values.values() if isinstance(value, float))


def pixels(images: Tensor) -> Iterator[float]:
    assert images.shape[-3] in (1, 3)
    assert torch.equal(images, images.clamp(0, 1))
    return iter(images.flatten().tolist())
