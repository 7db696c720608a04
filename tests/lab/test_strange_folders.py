"""Damaged or hostile run folders: every page still responds and shows nothing from outside the folder."""

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from lab.conftest import Lab, StartLab
from lab.wire import Wire
from parnassus.lab.addresses import run_address
from parnassus.runs import RunFolder

pytestmark = pytest.mark.network
SECRET = "content of another file"
SCRIPT = "<script>alert(1)</script>"
ABOUT: dict[str, object] = {"experiment": "pca_on_digits", "title": "A run (book sec. 1.4).", "profile": "smoke"}
FIGURE = {"kind": "figure", "caption": "c"}
TABLE = {"kind": "table", "name": "t"}
FILES: dict[str, dict[str, str | bytes]] = {
    "story that is cut off": {"story.json": '{"a": {'},
    "story that is no text": {"story.json": b"\xff\xfe"},
    "story that is a list": {"story.json": "[1, 2]"},
    "story of other kinds": {"story.json": '{"a": 5, "b": {"kind": "dance"}, "c": {"kind": "note", "text": null}}'},
    "story with a script": {"story.json": json.dumps({SCRIPT: {"kind": "note", "name": SCRIPT, "text": SCRIPT}})},
    "figure with a nul": {"story.json": json.dumps({"a": FIGURE | {"name": "x\0y"}})},
    "figure with a long name": {"story.json": json.dumps({"a": FIGURE | {"name": "x" * 5000}})},
    "figure that leads out": {"story.json": json.dumps({"a": FIGURE | {"name": "../../../secret"}})},
    "figure without a name": {"story.json": json.dumps({"a": {"kind": "figure"}})},
    "table of numbers": {"story.json": json.dumps({"a": TABLE | {"rows": [1, 2]}})},
    "table that is none": {"story.json": json.dumps({"a": TABLE | {"rows": 5}})},
    "table of strange cells": {"story.json": json.dumps({"a": TABLE | {"rows": [{"x": [1]}, {"y": None}]}})},
    "metrics that are damaged": {"metrics.csv": "step,metric,value\nx,y\n1,2,3,4\n"},
    "metrics that are no text": {"metrics.csv": b"step,metric,value\n1,\xff,2\n"},
    "metrics that are not finite": {"metrics.csv": "step,metric,value\n1,loss,nan\n2,loss,inf\n3,a/b/c,-1\n"},
    "log that is no text": {"log.txt": b"\xff\xfe\0"},
    "error that is cut off": {"error.json": "{"},
    "error of another kind": {"error.json": '{"error": ["x", {"y": 1}]}'},
    "error with a script": {"error.json": json.dumps({"error": SCRIPT})},
    "result that is cut off": {"result.json": "{"},
    "result of another kind": {"result.json": '{"result": [1, 2], "seconds": {}}'},
    "result that is not finite": {"result.json": '{"result": {"a": NaN, "b": 1e999, "c": 1e300}, "seconds": NaN}'},
    "result with a long number": {"result.json": '{"result": {"a": 1' + "0" * 400 + '}, "seconds": 1}'},
    "about nothing": {"run.json": "{}"},
    "about other kinds": {"run.json": '{"experiment": [], "title": {}, "settings": 5, "versions": [1]}'},
    "about a script": {"run.json": json.dumps({"title": SCRIPT, "experiment": SCRIPT, "settings": {SCRIPT: SCRIPT}})},
    "about an address": {"run.json": json.dumps(ABOUT | {"experiment": "../../x?y#z", "profile": "javascript:x"})},
    "progress of another kind": {"progress.json": '{"title": [], "done": "x", "total": null}'},
    "progress beyond the end": {"progress.json": '{"title": "t", "done": 7, "total": 0, "seconds": -1}'},
}
NAMES = ["<script>", "<img src=x onerror=alert(1)>", "späße 🦌", "x" * 200, "%2e%2e", "a'b\"c", "--help", "last"]
LINKS = ["log.txt", "metrics.csv", "story.json", "error.json", "report.html", "figures"]
LISTS = ["/", "/runs", "/experiments/pca_on_digits", "/probes", "/probes/reconstruct_from_components"]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret.txt").write_text(f"step,metric,value\n1,{SECRET},2\n")
    root = outside / "runs"
    with ExitStack() as locks:
        for name, files in FILES.items():
            folder = RunFolder.create(root, name, ABOUT, stamp=False)
            for file, content in files.items():
                (folder.path / file).write_bytes(content if isinstance(content, bytes) else content.encode())
            if "progress" in name:
                locks.enter_context(folder.lock())
        for name in NAMES:
            RunFolder.create(root, name, ABOUT, stamp=False)
        for name in LINKS:
            folder = RunFolder.create(root, f"link {name}", ABOUT, stamp=False)
            if name == "figures":
                (folder.path / name).rmdir()
            (folder.path / name).symlink_to(outside if name == "figures" else outside / "secret.txt")
        if os.name != "nt":  # where names may be invalid UTF-8
            invalid_utf8 = Path(os.fsdecode(os.fsencode(root) + b"/bad-\xff"))
            invalid_utf8.mkdir()
            (invalid_utf8 / "run.json").write_text("{}")
        yield root


@pytest.fixture(scope="module")
def lab(root: Path, start_lab: StartLab) -> Iterator[Lab]:
    lab = start_lab(root)
    yield lab
    lab.stop()


def check_page(lab: Lab, path: str) -> str:
    """The source of a page, which must respond without an error and without content of other files."""
    before = len(lab.errors)
    with Wire(lab.port) as wire:
        response = wire.request(path)
    assert lab.errors[before:] == "", path
    assert response.status in (200, 404), path
    source = response.body.decode()
    assert SECRET not in source, path
    assert SCRIPT not in source, path
    assert "<img src=x" not in source, path
    return source


def test_pages_of_invalid_runs_respond(lab: Lab) -> None:
    for name in [*FILES, *NAMES, *(f"link {name}" for name in LINKS)]:
        check_page(lab, run_address(name))


def test_lists_show_other_runs(lab: Lab) -> None:
    for path in LISTS:
        source = check_page(lab, path)
        assert path != "/runs" or "about other kinds" in source


def test_invalid_runs_can_be_compared(lab: Lab) -> None:
    for name in FILES:
        check_page(lab, f"/compare?run={name.replace(' ', '+')}&run=last")
