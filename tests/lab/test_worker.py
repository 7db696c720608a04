"""What is computed beside the lab: verdicts with their figures, answers as plain values, and when the process ends."""

import asyncio
import base64
import io
import json
import os
import pickle
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

from lab.conftest import alive, wait_for
from parnassus.atlas.evidence import Correction, Evidence, close
from parnassus.atlas.index import Atlas
from parnassus.atlas.reading import Mark, Probe
from parnassus.lab.workbench import Workbench
from parnassus.lab.worker import ask, check, open_probe
from parnassus.runs import RunError
from parnassus.touch import (
    Answer,
    Arrow,
    Bars,
    Box,
    Curves,
    Drawing,
    Film,
    Graph,
    Images,
    Numbers,
    Pick,
    Plane,
    Point,
    Points,
    Real,
    Whole,
)
from parnassus.touch import Path as Way

ATLAS = Atlas()


def own(function: Callable[..., object]) -> Mark:
    """A mark on a function of this file."""
    return Mark("claim", function.__name__, __name__, ("B1.1-1",), "", "", "")


def a_claim_that_fails() -> Evidence:
    return close(1.0, 2.0)


def a_claim_that_crashes() -> Evidence:
    raise ZeroDivisionError("no number <b>at all</b>")


def a_claim_that_returns_something_else() -> int:
    return 3


# claims and errata


def test_a_claim_comes_back_with_its_numbers_and_its_figure() -> None:
    mark = next(mark for mark in ATLAS.marks if mark.name == "the_product_of_kernels_telescopes")
    verdict = check(mark)
    assert isinstance(verdict.outcome, Evidence)
    assert verdict.holds
    assert verdict.error == ""
    assert 0 < verdict.seconds < 30
    assert ET.fromstring(verdict.figure).tag == "{http://www.w3.org/2000/svg}svg"
    assert pickle.loads(pickle.dumps(verdict)) == verdict


def test_an_erratum_comes_back_with_both_sides() -> None:
    mark = next(mark for mark in ATLAS.marks if mark.name == "the_best_plane_comes_from_the_covariance")
    verdict = check(mark)
    assert isinstance(verdict.outcome, Correction)
    assert verdict.holds
    assert verdict.outcome.corrected.holds
    assert not verdict.outcome.printed.holds
    assert "printed" in verdict.figure
    assert ET.fromstring(verdict.figure).tag.endswith("svg")


def test_a_claim_that_does_not_hold_says_so() -> None:
    verdict = check(own(a_claim_that_fails))
    assert not verdict.holds
    assert verdict.outcome == close(1.0, 2.0)
    assert verdict.error == ""


def test_a_claim_that_crashes_does_not_hold_and_says_why() -> None:
    verdict = check(own(a_claim_that_crashes))
    assert not verdict.holds
    assert (verdict.outcome, verdict.figure) == (None, "")
    assert verdict.error == "ZeroDivisionError: no number <b>at all</b>"
    strange = check(own(a_claim_that_returns_something_else))
    assert strange.error.startswith("TypeError: ")
    assert strange.error.endswith("must return Evidence or Correction; got int")
    assert check(Mark("claim", "gone", "parnassus.nowhere", ("B1.1-1",), "")).error.startswith("ModuleNotFoundError")


# probes

POINTS = torch.tensor([[0.0, 0.5], [1.0, 0.25]])
PLANE = Plane((-2.0, 2.0), (0.0, 1.0), POINTS, torch.tensor([1, 0]), ("a", "b"), "x", "y")


def everything(
    level: Annotated[int, Whole("level of grey", 0, 255)] = 51,
    rate: Annotated[float, Real("rate", 0.001, 10.0, log=True)] = 0.1,
    kind: Annotated[int, Pick("kind", ("one", "two"))] = 1,
    *,
    place: Annotated[tuple[float, float], Point("place", PLANE)] = (0.5, 0.5),
    places: Annotated[tuple[tuple[float, float], ...], Points("places", PLANE, most=3)] = ((0.0, 1.0),),
    drawing: Annotated[torch.Tensor | None, Drawing("drawing", (2, 3))] = None,
) -> Sequence[Answer]:
    """A probe with a control and an answer of every kind."""
    assert drawing is not None
    grey = torch.full((2, 1, 2, 3), level / 255)
    colour = torch.tensor([1.5, level / 255, -0.5]).view(1, 3, 1, 1).expand(1, 3, 2, 2)
    film = torch.stack([torch.full((2, 1, 4, 14), t / 2) for t in range(3)])
    grid = torch.linspace(-1, 1, 5)
    return [
        Images("grey", grey, ["first"]),
        Images("colour", colour, ["only"], about="x_t"),
        Film("film", film, ["0", "1", "2"]),
        Bars("bars", ["a", "b"], torch.tensor([0.25, rate]), marked=kind, errors=torch.tensor([0.5, 0.0])),
        Curves("curves", {"y": ([0.0, 1.0], [1.0, 2.0])}, "x", "y", log_y=True, marked=place[0]),
        Way("way", {"gd": torch.tensor([[0.0, 0.5], [1.0, 0.25]])}, grid, grid, grid[:, None].square() + grid**2),
        Graph(
            "graph", [Box("x", "1", 0.0, 0.5, marked=True), Box("y", "", 2.0, -1.0)], [Arrow(0, 1, "dy", [(1.0, 0.0)])]
        ),
        Numbers("numbers", {"ink": float(drawing.sum()), "word": "yes", "places": float(len(places))}),
    ]


OWN = Probe("everything", __name__, "A probe.", "", ())
DRAWN = {"drawing": [0.0, 0.25, 0.5, 0.75, 1.0, 1.0]}


def pixels(url: str) -> "np.ndarray[tuple[int, ...], np.dtype[np.uint8]]":
    head, _, body = url.partition(",")
    assert head == "data:image/png;base64"
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(body, validate=True))))


def test_controls_are_told_with_their_limits_and_where_they_stand() -> None:
    controls = {control.pop("name"): control for control in json.loads(json.dumps(open_probe(OWN, None)))}
    assert controls["level"] == {"kind": "whole", "about": "level of grey", "low": 0, "high": 255, "start": 51}
    assert controls["rate"] == {"kind": "real", "about": "rate", "low": 0.001, "high": 10.0, "log": True, "start": 0.1}
    assert controls["kind"] == {"kind": "pick", "about": "kind", "names": ["one", "two"], "start": 1}
    drawing = {"kind": "drawing", "about": "drawing", "shape": [2, 3], "examples": [], "start": [0.0] * 6}
    assert controls["drawing"] == drawing
    assert controls["place"]["start"] == [0.5, 0.5]
    places = {"kind": "points", "about": "places", "most": 3, "start": [[0.0, 1.0]]}
    assert controls["places"] == {**places, "plane": controls["place"]["plane"]}
    assert controls["place"]["plane"] == {
        "across": [-2.0, 2.0],
        "up": [0.0, 1.0],
        "points": [[0.0, 0.5, 1], [1.0, 0.25, 0]],
        "classes": ["a", "b"],
        "names": ["x", "y"],
    }


def test_answers_are_plain_values_and_pictures_the_right_pixels() -> None:
    values = {"level": 102, "rate": 2, "kind": 0, "place": [-1, 1], "places": [[0, 1], [1, 0]], **DRAWN}
    answers = ask(OWN, None, values)
    assert json.loads(json.dumps(answers, allow_nan=False)) == answers
    grey, colour, film, bars, curves, way, graph, numbers = answers
    assert [pixels(each).tolist() for each in grey["pictures"]] == 2 * [[[102] * 3] * 2]
    assert grey["captions"] == ["first", ""]  # one a picture
    assert pixels(colour["pictures"][0]).tolist() == [[[255, 102, 0]] * 2] * 2  # cut off at white and at black
    frames = [pixels(each) for each in film["frames"]]
    assert [frame.shape for frame in frames] == [(4, 14 + 1 + 14, 4)] * 3  # two pictures, and nothing between them
    assert frames[2][0, :, 3].tolist() == [255] * 14 + [0] + [255] * 14
    assert [frame[0, 0].tolist() for frame in frames] == [[0, 0, 0, 255], [128, 128, 128, 255], [255] * 4]
    assert (bars["values"], bars["marked"]) == ([0.25, 2.0], 0)
    assert (bars["errors"], bars["truth"]) == ([0.5, 0.0], [])
    assert (curves["lines"], curves["marked"], curves["log_y"]) == ({"y": [[0.0, 1.0], [1.0, 2.0]]}, -1.0, True)
    assert way["ways"] == {"gd": [[0.0, 0.5], [1.0, 0.25]]}
    assert (way["across"], way["up"]) == ([-1.0, 1.0], [-1.0, 1.0])
    relief = pixels(way["levels"])
    assert relief.shape == (480, 480, 4)
    assert np.abs(relief.astype(int) - relief[::-1].astype(int))[..., 3].mean() < 4  # a bowl is alike above and below
    assert graph["boxes"][0] == {"label": "x", "value": "1", "across": 0.0, "up": 0.5, "marked": True}
    assert graph["arrows"] == [{"start": 0, "end": 1, "label": "dy", "through": [[1.0, 0.0]]}]
    assert numbers["values"] == {"ink": 3.5, "word": "yes", "places": 2.0}


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"level": 256}, "level of grey must be between 0 and 255; got 256"),
        ({"level": 1.5}, "level of grey must be a whole number; got 1.5"),
        ({"level": "7"}, "level of grey must be a number"),
        ({"level": True}, "level of grey must be a number"),
        ({"rate": float("nan")}, "rate must be a number"),
        ({"rate": 10**400}, "rate must be a number"),
        ({"rate": -1}, "rate must be between 0.001 and 10; got -1"),
        ({"kind": 2}, "kind must be between 0 and 1; got 2"),
        ({"kind": None}, "kind must be a number"),
        ({"place": [0]}, "place must be two numbers"),
        ({"place": [0, 9]}, "place must be between 0 and 1; got 9"),
        ({"place": "00"}, "place must be two numbers"),
        ({"places": [[0, 1]] * 4}, "places must be at most 3; got 4"),
        ({"drawing": [0.0] * 7}, "drawing must be 2 × 3 grey values, row by row"),
        ({"drawing": [2.0] * 6}, "drawing must have grey values between 0 and 1"),
        ({"drawing": [float("nan")] * 6}, "drawing must have grey values between 0 and 1"),
        ({"drawing": {"a": 1}}, "drawing must be 2 × 3 grey values, row by row"),
        ({"nothing": 1}, "there is no control nothing; there are level, rate, kind, place, places, drawing"),
    ],
)
def test_a_value_out_of_range_is_a_sentence(values: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - the whole sentence is compared below
        ask(OWN, None, DRAWN | values)
    assert str(refused.value) == sentence


TOUCHED = {"draw_a_digit": "seed-0", "rebuild_from_components": "pca"}
TOUCHED |= {"race_optimisers": ""}
TOUCHED |= {"look_at_an_activation": "", "roll_down_a_bowl": "", "differentiate_an_expression": ""}


@pytest.mark.parametrize("name", TOUCHED)
def test_real_probes_speak_plainly_at_every_end_of_their_controls(lab_runs: Path, name: str) -> None:
    run = TOUCHED[name]
    probe, folder = ATLAS.probes[name], str(lab_runs / run) if run else None
    controls = open_probe(probe, folder)
    assert json.loads(json.dumps(controls, allow_nan=False))
    ends = {c["name"]: (c["low"], c["high"]) for c in controls if c["kind"] in ("whole", "real")}
    ends |= {c["name"]: (0, len(c["names"]) - 1) for c in controls if c["kind"] == "pick"}
    questions: list[dict[str, Any]] = [{}, *({key: end} for key, both in ends.items() for end in both)]
    for question in questions:
        answers = ask(probe, folder, question)
        assert answers
        json.dumps(answers, allow_nan=False)
        for answer in answers:
            for url in (*answer.get("pictures", ()), *answer.get("frames", ())):
                assert pixels(url).size > 0


def test_a_folder_that_cannot_be_touched_says_so(lab_runs: Path, tmp_path: Path) -> None:
    """It was deleted while the page was open, or it was never finished."""
    probe = ATLAS.probes["draw_a_digit"]
    shutil.copytree(lab_runs / "seed-0", tmp_path / "half", ignore=shutil.ignore_patterns("weights.*", "result.json"))
    with pytest.raises(RunError, match="half has no weights yet: its status is interrupted; parnassus resume half"):
        ask(probe, str(tmp_path / "half"), {})
    with pytest.raises(RunError, match="gone is not a run: it has no run"):
        ask(probe, str(tmp_path / "gone"), {})


# the process


def test_a_worker_that_dies_is_told_of_and_replaced() -> None:
    async def use() -> tuple[int, int]:
        bench = Workbench()
        first = await bench.do(os.getpid)
        assert first == await bench.do(os.getpid) != os.getpid()
        with pytest.raises(RuntimeError, match="the process that computes this died; try again"):
            await bench.do(os._exit, 3)
        second = await bench.do(os.getpid)
        with pytest.raises(ZeroDivisionError, match="at all"):
            await bench.do(a_claim_that_crashes)
        assert second == await bench.do(os.getpid)
        bench.close()
        return first, second

    first, second = asyncio.run(use())
    assert first != second
    wait_for(lambda: not alive(first) and not alive(second), "workers that are not needed", 10)


PARENT = """
import asyncio, os, sys, time
from parnassus.lab.workbench import Workbench

async def main():
    bench = Workbench()
    print(await bench.do(os.getpid), flush=True)
    await bench.do(time.sleep, 600)

if __name__ == "__main__":
    asyncio.run(main())
"""


def test_a_worker_dies_with_its_lab_even_in_the_middle_of_something(tmp_path: Path) -> None:
    (tmp_path / "parent.py").write_text(PARENT)
    with subprocess.Popen(
        [sys.executable, str(tmp_path / "parent.py")], stdout=subprocess.PIPE, text=True, env=clean_environment()
    ) as parent:
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
        assert alive(worker)
        parent.send_signal(signal.SIGKILL)
    try:
        wait_for(lambda: not alive(worker), "a worker whose lab was killed", 10)
    except AssertionError:
        os.kill(worker, signal.SIGKILL)
        raise
