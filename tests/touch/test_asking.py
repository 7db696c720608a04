"""A probe is its signature: controls found, values read, answers given; and every probe keeps the contract."""

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
from parnassus.touch import (
    Answer,
    Bars,
    Control,
    Curves,
    Drawing,
    Film,
    Graph,
    Images,
    Numbers,
    Path,
    Pick,
    Point,
    Points,
    Real,
    Typed,
    Whole,
    answer,
    controls_of,
    start_of,
)
from parnassus.train.trained import Trained

ATLAS = Atlas()
PROBES = list(ATLAS.probes.values())
REFERENCE = re.compile(r"\((?:book|Diehl|Zhao) (?:eqs?|thm|lem|alg|def|figs?|ex|secs?|ch)\. \d")


def lever(
    length: Annotated[int, Whole("length", 1, 10)] = 20, force: Annotated[float, Real("force", 0.0, 9.0)] = 2.0
) -> Sequence[Answer]:
    """A probe of no run."""
    return [Numbers("Torque", {"torque": length * force})]


def test_controls_are_found_by_the_name_of_their_argument() -> None:
    assert controls_of(lever, None) == {"length": Whole("length", 1, 10), "force": Real("force", 0.0, 9.0)}


def test_defaults_are_brought_inside_the_limits() -> None:
    assert start_of(lever, controls_of(lever, None)) == {"length": 10, "force": 2.0}


def test_what_is_not_given_stands_where_it_starts() -> None:
    controls = controls_of(lever, None)
    assert answer(lever, None, controls, {}) == [Numbers("Torque", {"torque": 20.0})]
    assert answer(lever, None, controls, {"length": 3}) == [Numbers("Torque", {"torque": 6.0})]
    assert answer(lever, None, controls, {"length": 3, "force": 1}) == [Numbers("Torque", {"torque": 3.0})]


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"width": 1}, "there is no control width; there are length, force"),
        ({"length": 11}, "length must be between 1 and 10; got 11"),
        ({"length": 3, "force": "much"}, "force must be a number"),
    ],
)
def test_a_wrong_value_gets_a_sentence(values: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        answer(lever, None, controls_of(lever, None), values)


def test_there_is_something_to_touch_in_every_room_with_a_model() -> None:
    assert {probe.room for probe in PROBES} >= {"layers", "latent", "diffusion", "optim"}


@pytest.fixture(params=PROBES, ids=lambda probe: probe.name)
def probe(request: pytest.FixtureRequest) -> Probe:
    chosen = request.param
    assert isinstance(chosen, Probe)
    return chosen


@pytest.fixture
def function(probe: Probe) -> Callable[..., Sequence[Answer]]:
    found: Callable[..., Sequence[Answer]] = getattr(importlib.import_module(probe.module), probe.name)
    return found


def test_it_says_what_it_is_and_what_to_try(probe: Probe) -> None:
    assert REFERENCE.search(probe.title), probe.title
    assert len(probe.title) <= 120
    assert 40 <= len(probe.text) <= 500
    assert set(probe.experiments) <= set(ATLAS.experiments)


def test_its_arguments_are_a_run_where_it_needs_one_and_controls(
    probe: Probe, function: Callable[..., Sequence[Answer]]
) -> None:
    names = list(inspect.signature(function).parameters)
    hints = get_type_hints(function, include_extras=True)
    if probe.experiments:
        assert hints[names[0]] is Trained
    controls = names[bool(probe.experiments) :]
    assert controls
    for name in controls:
        assert any(isinstance(extra, Control) for extra in getattr(hints[name], "__metadata__", ())), name


def test_its_answers_are_complete_at_the_start_and_at_every_limit(
    probe: Probe, function: Callable[..., Sequence[Answer]], trained_run: Callable[..., Trained]
) -> None:
    runs: list[Trained | None] = [trained_run(name) for name in probe.experiments]
    for trained in runs or [None]:
        controls = controls_of(function, trained)
        limits = [{name: value} for name, control in controls.items() for value in limits_of(control)]
        for values in [{}, *limits]:
            answers = answer(function, trained, controls, values)
            assert answers
            assert len({each.title for each in answers}) == len(answers)
            for each in answers:
                assert each.title
                assert all(isfinite(value) for value in numbers_of(each)), (each.title, values)


def limits_of(control: Control) -> list[object]:
    """The values of a settled control at its limits."""
    match control:
        case Whole() | Real():
            return [control.low, control.high]
        case Pick(names=names):
            assert not callable(names)
            return [0, len(names) - 1]
        case Drawing(shape=shape):
            assert not callable(shape)
            return [[grey] * prod(shape) for grey in (0.0, 1.0)]
        case Point(plane=plane):
            assert not callable(plane)
            return list(product(plane.across, plane.up))
        case Points(plane=plane, most=most):
            assert not callable(plane)
            assert not callable(most)
            corners = list(product(plane.across, plane.up))
            return [[], corners, [corners[0]] * most]
        case Typed(most=most):
            assert not callable(most)
            return ["", " " * most]


def numbers_of(given: Answer) -> Iterator[float]:
    """Every number that an answer shows, after what must fit together was seen to fit."""
    match given:
        case Images():
            assert len(given.captions) in (0, len(given.images))
            yield from pixels(given.images)
        case Film():
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
        case Path():
            assert given.levels.shape == (len(given.up), len(given.across))
            yield from chain(
                given.levels.flatten().tolist(), *(way.flatten().tolist() for way in given.places.values())
            )
        case Graph():
            assert given.boxes
            assert all(0 <= end < len(given.boxes) for arrow in given.arrows for end in (arrow.start, arrow.end))
            places = chain(*(arrow.through for arrow in given.arrows))
            yield from chain(*((box.across, box.up) for box in given.boxes), *places)
        case Numbers():
            assert given.values
            yield from (value for value in given.values.values() if isinstance(value, float))


def pixels(images: Tensor) -> Iterator[float]:
    assert images.shape[-3] in (1, 3)
    assert torch.equal(images, images.clamp(0, 1))
    return iter(images.flatten().tolist())
