"""The worker: results of claims with their figures, answers as plain values, and the lifetime of its process."""

import asyncio
import base64
import io
import json
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest
import torch
from cli.conftest import clean_environment
from PIL import Image

from lab.conftest import is_alive, wait_for
from parnassus.atlas.declarations import Mark, Probe
from parnassus.atlas.evidence import Correction, Evidence, close
from parnassus.atlas.index import Atlas
from parnassus.lab.answers import ANSWER_VIEWS
from parnassus.lab.controls import CONTROL_VIEWS
from parnassus.lab.worker import check_claim, evaluate, open_probe
from parnassus.lab.worker_process import WorkerProcess
from parnassus.runs import RunError
from parnassus.widgets import (
    Animation,
    Answer,
    Bars,
    Control,
    Curves,
    DrawingPad,
    FloatSlider,
    Graph,
    GraphEdge,
    GraphNode,
    Images,
    IntSlider,
    Numbers,
    Plane,
    PointPicker,
    PointsPicker,
    Select,
    Trajectories,
)

ATLAS = Atlas()


def mark_of(function: Callable[..., object]) -> Mark:
    """A mark on a function of this file."""
    return Mark("claim", function.__name__, __name__, ("B1.1-1",), "", "", "")


def failing_claim() -> Evidence:
    return close(1.0, 2.0)


def crashing_claim() -> Evidence:
    raise ZeroDivisionError("no number <b>at all</b>")


def claim_without_evidence() -> int:
    return 3


# claims and errata


def test_claim_result_has_outcome_and_figure() -> None:
    mark = next(mark for mark in ATLAS.marks_of("B13.2.3-1") if mark.kind == "claim")
    result = check_claim(mark)
    assert isinstance(result.outcome, Evidence)
    assert result.holds
    assert result.error == ""
    assert result.seconds > 0
    assert ET.fromstring(result.figure).tag == "{http://www.w3.org/2000/svg}svg"
    assert pickle.loads(pickle.dumps(result)) == result


def test_erratum_result_has_both_sides() -> None:
    mark = next(mark for mark in ATLAS.marks_of("B4.3-12") if mark.kind == "erratum")
    result = check_claim(mark)
    assert isinstance(result.outcome, Correction)
    assert result.holds
    assert result.outcome.corrected.holds
    assert not result.outcome.printed.holds
    assert "printed" in result.figure
    assert ET.fromstring(result.figure).tag.endswith("svg")


def test_failing_claim_is_reported() -> None:
    result = check_claim(mark_of(failing_claim))
    assert not result.holds
    assert result.outcome == close(1.0, 2.0)
    assert result.error == ""


def test_crashing_claim_reports_its_error() -> None:
    result = check_claim(mark_of(crashing_claim))
    assert not result.holds
    assert (result.outcome, result.figure) == (None, "")
    assert result.error == "ZeroDivisionError: no number <b>at all</b>"
    other_type = check_claim(mark_of(claim_without_evidence))
    assert other_type.error.startswith("TypeError: ")
    assert other_type.error.endswith("must return Evidence or Correction; got int")
    assert check_claim(Mark("claim", "gone", "parnassus.nowhere", ("B1.1-1",), "")).error.startswith(
        "ModuleNotFoundError"
    )


# probes

POINTS = torch.tensor([[0.0, 0.5], [1.0, 0.25]])
PLANE = Plane((-2.0, 2.0), (0.0, 1.0), POINTS, torch.tensor([1, 0]), ("a", "b"), "x", "y")


def all_controls(
    level: Annotated[int, IntSlider("level of grey", 0, 255)] = 51,
    rate: Annotated[float, FloatSlider("rate", 0.001, 10.0, log=True)] = 0.1,
    kind: Annotated[int, Select("kind", ("one", "two"))] = 1,
    *,
    point: Annotated[tuple[float, float], PointPicker("point", PLANE)] = (0.5, 0.5),
    points: Annotated[tuple[tuple[float, float], ...], PointsPicker("points", PLANE, max_points=3)] = ((0.0, 1.0),),
    drawing: Annotated[torch.Tensor | None, DrawingPad("drawing", (2, 3))] = None,
) -> Sequence[Answer]:
    """A probe with a control and an answer of every kind."""
    assert drawing is not None
    grey = torch.full((2, 1, 2, 3), level / 255)
    colour = torch.tensor([1.5, level / 255, -0.5]).view(1, 3, 1, 1).expand(1, 3, 2, 2)
    frames = torch.stack([torch.full((2, 1, 4, 14), t / 2) for t in range(3)])
    grid = torch.linspace(-1, 1, 5)
    return [
        Images("grey", grey, ["first"]),
        Images("colour", colour, ["only"], about="x_t"),
        Animation("animation", frames, ["0", "1", "2"]),
        Bars("bars", ["a", "b"], torch.tensor([0.25, rate]), marked=kind, errors=torch.tensor([0.5, 0.0])),
        Curves("curves", {"y": ([0.0, 1.0], [1.0, 2.0])}, "x", "y", log_y=True, marked=point[0]),
        Trajectories("paths", {"gd": POINTS}, grid, grid, grid[:, None].square() + grid**2),
        Graph(
            "graph",
            [GraphNode("x", "1", 0.0, 0.5, marked=True), GraphNode("y", "", 2.0, -1.0)],
            [GraphEdge(0, 1, "dy", [(1.0, 0.0)])],
        ),
        Numbers("numbers", {"ink": float(drawing.sum()), "word": "yes", "points": float(len(points))}),
    ]


PROBE = Probe("all_controls", __name__, "A probe.", "", ())
DRAWING = {"drawing": [0.0, 0.25, 0.5, 0.75, 1.0, 1.0]}


def pixels(url: str) -> "np.ndarray[tuple[int, ...], np.dtype[np.uint8]]":
    head, _, body = url.partition(",")
    assert head == "data:image/png;base64"
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(body, validate=True))))


def test_controls_are_serialised_with_limits_and_initial_values() -> None:
    controls = {control.pop("name"): control for control in json.loads(json.dumps(open_probe(PROBE, None)))}
    assert controls["level"] == {"kind": "int_slider", "label": "level of grey", "low": 0, "high": 255, "initial": 51}
    rate = {"kind": "float_slider", "label": "rate", "low": 0.001, "high": 10.0, "log": True, "initial": 0.1}
    assert controls["rate"] == rate
    assert controls["kind"] == {"kind": "select", "label": "kind", "choices": ["one", "two"], "initial": 1}
    drawing = {"kind": "drawing_pad", "label": "drawing", "shape": [2, 3], "examples": [], "initial": [0.0] * 6}
    assert controls["drawing"] == drawing
    assert controls["point"]["initial"] == [0.5, 0.5]
    points = {"kind": "points_picker", "label": "points", "max_points": 3, "initial": [[0.0, 1.0]]}
    assert controls["points"] == {**points, "plane": controls["point"]["plane"]}
    assert controls["point"]["plane"] == {
        "x_range": [-2.0, 2.0],
        "y_range": [0.0, 1.0],
        "points": [[0.0, 0.5, 1], [1.0, 0.25, 0]],
        "classes": ["a", "b"],
        "x_label": "x",
        "y_label": "y",
    }


def test_answers_are_serialised_and_images_have_correct_pixels() -> None:
    values = {"level": 102, "rate": 2, "kind": 0, "point": [-1, 1], "points": [[0, 1], [1, 0]], **DRAWING}
    answers = evaluate(PROBE, None, values)
    assert json.loads(json.dumps(answers, allow_nan=False)) == answers
    grey, colour, animation, bars, curves, trajectories, graph, numbers = answers
    assert [pixels(each).tolist() for each in grey["images"]] == 2 * [[[102] * 3] * 2]
    assert grey["captions"] == ["first", ""]  # one per image
    assert pixels(colour["images"][0]).tolist() == [[[255, 102, 0]] * 2] * 2  # clipped to white and black
    frames = [pixels(each) for each in animation["frames"]]
    assert [frame.shape for frame in frames] == [(4, 14 + 1 + 14, 4)] * 3  # two images with a transparent gap
    assert frames[2][0, :, 3].tolist() == [255] * 14 + [0] + [255] * 14
    assert [frame[0, 0].tolist() for frame in frames] == [[0, 0, 0, 255], [128, 128, 128, 255], [255] * 4]
    assert (bars["values"], bars["marked"]) == ([0.25, 2.0], 0)
    assert (bars["errors"], bars["truth"]) == ([0.5, 0.0], [])
    assert (curves["lines"], curves["marked"], curves["log_y"]) == ({"y": [[0.0, 1.0], [1.0, 2.0]]}, -1.0, True)
    assert trajectories["paths"] == {"gd": [[0.0, 0.5], [1.0, 0.25]]}
    assert (trajectories["x_range"], trajectories["y_range"]) == ([-1.0, 1.0], [-1.0, 1.0])
    levels = pixels(trajectories["levels"])
    assert levels.shape == (480, 480, 4)
    assert np.abs(levels.astype(int) - levels[::-1].astype(int))[..., 3].mean() < 4  # the function is symmetric
    assert graph["nodes"][0] == {"label": "x", "value": "1", "x": 0.0, "y": 0.5, "marked": True}
    assert graph["edges"] == [{"start": 0, "end": 1, "label": "dy", "waypoints": [[1.0, 0.0]]}]
    assert numbers["values"] == {"ink": 3.5, "word": "yes", "points": 2.0}


def test_values_outside_the_limits_raise_value_error() -> None:
    cases: list[tuple[dict[str, object], str]] = [
        ({"level": 256}, "level of grey must be between 0 and 255; got 256"),
        ({"level": 1.5}, "level of grey must be an integer; got 1.5"),
        ({"level": "7"}, "level of grey must be a number"),
        ({"level": True}, "level of grey must be a number"),
        ({"rate": float("nan")}, "rate must be a number"),
        ({"rate": 10**400}, "rate must be a number"),
        ({"rate": -1}, "rate must be between 0.001 and 10; got -1"),
        ({"kind": 2}, "kind must be between 0 and 1; got 2"),
        ({"kind": None}, "kind must be a number"),
        ({"point": [0]}, "point must be two numbers"),
        ({"point": [0, 9]}, "point must be between 0 and 1; got 9"),
        ({"point": "00"}, "point must be two numbers"),
        ({"points": [[0, 1]] * 4}, "points must be at most 3; got 4"),
        ({"drawing": [0.0] * 7}, "drawing must be 2 × 3 grey values, row by row"),
        ({"drawing": [2.0] * 6}, "drawing must have grey values between 0 and 1"),
        ({"drawing": [float("nan")] * 6}, "drawing must have grey values between 0 and 1"),
        ({"drawing": {"a": 1}}, "drawing must be 2 × 3 grey values, row by row"),
        ({"nothing": 1}, "unknown controls: nothing; available: level, rate, kind, point, points, drawing"),
    ]
    for values, message in cases:
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            evaluate(PROBE, None, DRAWING | values)


def test_every_kind_of_control_and_answer_has_a_view() -> None:
    for views, parent in ((CONTROL_VIEWS, Control), (ANSWER_VIEWS, Answer)):
        kinds = [vars(each)["kind"] for each in parent.__subclasses__()]
        assert sorted(views) == sorted(kinds)


RUNS = {"draw_a_digit": "seed-0", "reconstruct_from_components": "pca"}
RUNS |= {"compare_optimisers": ""}
RUNS |= {"plot_activation": "", "gradient_descent_on_quadratic": "", "differentiate_an_expression": ""}


@pytest.mark.parametrize("name", RUNS)
def test_answers_of_probes_are_serialisable_at_every_limit(lab_runs: Path, name: str) -> None:
    run = RUNS[name]
    probe, folder = ATLAS.probes[name], str(lab_runs / run) if run else None
    controls = open_probe(probe, folder)
    assert json.loads(json.dumps(controls, allow_nan=False))
    limits = {c["name"]: (c["low"], c["high"]) for c in controls if c["kind"] in ("int_slider", "float_slider")}
    limits |= {c["name"]: (0, len(c["choices"]) - 1) for c in controls if c["kind"] == "select"}
    settings: list[dict[str, Any]] = [{}, *({name: value} for name, values in limits.items() for value in values)]
    for values in settings:
        answers = evaluate(probe, folder, values)
        assert answers
        json.dumps(answers, allow_nan=False)
        for answer in answers:
            for url in (*answer.get("images", ()), *answer.get("frames", ())):
                assert pixels(url).size > 0


def test_missing_weights_or_folder_raise_run_error(lab_runs: Path, tmp_path: Path) -> None:
    """The run was never finished, or it was deleted while the page was open."""
    probe = ATLAS.probes["draw_a_digit"]
    shutil.copytree(lab_runs / "seed-0", tmp_path / "half", ignore=shutil.ignore_patterns("weights.*", "result.json"))
    with pytest.raises(RunError, match="half has no weights yet: its status is interrupted; parnassus resume half"):
        evaluate(probe, str(tmp_path / "half"), {})
    with pytest.raises(RunError, match="gone is not a run: run"):
        evaluate(probe, str(tmp_path / "gone"), {})


# the process


def test_crashed_worker_is_reported_and_replaced() -> None:
    async def use() -> tuple[int, int]:
        process = WorkerProcess()
        first = await process.run(os.getpid)
        assert first == await process.run(os.getpid) != os.getpid()
        with pytest.raises(RuntimeError, match="the worker process crashed; try again"):
            await process.run(os._exit, 3)
        second = await process.run(os.getpid)
        with pytest.raises(ZeroDivisionError, match="at all"):
            await process.run(crashing_claim)
        assert second == await process.run(os.getpid)
        process.close()
        return first, second

    first, second = asyncio.run(use())
    assert first != second
    wait_for(lambda: not is_alive(first) and not is_alive(second), "the end of unused workers")


PARENT = """
import asyncio, os, sys, time
from parnassus.lab.worker_process import WorkerProcess

async def main():
    process = WorkerProcess()
    print(await process.run(os.getpid), flush=True)
    await process.run(time.sleep, 600)

if __name__ == "__main__":
    asyncio.run(main())
"""


def test_worker_terminates_with_its_parent_during_a_task(tmp_path: Path) -> None:
    (tmp_path / "parent.py").write_text(PARENT)
    with subprocess.Popen(
        [sys.executable, str(tmp_path / "parent.py")], stdout=subprocess.PIPE, text=True, env=clean_environment()
    ) as parent:
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
        assert is_alive(worker)
        parent.send_signal(signal.SIGKILL)
    try:
        wait_for(lambda: not is_alive(worker), "the end of a worker after its lab")
    except AssertionError:
        os.kill(worker, signal.SIGKILL)
        raise
