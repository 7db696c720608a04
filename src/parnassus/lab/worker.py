"""What the lab computes, in a process beside it: claims and probes, their answers as plain values for a page.

The page's process never imports torch; here it is imported once and stays. Everything goes in and out by pickle.
"""

import base64
import importlib
import io
import os
import signal
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from multiprocessing import parent_process
from multiprocessing.connection import wait
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from parnassus.atlas.evidence import Correction, Evidence
from parnassus.atlas.index import examine
from parnassus.atlas.reading import Mark, Probe
from parnassus.runs import RunFolder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from parnassus.touch import Answer, Control
    from parnassus.touch.asking import ProbeFunction
    from parnassus.train.trained import Trained

Plain: TypeAlias = dict[str, Any]
"""What a page can be told: text, numbers, lists and pictures as data URLs."""


@dataclass(frozen=True)
class Verdict:
    """What came out of a claim or an erratum."""

    outcome: Evidence | Correction | None  # None: it crashed
    error: str
    figure: str  # an SVG, empty when there is nothing to draw
    seconds: float
    at: float = field(default_factory=time.time)

    @property
    def holds(self) -> bool:
        return self.outcome is not None and self.outcome.holds


def prepare() -> None:
    """Begin a worker: Ctrl-C is the lab's business, and when the lab is gone there is nothing left to do."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_leave_with, args=(parent.sentinel,), daemon=True).start()


def _leave_with(sentinel: int) -> None:
    wait([sentinel])
    os._exit(0)


def warm_up() -> None:
    """Import what everything needs."""
    import torch

    torch.set_num_threads(1)  # models here are small, and a run may be using the other core
    torch.func.grad(torch.square)(torch.tensor(1.0))  # the first derivative of a process takes a second


def check(mark: Mark) -> Verdict:
    """Run a claim or an erratum and draw its evidence."""
    warm_up()
    began = time.perf_counter()
    try:
        outcome = examine(mark)
    except Exception as error:  # a claim that crashes does not hold; the person should see why
        return Verdict(None, f"{type(error).__name__}: {error}", "", time.perf_counter() - began)
    seconds = time.perf_counter() - began
    return Verdict(outcome, "", _drawn(outcome), seconds)


def _drawn(outcome: Evidence | Correction) -> str:
    from parnassus.report.evidence import evidence_figure
    from parnassus.report.ink import svg_of

    figure = evidence_figure(outcome)
    return "" if figure is None else svg_of(figure)


def open_probe(probe: Probe, run: str | None) -> list[Plain]:
    """The controls of a probe for a run: kind, limits and where they stand."""
    from parnassus.touch import start_of

    function, _, controls = _opened(probe, run, _stamp(run))
    start = start_of(function, controls)
    return [{"name": name, **_plain_control(control, start[name])} for name, control in controls.items()]


def ask(probe: Probe, run: str | None, values: Mapping[str, object]) -> list[Plain]:
    """The answers of a probe to these values of its controls."""
    import torch

    from parnassus.touch import answer

    function, trained, controls = _opened(probe, run, _stamp(run))
    with torch.inference_mode():
        return [_plain(each) for each in answer(function, trained, controls, values)]


@lru_cache(maxsize=4)
def _opened(probe: Probe, run: str | None, _stamp: int) -> "tuple[ProbeFunction, Trained | None, dict[str, Control]]":
    """A probe with a run loaded; a run that is trained anew has another stamp."""
    warm_up()
    from parnassus.touch import controls_of
    from parnassus.train.trained import Trained

    function = getattr(importlib.import_module(probe.module), probe.name)
    trained = None if run is None else Trained.open(RunFolder.open(Path(run)))
    return function, trained, controls_of(function, trained)


def _stamp(run: str | None) -> int:
    return 0 if run is None else (RunFolder.open(Path(run)).path / "run.json").stat().st_mtime_ns


def _plain_control(control: "Control", start: Any) -> Plain:
    """A control as the page's components want it; its limits are settled, so none of them is a function any more."""
    from parnassus.touch import Drawing, Pick, Point, Points, Real, Typed, Whole

    settled: Any = control
    shown: Plain
    match control:
        case Whole():
            shown = {"low": settled.low, "high": settled.high, "start": start}
        case Real(log=log):
            shown = {"low": settled.low, "high": settled.high, "log": log, "start": start}
        case Pick():
            shown = {"names": list(settled.names), "start": start}
        case Drawing():
            named = [(name, _grey(image)) for name, image in settled.examples]
            shown = {"shape": list(settled.shape), "examples": named, "start": _grey(start)}
        case Point():
            shown = {"plane": _plain_plane(settled.plane), "start": list(start)}
        case Points():
            places = [list(place) for place in start]
            shown = {"plane": _plain_plane(settled.plane), "most": settled.most, "start": places}
        case Typed():
            shown = {"most": settled.most, "start": start}
    return {"kind": type(control).__name__.lower(), "about": control.about, **shown}


def _grey(image: Any) -> list[float]:
    return [round(value, 3) for value in image.flatten().tolist()]


def _plain_plane(plane: Any) -> Plain:
    labels = [0] * len(plane.points) if plane.labels is None else plane.labels.tolist()
    points = [[round(x, 4), round(y, 4), label] for (x, y), label in zip(plane.points.tolist(), labels, strict=True)]
    return {
        "across": list(plane.across),
        "up": list(plane.up),
        "points": points,
        "classes": list(plane.classes),
        "names": [plane.across_name, plane.up_name],
    }


def _plain(answer: "Answer") -> Plain:
    """An answer as plain values, by its kind."""
    from parnassus.touch import Bars, Curves, Film, Graph, Images, Numbers, Path

    shown: Plain
    match answer:
        case Images(images=images, captions=captions):
            pictures = [_picture(image) for image in images]
            shown = {"pictures": pictures, "captions": [*captions, *[""] * (len(pictures) - len(captions))]}
        case Film(frames=frames, captions=captions):
            shown = {"frames": [_picture(_row(frame)) for frame in frames], "captions": list(captions)}
        case Bars(names=names, values=values, marked=marked):
            shown = {"names": list(names), "values": values.tolist(), "marked": marked}
            shown["errors"] = [] if answer.errors is None else answer.errors.tolist()
            shown["truth"] = [] if answer.truth is None else answer.truth.tolist()
        case Curves(lines=lines):
            points = {name: [list(map(float, x)), list(map(float, y))] for name, (x, y) in lines.items()}
            shown = {"lines": points, "marked": answer.marked}
            shown |= {"x_label": answer.x_label, "y_label": answer.y_label, "log_y": answer.log_y}
        case Path(places=places, across=across, up=up, levels=levels):
            shown = {
                "ways": {name: place.tolist() for name, place in places.items()},
                "across": [float(across[0]), float(across[-1])],
                "up": [float(up[0]), float(up[-1])],
                "levels": _relief(levels),
                "threads": [thread.tolist() for thread in answer.threads],
                "arrows": [] if answer.arrows is None else answer.arrows.tolist(),
                "dots": [] if answer.dots is None else answer.dots.tolist(),
            }
        case Graph(boxes=boxes, arrows=arrows):
            passing = [{**asdict(arrow), "through": [list(place) for place in arrow.through]} for arrow in arrows]
            shown = {"boxes": [asdict(box) for box in boxes], "arrows": passing}
        case Numbers(values=values):
            shown = {"values": dict(values)}
        case _:
            raise TypeError(f"a probe answered with {type(answer).__name__}, which is no answer")
    return {"kind": type(answer).__name__.lower(), "title": answer.title, "about": answer.about, **shown}


def _row(frame: Any) -> Any:
    """Pictures (count, channels, height, width) side by side as one, with nothing between them."""
    import torch

    count, _, height, width = frame.shape
    gap = max(1, width // 10)
    row = torch.zeros(4, height, count * (width + gap) - gap)
    for index, picture in enumerate(frame):
        here = row[:, :, index * (width + gap) : index * (width + gap) + width]
        here[:3], here[3] = picture, 1.0
    return row


def _picture(image: Any) -> str:
    """A tensor (channels, height, width) with values in [0, 1] as a PNG in a data URL."""
    pixels = (image.clamp(0, 1) * 255).round().byte().permute(1, 2, 0).numpy()
    return _png(pixels.squeeze(-1) if pixels.shape[-1] == 1 else pixels)


def _relief(levels: Any, bands: int = 12, side: int = 480) -> str:
    """Values on a grid as a picture of their level lines; by their root, so that a bowl's lie evenly."""
    import numpy as np
    from torch.nn.functional import interpolate

    fine = interpolate(levels[None, None].double(), (side, side), mode="bicubic", align_corners=True)[0, 0].numpy()
    height = np.sqrt(np.maximum(fine - fine.min(), 0))
    band = np.floor(height / max(float(height.max()), 1e-12) * bands)
    line = np.zeros_like(band, dtype=bool)
    line[1:] |= band[1:] != band[:-1]
    line[:, 1:] |= band[:, 1:] != band[:, :-1]
    alpha = np.where(line, 130, 4 * (bands - band)).astype(np.uint8)[::-1]  # row 0 of a picture is its top
    grey = np.full_like(alpha, 128)
    return _png(np.stack([grey, grey, grey, alpha], -1))


def _png(pixels: "NDArray[np.uint8]") -> str:
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG", compress_level=1)
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()
