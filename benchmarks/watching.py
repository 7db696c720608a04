"""What it costs a run to be watched: its rate with the lab's page open on it and without, in turns within one run.

    python benchmarks/watching.py [turns]

The lab and the browser stand still (SIGSTOP) during every other turn. Prints the mean ratio of the two rates with its
standard error, at most 1.02, the share of a core that the lab and the browser take, and how often the curve moved.
"""

import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from parnassus.runs import Progress, RunFolder

LIMIT = 1.02
SETTLE, TURN = 0.6, 2.0
RUNS = {"classifier_on_digits": ["--epochs", "1000000"], "diffusion_on_moons": ["--steps", "1000000"]}
COUNT_MOVES = """() => {
    window.moves = 0;
    new MutationObserver(() => window.moves++)
        .observe(document.querySelector('.chart'), {subtree: true, childList: true, attributes: true});
}"""


def main() -> int:
    turns = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        print("this benchmark needs Chromium")
        return 2
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as playwright:
        profile, root = Path(temporary, "browser"), Path(temporary, "runs")
        root.mkdir()
        look = [chromium, "--headless", "--no-sandbox", "--remote-debugging-port=0", f"--user-data-dir={profile}"]
        serve = [sys.executable, "-m", "parnassus", "lab", "--no-browser", "--port", "0", "--folder", str(root)]
        with started(serve) as lab, started(look) as browser:
            assert lab.stdout is not None
            address = lab.stdout.readline().split()[1]
            port = wait_for_text(profile / "DevToolsActivePort").split()[0]
            page = playwright.chromium.connect_over_cdp(f"http://127.0.0.1:{port}").contexts[0].new_page()
            ratios = [race(name, root, page, address, watchers=(lab, browser), turns=turns) for name in RUNS]
    return 0 if max(ratios) <= LIMIT else 1


@contextmanager
def started(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    """A process in a group of its own, which leaves with us."""
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True
    )
    try:
        yield process
    finally:
        send(signal.SIGCONT, (process,))
        process.terminate()
        process.wait()


def race(
    experiment: str, root: Path, page: Any, address: str, *, watchers: tuple[subprocess.Popen[str], ...], turns: int
) -> float:
    """The mean ratio of the rate alone to the rate while watched, each pair a few seconds apart."""
    words = [sys.executable, "-m", "parnassus", "run", experiment, *RUNS[experiment], "--quiet"]
    words += ["--threads", "1", "--device", "cpu", "--folder", str(root), "--name", experiment]
    folder, ratios, shares = RunFolder(root / experiment), [], []
    with started(words):
        wait_for_text(folder.path / "progress.json")
        page.goto(f"{address}runs/{experiment}")
        page.wait_for_selector(".chart path", state="attached")
        page.evaluate(COUNT_MOVES)
        for turn in range(turns):
            rates = {}
            for watched in (turn % 2 == 0, turn % 2 == 1):
                send(signal.SIGCONT if watched else signal.SIGSTOP, watchers)
                time.sleep(SETTLE)
                spent, before = seconds_of(watchers), told(folder)
                time.sleep(TURN)
                after = told(folder)
                rates[watched] = (after.done - before.done) / (after.seconds - before.seconds)
                if watched:
                    shares.append((seconds_of(watchers) - spent) / TURN)
            ratios.append(rates[False] / rates[True])
        send(signal.SIGCONT, watchers)
        moves = page.evaluate("window.moves") / (turns * (SETTLE + TURN))
    ratio, error = statistics.mean(ratios), statistics.stdev(ratios) / turns**0.5
    print(f"{experiment}: alone / watched = {ratio:.3f} ± {error:.3f} ({turns} turns), limit {LIMIT}")
    print(f"  the lab and the browser take {statistics.mean(shares):.1%} of a core")
    print(f"  the curve moved {moves:.1f} times a second", flush=True)
    return ratio


def send(what: signal.Signals, processes: tuple[subprocess.Popen[str], ...]) -> None:
    for process in processes:
        os.killpg(process.pid, what)


def seconds_of(processes: tuple[subprocess.Popen[str], ...]) -> float:
    """The processor time that these process groups have used."""
    groups, ticks = {process.pid for process in processes}, 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        if int(fields[2]) in groups:
            ticks += int(fields[11]) + int(fields[12])
    return ticks / float(os.sysconf("SC_CLK_TCK"))


def wait_for_text(path: Path) -> str:
    while not (path.exists() and path.read_text()):
        time.sleep(0.1)
    return path.read_text()


def told(folder: RunFolder) -> Progress:
    progress = folder.progress
    assert progress is not None
    return progress


if __name__ == "__main__":
    sys.exit(main())
