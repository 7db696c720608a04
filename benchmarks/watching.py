"""What it costs a run to be watched: its rate with the lab's page open on it and without, in turns within one run.

    python benchmarks/watching.py [turns]

Prints the median ratio of the two rates, at most 1.02, and how often a second the watched curve moved.
"""

import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from parnassus.runs import Progress, RunFolder

LIMIT = 1.02
SETTLE, TURN = 1.0, 4.0
RUNS = {"classifier_on_digits": ["--epochs", "1000000"], "diffusion_on_moons": ["--steps", "1000000"]}
SHAPE = "[...document.querySelectorAll('.chart path')].map(p => p.getAttribute('d')).join()"


def main() -> int:
    turns = int(sys.argv[1]) if len(sys.argv) > 1 else 8
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        print("this benchmark needs Chromium")
        return 2
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        words = [sys.executable, "-m", "parnassus", "lab", "--no-browser", "--port", "0", "--folder", folder]
        lab = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        assert lab.stdout is not None
        address = lab.stdout.readline().split()[1]
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        try:
            ratios = [race(name, Path(folder), browser.new_page(), address, turns) for name in RUNS]
        finally:
            browser.close()
            lab.terminate()
            lab.wait()
    return 0 if max(ratios) <= LIMIT else 1


def race(experiment: str, root: Path, page: Any, address: str, turns: int) -> float:
    """The median ratio of the rate alone to the rate while watched, each pair a few seconds apart."""
    words = [sys.executable, "-m", "parnassus", "run", experiment, *RUNS[experiment], "--quiet"]
    words += ["--threads", "1", "--device", "cpu", "--folder", str(root), "--name", experiment]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ})
    folder, ratios, moves = RunFolder(root / experiment), [], []
    try:
        while not (folder.path / "progress.json").exists():
            time.sleep(0.1)
        for _ in range(turns):
            page.goto(f"{address}runs/{experiment}")
            page.wait_for_selector(".chart path", state="attached")
            watched, moved = rate(folder, page)
            page.goto("about:blank")
            alone, _ = rate(folder, None)
            ratios.append(alone / watched)
            moves.append(moved)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()
    ratio = statistics.median(ratios)
    print(f"{experiment}: alone / watched = {ratio:.3f} ({min(ratios):.3f} … {max(ratios):.3f}), limit {LIMIT}")
    print(f"{' ' * len(experiment)}  the curve moved {statistics.median(moves):.1f} times a second", flush=True)
    return ratio


def rate(folder: RunFolder, page: Any) -> tuple[float, float]:
    """Steps a second over one turn, as the run itself counts them, and how often a second the page's curve moved."""
    time.sleep(SETTLE)
    before, shapes, began = told(folder), set(), time.monotonic()
    while time.monotonic() - began < TURN:
        time.sleep(0.2)
        if page is not None:
            shapes.add(page.evaluate(SHAPE))
    after = told(folder)
    return (after.done - before.done) / (after.seconds - before.seconds), len(shapes) / TURN


def told(folder: RunFolder) -> Progress:
    progress = folder.progress
    assert progress is not None
    return progress


if __name__ == "__main__":
    sys.exit(main())
