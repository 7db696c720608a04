"""Benchmark of the slowdown of a training run while its page is open in the lab.

Within one run, the step rate is measured alternately with the lab and the browser running and with both suspended
(SIGSTOP). Printed are the mean ratio of the two rates with its standard error, the fraction of a CPU core that the lab
and the browser use, and how often the curve on the page is updated.
Limit: mean ratio at most 1.02 for every experiment.
Run: python benchmarks/watching.py [turns] (requires Chromium)
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
COUNT_UPDATES = """() => {
    window.updates = 0;
    new MutationObserver(() => window.updates++)
        .observe(document.querySelector('.chart'), {subtree: true, childList: true, attributes: true});
}"""


def main() -> int:
    turns = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        print("this benchmark requires Chromium")
        return 2
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as playwright:
        profile, root = Path(temporary, "browser"), Path(temporary, "runs")
        root.mkdir()
        browse = [chromium, "--headless", "--no-sandbox", "--remote-debugging-port=0", f"--user-data-dir={profile}"]
        serve = [sys.executable, "-m", "parnassus", "lab", "--no-browser", "--port", "0", "--folder", str(root)]
        with started(serve) as lab, started(browse) as browser:
            assert lab.stdout is not None
            address = lab.stdout.readline().split()[1]
            port = wait_for_text(profile / "DevToolsActivePort").split()[0]
            page = playwright.chromium.connect_over_cdp(f"http://127.0.0.1:{port}").contexts[0].new_page()
            ratios = [compare(name, root, page, address, watchers=(lab, browser), turns=turns) for name in RUNS]
    return 0 if max(ratios) <= LIMIT else 1


@contextmanager
def started(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    """Start a process in its own process group and terminate it on exit."""
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True
    )
    try:
        yield process
    finally:
        send(signal.SIGCONT, (process,))
        process.terminate()
        process.wait()


def compare(
    experiment: str, root: Path, page: Any, address: str, *, watchers: tuple[subprocess.Popen[str], ...], turns: int
) -> float:
    """Return the mean ratio of the step rates without and with watchers, measured in pairs within a few seconds."""
    command = [sys.executable, "-m", "parnassus", "run", experiment, *RUNS[experiment], "--quiet"]
    command += ["--threads", "1", "--device", "cpu", "--folder", str(root), "--name", experiment]
    folder, ratios, loads = RunFolder(root / experiment), [], []
    with started(command):
        wait_for_text(folder.path / "progress.json")
        page.goto(f"{address}runs/{experiment}")
        page.wait_for_selector(".chart path", state="attached")
        page.evaluate(COUNT_UPDATES)
        for turn in range(turns):
            rates = {}
            for watched in (turn % 2 == 0, turn % 2 == 1):
                send(signal.SIGCONT if watched else signal.SIGSTOP, watchers)
                time.sleep(SETTLE)
                cpu_before, before = cpu_seconds(watchers), read_progress(folder)
                time.sleep(TURN)
                after = read_progress(folder)
                rates[watched] = (after.done - before.done) / (after.seconds - before.seconds)
                if watched:
                    loads.append((cpu_seconds(watchers) - cpu_before) / TURN)
            ratios.append(rates[False] / rates[True])
        send(signal.SIGCONT, watchers)
        updates = page.evaluate("window.updates") / (turns * (SETTLE + TURN))
    ratio, error = statistics.mean(ratios), statistics.stdev(ratios) / turns**0.5
    print(f"{experiment}: unwatched / watched rate = {ratio:.3f} ± {error:.3f} ({turns} turns; limit: at most {LIMIT})")
    print(f"  CPU usage of the lab and the browser: {statistics.mean(loads):.1%} of a core")
    print(f"  curve updates: {updates:.1f} per second", flush=True)
    return ratio


def send(signal_number: signal.Signals, processes: tuple[subprocess.Popen[str], ...]) -> None:
    for process in processes:
        os.killpg(process.pid, signal_number)


def cpu_seconds(processes: tuple[subprocess.Popen[str], ...]) -> float:
    """Return the CPU seconds used by the groups of the given processes."""
    groups, ticks = {process.pid for process in processes}, 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # the process has ended
            continue
        if int(fields[2]) in groups:
            ticks += int(fields[11]) + int(fields[12])
    return ticks / float(os.sysconf("SC_CLK_TCK"))


def wait_for_text(path: Path) -> str:
    while not (path.exists() and path.read_text()):
        time.sleep(0.1)
    return path.read_text()


def read_progress(folder: RunFolder) -> Progress:
    progress = folder.progress
    assert progress is not None
    return progress


if __name__ == "__main__":
    sys.exit(main())
