"""Controls convert and validate external values."""

from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest
import torch

from parnassus.runs import RunFolder
from parnassus.train.execute import Experiment
from parnassus.train.run import Run
from parnassus.train.trained import TrainedRun
from parnassus.widgets import (
    Control,
    DrawingPad,
    FloatSlider,
    IntSlider,
    Plane,
    PointPicker,
    PointsPicker,
    Select,
    TextInput,
)


@dataclass(frozen=True)
class Settings:
    features: int = 5

    def __call__(self, run: Run) -> dict[str, float]:
        raise NotImplementedError


def num_features(trained: TrainedRun) -> int:
    return cast("Settings", trained.experiment).features


def run_plane(trained: TrainedRun) -> Plane:
    reach = float(num_features(trained))
    return Plane((-reach, reach), (0.0, 1.0), torch.zeros(1, 2))


@pytest.fixture
def trained(tmp_path: Path) -> TrainedRun:
    settings = Settings()
    assert isinstance(settings, Experiment)
    return TrainedRun(RunFolder(tmp_path), settings)


INT = IntSlider("components", 1, 5)
FLOAT = FloatSlider("rate", 0.5, 2.0)
SELECT = Select("class", ("cat", "dog", "owl"))
DRAWING = DrawingPad("drawing", (2, 3))
POINT = PointPicker("point", Plane((-1.0, 1.0), (0.0, 4.0), torch.zeros(0, 2)))
POINTS = PointsPicker("points", Plane((-1.0, 1.0), (0.0, 4.0), torch.zeros(0, 2)), max_points=2)


def read_value_or_message(control: Control, value: object) -> object:
    """The value read by a control, or its error message."""
    try:
        return control.read(value)
    except ValueError as error:
        return str(error)


def test_valid_values_are_converted_to_their_type() -> None:
    cases: list[tuple[Control, object, object]] = [
        (INT, 3, 3),
        (INT, 3.0, 3),  # sliders send floats
        (INT, 1, 1),
        (INT, 5, 5),
        (FLOAT, 0.5, 0.5),
        (FLOAT, 2, 2.0),
        (SELECT, 2, 2),
        (POINT, [0.5, 4], (0.5, 4.0)),
        (POINT, (-1.0, 0.0), (-1.0, 0.0)),
        (POINTS, [], ()),
        (POINTS, [[0.5, 4], (-1, 0.0)], ((0.5, 4.0), (-1.0, 0.0))),
    ]
    results = [(control.read(value), expected) for control, value, expected in cases]
    assert [pair for pair in results if pair[0] != pair[1] or type(pair[0]) is not type(pair[1])] == []


def test_other_types_and_non_finite_numbers_raise_value_error() -> None:
    values: list[object] = ["1", None, True, [1], float("nan"), float("inf"), -float("inf"), 10**400]
    controls: list[Control] = [INT, FLOAT, SELECT]
    messages = [
        (control.label, str(value)[:8], read_value_or_message(control, value))
        for control in controls
        for value in values
    ]
    assert [row for row in messages if row[2] != f"{row[0]} must be a number"] == []


def test_values_outside_the_limits_raise_value_error() -> None:
    cases: list[tuple[Control, object, str]] = [
        (INT, 0, "components must be between 1 and 5; got 0"),
        (INT, 6, "components must be between 1 and 5; got 6"),
        (INT, 2.5, "components must be an integer; got 2.5"),
        (FLOAT, 0.49, "rate must be between 0.5 and 2; got 0.49"),
        (FLOAT, 1e9, "rate must be between 0.5 and 2; got 1e+09"),
        (SELECT, 3, "class must be between 0 and 2; got 3"),
        (SELECT, -1, "class must be between 0 and 2; got -1"),
        (SELECT, 0.5, "class must be one of the 3 choices"),
        (POINT, [0.5], "point must be two numbers"),
        (POINT, [0, 1, 2], "point must be two numbers"),
        (POINT, 0.5, "point must be two numbers"),
        (POINT, "ab", "point must be two numbers"),
        (POINT, [0.5, float("nan")], "point must be a number"),
        (POINT, [1.5, 1.0], "point must be between -1 and 1; got 1.5"),
        (POINT, [0.5, 5.0], "point must be between 0 and 4; got 5"),
        (POINTS, None, "points must be pairs of numbers"),
        (POINTS, "ab", "points must be pairs of numbers"),
        (POINTS, [0.5, 1.0], "points must be two numbers"),
        (POINTS, [[0.5, 1.0, 2.0]], "points must be two numbers"),
        (POINTS, [[0.5, "1"]], "points must be a number"),
        (POINTS, [[0.5, 1.0], [0.5, 5.0]], "points must be between 0 and 4; got 5"),
        (POINTS, [[0.5, 1.0]] * 3, "points must be at most 2; got 3"),
    ]
    messages = [(read_value_or_message(control, value), expected) for control, value, expected in cases]
    assert [pair for pair in messages if pair[0] != pair[1]] == []


def test_drawing_is_read_row_by_row() -> None:
    drawing = DRAWING.read([0, 0.25, 0.5, 0.75, 1, 0])
    torch.testing.assert_close(drawing, torch.tensor([[0, 0.25, 0.5], [0.75, 1, 0]]))


def test_drawing_of_another_size_raises_value_error() -> None:
    values: list[object] = [[0.0] * 5, [0.0] * 7, [[0.0] * 3] * 2, "000000", None, 3, {0: 0.0}]
    messages = [read_value_or_message(DRAWING, value) for value in values]
    assert set(messages) == {"drawing must be 2 × 3 grey values, row by row"}


def test_invalid_grey_values_raise_value_error() -> None:
    greys: list[object] = [-0.1, 1.1, float("nan"), float("inf"), True, "0", None, 10**400]
    messages = [read_value_or_message(DRAWING, [0.0, 0.0, 0.0, 0.0, 0.0, grey]) for grey in greys]
    assert set(messages) == {"drawing must have grey values between 0 and 1"}


def test_initial_value_is_the_default_clipped_to_the_limits() -> None:
    cases: list[tuple[Control, object, object]] = [
        (INT, 3, 3),
        (INT, 16, 5),
        (INT, 0, 1),
        (FLOAT, 9.0, 2.0),
        (SELECT, 7, 2),
        (POINT, (0.5, 0.5), (0.5, 0.5)),
        (POINT, None, (0.0, 2.0)),  # without a default, the centre
        (POINTS, ((0.5, 0.5),), ((0.5, 0.5),)),
        (POINTS, None, ()),
    ]
    results = [(control.initial_value(default), expected) for control, default, expected in cases]
    assert [pair for pair in results if pair[0] != pair[1]] == []


def test_initial_drawing_is_the_default_the_first_example_or_empty() -> None:
    example = torch.ones(2, 3)
    assert torch.equal(DRAWING.initial_value(None), torch.zeros(2, 3))
    assert torch.equal(
        DrawingPad("drawing", (2, 3), [("one", example), ("none", 0 * example)]).initial_value(None), example
    )
    assert torch.equal(DRAWING.initial_value(example), example)


def test_run_dependent_limits_are_resolved(trained: TrainedRun) -> None:
    assert IntSlider("components", 1, num_features).resolve(trained) == IntSlider("components", 1, 5)
    assert FloatSlider("rate", 0.0, lambda run: num_features(run) / 2).resolve(trained) == FloatSlider("rate", 0.0, 2.5)
    names = Select("class", lambda run: [str(kind) for kind in range(num_features(run))]).resolve(trained)
    assert names == Select("class", ["0", "1", "2", "3", "4"])
    assert DrawingPad("drawing", lambda run: (num_features(run), 2)).resolve(trained) == DrawingPad("drawing", (5, 2))
    with pytest.raises(ValueError, match="point must be between -5 and 5; got 6"):
        PointPicker("point", run_plane).resolve(trained).read([6, 0.5])
    with pytest.raises(ValueError, match="points must be at most 5; got 6"):
        PointsPicker("points", run_plane, max_points=num_features).resolve(trained).read([[0, 0.5]] * 6)


def test_constant_limits_resolve_without_a_run() -> None:
    for control in (INT, FLOAT, SELECT, DRAWING, POINT, POINTS):
        assert control.resolve(None) == control


def test_run_dependent_limit_without_a_run_raises_type_error() -> None:
    with pytest.raises(TypeError, match="requires a probe with a run"):
        IntSlider("components", 1, num_features).resolve(None)


def test_limit_is_computed_once_per_run(trained: TrainedRun) -> None:
    calls = []

    def limit(run: TrainedRun) -> int:
        calls.append(run)
        return 3

    control = IntSlider("components", 1, limit)
    assert control.resolve(trained) == control.resolve(trained)
    assert calls == [trained]


def test_text_is_read_unchanged(trained: TrainedRun) -> None:
    control = TextInput("the text", num_features).resolve(trained)
    assert control.max_length == 5
    assert control.initial_value("Call") == "Call"
    assert control.read(" é\n") == " é\n"
    assert control.read("") == ""
    with pytest.raises(ValueError, match=r"the text must have at most 5 characters; got 6"):
        control.read("sixsix")
    with pytest.raises(ValueError, match=r"the text must be text"):
        control.read(3)
