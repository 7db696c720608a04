"""Controls read what comes from outside, or say in a sentence why they cannot."""

from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest
import torch

from parnassus.runs import RunFolder
from parnassus.touch import Control, Drawing, Pick, Plane, Point, Points, Real, Typed, Whole
from parnassus.train.execute import Experiment
from parnassus.train.run import Run
from parnassus.train.trained import Trained


@dataclass(frozen=True)
class Settings:
    features: int = 5

    def __call__(self, run: Run) -> dict[str, float]:
        raise NotImplementedError


def features(trained: Trained) -> int:
    return cast("Settings", trained.experiment).features


def plane(trained: Trained) -> Plane:
    reach = float(features(trained))
    return Plane((-reach, reach), (0.0, 1.0), torch.zeros(1, 2))


@pytest.fixture
def trained(tmp_path: Path) -> Trained:
    settings = Settings()
    assert isinstance(settings, Experiment)
    return Trained(RunFolder(tmp_path), settings)


WHOLE = Whole("components", 1, 5)
REAL = Real("rate", 0.5, 2.0)
PICK = Pick("class", ("cat", "dog", "owl"))
DRAWING = Drawing("drawing", (2, 3))
POINT = Point("place", Plane((-1.0, 1.0), (0.0, 4.0), torch.zeros(0, 2)))
POINTS = Points("places", Plane((-1.0, 1.0), (0.0, 4.0), torch.zeros(0, 2)), most=2)


@pytest.mark.parametrize(
    ("control", "value", "read"),
    [
        (WHOLE, 3, 3),
        (WHOLE, 3.0, 3),  # what a slider sends
        (WHOLE, 1, 1),
        (WHOLE, 5, 5),
        (REAL, 0.5, 0.5),
        (REAL, 2, 2.0),
        (PICK, 2, 2),
        (POINT, [0.5, 4], (0.5, 4.0)),
        (POINT, (-1.0, 0.0), (-1.0, 0.0)),
        (POINTS, [], ()),
        (POINTS, [[0.5, 4], (-1, 0.0)], ((0.5, 4.0), (-1.0, 0.0))),
    ],
)
def test_a_good_value_gets_its_type(control: Control, value: object, read: object) -> None:
    found = control.read(value)
    assert found == read
    assert type(found) is type(read)


NO_NUMBERS = ["1", None, True, [1], float("nan"), float("inf"), -float("inf"), 10**400]


@pytest.mark.parametrize("value", NO_NUMBERS, ids=lambda value: str(value)[:8])
@pytest.mark.parametrize("control", [WHOLE, REAL, PICK], ids=["whole", "real", "pick"])
def test_what_is_no_number_gets_a_sentence(control: Control, value: object) -> None:
    with pytest.raises(ValueError, match=f"^{control.about} must be a number$"):
        control.read(value)


@pytest.mark.parametrize(
    ("control", "value", "sentence"),
    [
        (WHOLE, 0, "components must be between 1 and 5; got 0"),
        (WHOLE, 6, "components must be between 1 and 5; got 6"),
        (WHOLE, 2.5, "components must be a whole number; got 2.5"),
        (REAL, 0.49, "rate must be between 0.5 and 2; got 0.49"),
        (REAL, 1e9, r"rate must be between 0.5 and 2; got 1e\+09"),
        (PICK, 3, "class must be between 0 and 2; got 3"),
        (PICK, -1, "class must be between 0 and 2; got -1"),
        (PICK, 0.5, "class must be one of the 3 choices"),
        (POINT, [0.5], "place must be two numbers"),
        (POINT, [0, 1, 2], "place must be two numbers"),
        (POINT, 0.5, "place must be two numbers"),
        (POINT, "ab", "place must be two numbers"),
        (POINT, [0.5, float("nan")], "place must be a number"),
        (POINT, [1.5, 1.0], "place must be between -1 and 1; got 1.5"),
        (POINT, [0.5, 5.0], "place must be between 0 and 4; got 5"),
        (POINTS, None, "places must be pairs of numbers"),
        (POINTS, "ab", "places must be pairs of numbers"),
        (POINTS, [0.5, 1.0], "places must be two numbers"),
        (POINTS, [[0.5, 1.0, 2.0]], "places must be two numbers"),
        (POINTS, [[0.5, "1"]], "places must be a number"),
        (POINTS, [[0.5, 1.0], [0.5, 5.0]], "places must be between 0 and 4; got 5"),
        (POINTS, [[0.5, 1.0]] * 3, "places must be at most 2; got 3"),
    ],
)
def test_a_value_outside_the_limits_gets_a_sentence(control: Control, value: object, sentence: str) -> None:
    with pytest.raises(ValueError, match=f"^{sentence}$"):
        control.read(value)


def test_a_drawing_is_read_row_by_row() -> None:
    drawing = DRAWING.read([0, 0.25, 0.5, 0.75, 1, 0])
    torch.testing.assert_close(drawing, torch.tensor([[0, 0.25, 0.5], [0.75, 1, 0]]))


@pytest.mark.parametrize("value", [[0.0] * 5, [0.0] * 7, [[0.0] * 3] * 2, "000000", None, 3, {0: 0.0}])
def test_a_drawing_of_another_size_gets_a_sentence(value: object) -> None:
    with pytest.raises(ValueError, match=r"drawing must (be 2 × 3 grey values, row by row|have grey values)"):
        DRAWING.read(value)


@pytest.mark.parametrize("grey", [-0.1, 1.1, float("nan"), float("inf"), True, "0", None, 10**400])
def test_a_grey_value_is_between_paper_and_ink(grey: object) -> None:
    with pytest.raises(ValueError, match="drawing must have grey values between 0 and 1"):
        DRAWING.read([0.0, 0.0, 0.0, 0.0, 0.0, grey])


@pytest.mark.parametrize(
    ("control", "default", "start"),
    [
        (WHOLE, 3, 3),
        (WHOLE, 16, 5),
        (WHOLE, 0, 1),
        (REAL, 9.0, 2.0),
        (PICK, 7, 2),
        (POINT, (0.5, 0.5), (0.5, 0.5)),
        (POINT, None, (0.0, 2.0)),  # nobody said: the middle
        (POINTS, ((0.5, 0.5),), ((0.5, 0.5),)),
        (POINTS, None, ()),
    ],
)
def test_the_start_is_the_default_brought_inside(control: Control, default: object, start: object) -> None:
    assert control.start(default) == start


def test_a_drawing_starts_from_its_default_its_first_example_or_blank_paper() -> None:
    ink = torch.ones(2, 3)
    assert torch.equal(DRAWING.start(None), torch.zeros(2, 3))
    assert torch.equal(Drawing("drawing", (2, 3), [("one", ink), ("none", 0 * ink)]).start(None), ink)
    assert torch.equal(DRAWING.start(ink), ink)


def test_limits_that_depend_on_a_run_are_settled_by_it(trained: Trained) -> None:
    assert Whole("components", 1, features).settled(trained) == Whole("components", 1, 5)
    assert Real("rate", 0.0, lambda run: features(run) / 2).settled(trained) == Real("rate", 0.0, 2.5)
    names = Pick("class", lambda run: [str(kind) for kind in range(features(run))]).settled(trained)
    assert names == Pick("class", ("0", "1", "2", "3", "4"))
    assert Drawing("drawing", lambda run: (features(run), 2)).settled(trained) == Drawing("drawing", (5, 2))
    with pytest.raises(ValueError, match="place must be between -5 and 5; got 6"):
        Point("place", plane).settled(trained).read([6, 0.5])
    with pytest.raises(ValueError, match="places must be at most 5; got 6"):
        Points("places", plane, most=features).settled(trained).read([[0, 0.5]] * 6)


def test_limits_that_do_not_depend_on_a_run_need_none() -> None:
    for control in (WHOLE, REAL, PICK, DRAWING, POINT, POINTS):
        assert control.settled(None) == control


def test_a_limit_of_a_run_without_a_run_is_a_mistake_of_the_probe() -> None:
    with pytest.raises(TypeError, match="needs a probe of a run"):
        Whole("components", 1, features).settled(None)


def test_what_a_limit_takes_is_worked_out_once(trained: Trained) -> None:
    asked = []

    def costly(run: Trained) -> int:
        asked.append(run)
        return 3

    control = Whole("components", 1, costly)
    assert control.settled(trained) == control.settled(trained)
    assert asked == [trained]


def test_words_are_read_as_they_were_typed(trained: Trained) -> None:
    control = Typed("the text", features).settled(trained)
    assert control.most == 5
    assert control.start("Call") == "Call"
    assert control.read(" é\n") == " é\n"
    assert control.read("") == ""
    with pytest.raises(ValueError, match=r"the text must have at most 5 letters; got 6"):
        control.read("sixsix")
    with pytest.raises(ValueError, match=r"the text must be words"):
        control.read(3)
