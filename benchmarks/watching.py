"""What it costs a run to be watched: the same run alone and with the lab's page open on it, one after the other.

    python benchmarks/watching.py [pairs]

Prints the ratio of the times that the runs themselves report, and how often a second the watched curve moved.
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from parnassus.runs import RunFolder

LIMIT = 1.02
FLAGS = {
    "classifier_on_digits": ["--epochs", "1500"],
    "diffusion_on_moons": ["--steps", "3000"],
}
SHAPE = "[...document.querySelectorAll('.chart path')].map(p => p.getAttribute('d')).join()"


def main() -> int:
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        print("this benchmark needs Chromium")
        return 2
    worst = 0.0
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        root = Path(folder)
        words = [sys.executable, "-m", "parnassus", "lab", "--no-browser", "--port", "0", "--folder", folder]
        lab = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        assert lab.stdout is not None
        address = lab.stdout.readline().split()[1]
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        try:
            for experiment in FLAGS:
                worst = max(worst, race(experiment, root, browser, address, pairs))
        finally:
            browser.close()
            lab.terminate()
            lab.wait()
    return 0 if worst <= LIMIT else 1


def race(experiment: str, root: Path, browser: Any, address: str, pairs: int) -> float:
    """The median ratio of a watched run to an unwatched one."""
    ratios, moves = [], []
    for pair in range(pairs):
        alone = train(experiment, root, f"{experiment}-alone-{pair}")
        page = browser.new_page()
        watched, shapes = watch(experiment, root, f"{experiment}-watched-{pair}", page, address)
        page.close()
        ratios.append(watched / alone)
        moves.append(shapes)
    ratio = statistics.median(ratios)
    spread = f"{min(ratios):.3f} … {max(ratios):.3f}"
    print(f"{experiment}: watched / alone = {ratio:.3f} ({spread}, {pairs} pairs), limit {LIMIT}")
    print(f"{' ' * len(experiment)}  the curve moved {statistics.median(moves):.1f} times a second")
    return ratio


def start(experiment: str, root: Path, name: str) -> "subprocess.Popen[bytes]":
    words = [sys.executable, "-m", "parnassus", "run", experiment, *FLAGS[experiment], "--quiet"]
    words += ["--threads", "1", "--device", "cpu", "--folder", str(root), "--name", name]
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1"})


def train(experiment: str, root: Path, name: str) -> float:
    assert start(experiment, root, name).wait() == 0
    return seconds(root, name)


def watch(experiment: str, root: Path, name: str, page: Any, address: str) -> tuple[float, float]:
    process = start(experiment, root, name)
    while not (root / name / "progress.json").exists():
        time.sleep(0.05)
    page.goto(f"{address}runs/{name}")
    page.wait_for_selector(".chart path", state="attached")
    began, seen = time.monotonic(), set()
    while process.poll() is None:
        progress = RunFolder(root / name).progress
        if progress is not None and progress.done < progress.total:
            seen.add(page.evaluate(SHAPE))
            ended = time.monotonic()
        time.sleep(0.2)
    return seconds(root, name), len(seen) / (ended - began)


def seconds(root: Path, name: str) -> float:
    return float(RunFolder(root / name).read_json("result.json")["seconds"])  # type: ignore[arg-type]


if __name__ == "__main__":
    sys.exit(main())
