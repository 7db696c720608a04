"""Kill the runs of experiments with SIGKILL, resume them, and compare them bit by bit with uninterrupted runs.

Every run has the smoke profile, saves after every step, and is killed at random steps.
The outcome of each experiment is recorded at once in build/kills.json; experiments recorded there are not repeated
unless they are named, so that the tool can be interrupted at any time.

Run: make kills ARGS="vae ppo --minutes 30", or python tests/kills.py --help
"""

import argparse
import json
import multiprocessing
import os
import random
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from typing import NamedTuple

from parnassus.atlas.index import load_atlas
from parnassus.runs.folder import RunFolder
from parnassus.train.checkpoint import load_tree

COMPARED_FILES = ("metrics.csv", "weights.safetensors")
TIMES = {
    *("time_ratio_to_torch", "time_ratio_recurrent", "time_ratio_loop", "time_ratio_cholesky", "sampling_time_ratio"),
    *("time_exponent", "softmax_time_exponent", "time_exponent_fused", "time_exponent_linear"),
    *("speedup", "speedup_linear", "cost_ratio", "steps_per_second"),
    *("seconds", "training_seconds", "kernel_seconds", "fourier_seconds"),
    *(f"microseconds_{kind}" for kind in ("dense", "convolution", "pooled")),
    *(f"{name}_{action}_ms" for name in ("pixel_rnn", "pixelcnn", "gated") for action in ("step", "sample")),
}
"""Results that are measured times, which differ between two runs."""
OUTCOMES = Path(__file__).parents[1] / "build" / "kills.json"
FLAGS = ("--profile", "smoke", "--name", "run", "--save-steps", "1", "--device", "cpu", "--threads", "1", "--quiet")


class Reference(NamedTuple):
    """An uninterrupted run, with its number of checkpoints and its seconds."""

    folder: RunFolder
    checkpoints: int
    seconds: float


def find_differences(reference: RunFolder, other: RunFolder) -> list[str]:
    """The files and results in which two runs differ, except for measured times."""
    files = [reference.path / name for name in COMPARED_FILES]
    different = [each.name for each in files if each.exists() and each.read_bytes() != _content(other, each.name)]
    expected, actual = (dict(_results(folder)) for folder in (reference, other))
    return different + [name for name in expected.keys() - TIMES if expected[name] != actual.get(name)]


def run_reference(name: str, root: Path) -> Reference:
    start = time.monotonic()
    process = start_process(name, root)
    checkpoints = wait(process, root / "run")
    check_exit(process, root)
    return Reference(RunFolder.open(root / "run"), checkpoints, time.monotonic() - start)


def kill_and_resume(name: str, root: Path, reference: Reference, *, kills: int, seed: int) -> list[str]:
    """Kill a run `kills` times, after similar numbers of checkpoints, then let it finish; returns where it was killed.

    Raises an AssertionError if the finished run differs from the reference, or if a kill left a damaged folder.
    """
    rng, killed = random.Random(seed), list[str]()
    folder, per_kill = RunFolder(root / "run"), reference.checkpoints / (kills + 1)
    while True:
        process = start_process(name, root)
        if len(killed) < kills:
            if reference.checkpoints:
                wait(process, folder.path, round(per_kill * rng.uniform(0.5, 1.0)))
            process.join(rng.uniform(0.0, 0.05 if reference.checkpoints else reference.seconds))
        else:
            process.join()
        if not process.is_alive():
            break
        process.kill()
        process.join()
        killed.append(check_killed(folder))
    check_exit(process, root)
    different = find_differences(reference.folder, folder)
    assert not different, f"{', '.join(different)} differ after kills: {'; '.join(killed)}"
    assert (folder.path / "report.html").exists()
    return killed


def wait(process: ForkServerProcess, folder: Path, count: int | None = None) -> int:
    """Wait until the process has ended or has written `count` checkpoints; returns their number."""
    checkpoint = folder / "checkpoint.safetensors"
    seen, last = 0, _changed_at(checkpoint)
    while process.is_alive() and (count is None or seen < count):
        if (changed := _changed_at(checkpoint)) != last:
            seen, last = seen + 1, changed
        process.join(0.001)
    return seen


def check_killed(folder: RunFolder) -> str:
    """Check the folder of a killed run; returns where the run was."""
    if not folder.path.exists():
        return "before its folder was created"
    for path in folder.path.rglob("*.json"):
        if not path.name.startswith("."):
            json.loads(path.read_text(encoding="utf-8"))
    assert folder.status in ("interrupted", "finished"), folder.status
    if folder.status == "finished":
        return "after its result was written"
    checkpoint = folder.path / "checkpoint.safetensors"
    if not checkpoint.exists():
        return "before its first checkpoint"
    tree = load_tree(checkpoint)
    assert isinstance(tree, dict)
    loop, step = tree["position"]
    return f"after the checkpoint at step {step} of loop {loop + 1}"


def start_process(name: str, root: Path) -> ForkServerProcess:
    """Start or resume the run `root`/run in a new process."""
    process = _context().Process(target=run_or_resume, args=(name, root))
    process.start()
    return process


def run_or_resume(name: str, root: Path) -> None:
    """Run the command line in this process, with its output in `root`/output.txt."""
    from parnassus.cli.main import dispatch

    root.mkdir(parents=True, exist_ok=True)
    with (root / "output.txt").open("w") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
        folder = RunFolder(root / "run")
        command = ["resume", "run"] if (folder.path / "run.json").exists() else ["run", name, *FLAGS]
        if folder.status == "finished" and (folder.path / "report.html").exists():
            return  # killed after its end
        sys.exit(dispatch([*command, "--folder", str(root)]))


def check_exit(process: ForkServerProcess, root: Path) -> None:
    assert process.exitcode == 0, f"exit code {process.exitcode}: {(root / 'output.txt').read_text()[-2000:]}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Kill all experiments, or those named; returns 1 if any is not identical after resuming."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiments", nargs="*", help="by default, all that are not recorded yet")
    parser.add_argument("--kills", type=int, default=3, help="kills per experiment")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="start no experiment after this time")
    parser.add_argument("--state", type=Path, default=OUTCOMES, help="file of the outcomes")
    options = parser.parse_args(arguments)
    deadline = time.monotonic() + 60 * options.minutes
    outcomes: dict[str, dict[str, object]] = json.loads(options.state.read_text()) if options.state.exists() else {}
    names = options.experiments or [name for name in load_atlas().experiments if name not in outcomes]
    for name in names:
        start = time.monotonic()
        if start > deadline:
            break
        with tempfile.TemporaryDirectory() as folder:
            try:
                reference = run_reference(name, Path(folder) / "reference")
                killed = kill_and_resume(name, Path(folder), reference, kills=options.kills, seed=len(outcomes))
                outcome: dict[str, object] = {"identical": True, "killed": killed}
            except Exception as error:
                reason = str(error) or traceback.format_exc()
                outcome = {"identical": False, "error": reason}
        outcomes[name] = {**outcome, "seconds": round(time.monotonic() - start, 1)}
        options.state.parent.mkdir(parents=True, exist_ok=True)
        new = options.state.with_suffix(".new")
        new.write_text(json.dumps(outcomes, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        new.replace(options.state)
        print(f"{name}: {outcome.get('error', outcome.get('killed'))}", flush=True)
    failed = [name for name, outcome in outcomes.items() if not outcome["identical"]]
    kills = sum(
        len(each) for each in (outcome.get("killed") for outcome in outcomes.values()) if isinstance(each, list)
    )
    print(f"{len(outcomes)} experiments, {kills} kills, {len(failed)} not identical: {', '.join(failed) or 'none'}")
    return 1 if failed else 0


def _context() -> ForkServerContext:
    """New processes are forks of one that has imported torch: they start in milliseconds."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["parnassus.cli.run", "parnassus.train.execute", "matplotlib.figure"])
    return context


def _changed_at(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


def _content(folder: RunFolder, name: str) -> bytes:
    path = folder.path / name
    return path.read_bytes() if path.exists() else b""


def _results(folder: RunFolder) -> dict[str, object]:
    results = folder.read_json("result.json")["result"]
    assert isinstance(results, dict)
    return results


if __name__ == "__main__":
    sys.exit(main())
