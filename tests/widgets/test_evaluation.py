"""Controls of probes, validation of values, and the contract of all probes."""

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

from parnassus.atlas.declarations import Probe
from parnassus.atlas.index import Atlas
from parnassus.train.trained import TrainedRun
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
    """A probe without a run."""
    return [Numbers("Torque", {"torque": length * force})]


def test_controls_are_keyed_by_argument_name() -> None:
    assert read_controls(lever, None) == {"length": IntSlider("length", 1, 10), "force": FloatSlider("force", 0.0, 9.0)}


def test_defaults_are_clipped_to_the_limits() -> None:
    assert initial_values(lever, read_controls(lever, None)) == {"length": 10, "force": 2.0}


def test_missing_values_default_to_initial_values() -> None:
    controls = read_controls(lever, None)
    assert evaluate_probe(lever, None, controls, {}) == [Numbers("Torque", {"torque": 20.0})]
    assert evaluate_probe(lever, None, controls, {"length": 3}) == [Numbers("Torque", {"torque": 6.0})]
    assert evaluate_probe(lever, None, controls, {"length": 3, "force": 1}) == [Numbers("Torque", {"torque": 3.0})]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"width": 1}, "unknown controls: width; available: length, force"),
        ({"length": 11}, "length must be between 1 and 10; got 11"),
        ({"length": 3, "force": "much"}, "force must be a number"),
    ],
)
def test_invalid_value_raises_value_error(values: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        evaluate_probe(lever, None, read_controls(lever, None), values)


def test_rooms_with_models_have_probes() -> None:
    assert {probe.room for probe in PROBES} >= {"layers", "latent", "diffusion", "optim"}


def test_probes_have_valid_titles_texts_and_experiments() -> None:
    offenders = [
        probe.name
        for probe in PROBES
        if not REFERENCE.search(probe.title)
        or len(probe.title) > 120
        or not 40 <= len(probe.text) <= 500
        or not set(probe.experiments) <= set(ATLAS.experiments)
    ]
    assert offenders == []


def test_probe_arguments_are_an_optional_run_and_controls() -> None:
    for probe in PROBES:
        function = load_probe(probe)
        names = list(inspect.signature(function).parameters)
        hints = get_type_hints(function, include_extras=True)
        assert not probe.experiments or hints[names[0]] is TrainedRun, probe.name
        controls = names[bool(probe.experiments) :]
        assert controls, probe.name
        for name in controls:
            extras = getattr(hints[name], "__metadata__", ())
            assert any(isinstance(extra, Control) for extra in extras), (probe.name, name)


@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.name)
def test_answers_are_valid_for_initial_values_and_limits(probe: Probe, trained_run: Callable[..., TrainedRun]) -> None:
    function = load_probe(probe)
    runs: list[TrainedRun | None] = [trained_run(name) for name in probe.experiments]
    for trained in runs or [None]:
        controls = read_controls(function, trained)
        limits = [{name: value} for name, control in controls.items() for value in limit_values(control)]
        for values in [{}, *limits]:
            answers = evaluate_probe(function, trained, controls, values)
            assert answers
            assert len({answer.title for answer in answers}) == len(answers)
            for answer in answers:
                assert answer.title
                assert all(isfinite(value) for value in answer_values(answer)), (answer.title, values)


def load_probe(probe: Probe) -> Callable[..., Sequence[Answer]]:
    function: Callable[..., Sequence[Answer]] = getattr(importlib.import_module(probe.module), probe.name)
    return function


def limit_values(control: Control) -> list[object]:
    """Limiting values of a resolved control."""
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
    raise TypeError(f"{type(control).__name__} has no known limits")


def answer_values(answer: Answer) -> Iterator[float]:
    """All numbers of an answer, after checks of its sizes."""
    match answer:
        case Images():
            assert len(answer.captions) in (0, len(answer.images))
            yield from pixel_values(answer.images)
        case Animation():
            assert len(answer.captions) == len(answer.frames)
            yield from pixel_values(answer.frames)
        case Bars():
            assert len(answer.names) == len(answer.values)
            assert answer.marked is None or 0 <= answer.marked < len(answer.names)
            assert all(each is None or len(each) == len(answer.names) for each in (answer.errors, answer.truth))
            yield from chain(
                *(each.tolist() for each in (answer.values, answer.errors, answer.truth) if each is not None)
            )
        case Curves():
            assert answer.lines
            assert all(len(x) == len(y) > 0 for x, y in answer.lines.values())
            assert not answer.log_y or all(min(y) > 0 for _, y in answer.lines.values())
            yield from chain(*(chain(x, y) for x, y in answer.lines.values()))
        case Trajectories():
            assert answer.levels.shape == (len(answer.y), len(answer.x))
            yield from chain(
                answer.levels.flatten().tolist(), *(path.flatten().tolist() for path in answer.paths.values())
            )
        case Graph():
            assert answer.nodes
            assert all(0 <= end < len(answer.nodes) for edge in answer.edges for end in (edge.start, edge.end))
            waypoints = chain(*(edge.waypoints for edge in answer.edges))
            yield from chain(*((node.x, node.y) for node in answer.nodes), *waypoints)
        case Numbers():
            assert answer.values
            yield from (value for value in answer.values.values() if isinstance(value, float))


def pixel_values(images: Tensor) -> Iterator[float]:
    assert images.shape[-3] in (1, 3)
    assert torch.equal(images, images.clamp(0, 1))
    return iter(images.flatten().tolist())
