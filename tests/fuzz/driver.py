"""The driver of the fuzz tests: run commands in this process and report everything but a result or a sentence.

A case is a function of (kind, seed, number), so that a failing case can be repeated alone:

    PARNASSUS_FUZZ=SEED PARNASSUS_FUZZ_FIRST=NUMBER PARNASSUS_FUZZ_CASES=1 pytest tests/fuzz -k KIND
"""

import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from errno import EACCES
from hashlib import sha256
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path
from random import Random
from types import FrameType

from parnassus.cli.main import main

SEED = int(os.environ.get("PARNASSUS_FUZZ", "0"))
CASES = int(os.environ.get("PARNASSUS_FUZZ_CASES", "2000"))
"""Number of cases of all tests of this folder together; each test takes its share."""
FIRST = int(os.environ.get("PARNASSUS_FUZZ_FIRST", "0"))
"""Number of the first case, so that many cases can be run in pieces."""
MAX_SECONDS = 60
EXIT_CODES = (0, 2)


class HangError(BaseException):
    """A command takes longer than allowed; no handler of the package catches it."""


@dataclass(frozen=True)
class Outcome:
    """What a command returned and printed, and the traceback of an exception that left it."""

    code: int
    out: str
    err: str
    crash: str = ""
    written: tuple[str, ...] = ()  # files outside the sandbox that the command wrote

    @property
    def problem(self) -> str:
        """Why the outcome is neither a result nor a sentence; empty if it is one."""
        problems = {
            self.crash: bool(self.crash),
            f"wrote outside the folder: {', '.join(self.written)}": bool(self.written),
            f"exit code {self.code}: {self.err[-300:]}": self.code not in EXIT_CODES,
            "printed a traceback": "Traceback (most recent" in self.err + self.out,
            "exit code 2 without a sentence": self.code == 2 and not self.err.strip(),
            f"a message of {len(self.err.splitlines())} lines": self.code == 2 and self._is_long,
        }
        return next((problem for problem, is_found in problems.items() if is_found), "")

    @property
    def _is_long(self) -> bool:
        """Whether a sentence of the package, rather than the parser's box, has many lines."""
        return self.err.startswith("parnassus: ") and len(self.err.splitlines()) > MAX_LINES


MAX_LINES = 12
"""Maximum length of an error message in lines."""


@dataclass(frozen=True)
class Case:
    """One command, with what it reads from standard input, and a check of its outcome."""

    label: str
    arguments: Sequence[str]
    stdin: bytes = b""
    check: Callable[[Outcome], str] = field(default=lambda outcome: "")  # the problem, if the outcome is wrong


@dataclass(frozen=True)
class Sandbox:
    """The folder of a test: commands run in `work` and may write below `root`, but not in `outside`."""

    root: Path

    @property
    def work(self) -> Path:
        return self.root / "a" / "b" / "work"

    @property
    def outside(self) -> Path:
        return self.root / "outside"

    def create(self) -> "Sandbox":
        self.work.mkdir(parents=True)
        self.outside.mkdir()
        (self.outside / "canary.txt").write_text("step,metric,value\n1,canary,2\n")
        (self.outside / "canary.json").write_text('{"experiment": "canary"}')
        return self

    def digest(self) -> dict[str, str]:
        """The checksums of the files that no command may change."""
        return {str(path): sha256(path.read_bytes()).hexdigest() for path in self.outside.rglob("*") if path.is_file()}


def run_command(arguments: Sequence[str], sandbox: Sandbox, *, stdin: bytes = b"") -> Outcome:
    """Run `parnassus ARGUMENTS` in this process, in the working directory of the sandbox."""
    out, err, crash, code = StringIO(), StringIO(), "", 0
    before = sys.argv, sys.stdin, Path.cwd()
    sys.argv, sys.stdin = ["parnassus", *arguments], TextIOWrapper(BytesIO(stdin), encoding="utf-8")
    os.chdir(sandbox.work)
    try:
        with (
            watch_writes(sandbox) as written,
            redirect_stdout(out),
            redirect_stderr(err),
            time_limit(MAX_SECONDS),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")  # of libraries, about degenerate plots and fits
            main()
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except HangError:
        crash = f"hangs for more than {MAX_SECONDS} s: {traceback.format_exc()[-1500:]}"
    except Exception:
        crash = traceback.format_exc()
    finally:
        sys.argv, sys.stdin = before[:2]
        os.chdir(before[2])
    return Outcome(code, out.getvalue(), err.getvalue(), crash, tuple(written))


def run_cases(kind: str, share: float, make_case: Callable[[Random], Case], sandbox: Sandbox) -> list[str]:
    """Run this test's share of the cases; returns one message for each that fails."""
    failures, before = list[str](), sandbox.digest()
    for number in case_numbers(share):
        case = make_case(Random(f"{SEED} {kind} {number}"))
        outcome = run_command(case.arguments, sandbox, stdin=case.stdin)
        problem = outcome.problem or case.check(outcome)
        if not problem and sandbox.digest() != before:
            problem = "changed files outside the folder"
        if problem:
            command = " ".join(map(repr, case.arguments))[:400]
            failures.append(f"{kind} {number} (seed {SEED}), {case.label}: {command}\n{problem}")
    return failures


def case_numbers(share: float) -> range:
    """The numbers of the cases of a test that takes this share of all; a single case belongs to every test."""
    if CASES == 1:
        return range(FIRST, FIRST + 1)
    return range(round(FIRST * share), round((FIRST + CASES) * share))


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise a HangError after some seconds, where signals exist."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise HangError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


# writes outside the sandbox

WRITING_EVENTS = {"os.mkdir", "os.remove", "os.rmdir", "os.rename", "os.symlink", "os.link", "os.truncate", "os.chmod"}
CACHES = ("__pycache__", "/.cache/", "matplotlib", "/proc/self/fd")
_watched: list[tuple[Path, list[str]]] = []


@contextmanager
def watch_writes(sandbox: Sandbox) -> Iterator[list[str]]:
    """The paths outside the sandbox that Python tries to write, apart from caches; the attempts fail."""
    written: list[str] = []
    _install_hook()
    _watched.append((sandbox.root.resolve(), written))
    try:
        yield written
    finally:
        _watched.pop()


def _install_hook() -> None:
    if not _installed:
        sys.addaudithook(_note_writes)  # cannot be removed: it does nothing unless a sandbox is watched
        _installed.append(True)


_installed: list[bool] = []


def _note_writes(event: str, arguments: tuple[object, ...]) -> None:
    if not _watched:
        return
    if event == "open":
        path, mode, flags = arguments
        is_writing = isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC))
        if isinstance(mode, str) and not set(mode) & set("wax+"):
            is_writing = False
        paths: tuple[object, ...] = (path,) if is_writing else ()
    elif event in WRITING_EVENTS:
        paths = arguments[:2] if event in ("os.rename", "os.link") else arguments[:1]
        paths = arguments[1:2] if event == "os.symlink" else paths
    else:
        return
    root, written = _watched[-1]
    for path in paths:
        if not isinstance(path, str | bytes | os.PathLike):
            continue
        place = os.path.realpath(os.fsdecode(path))
        if place != os.devnull and not Path(place).is_relative_to(root) and not any(each in place for each in CACHES):
            written.append(f"{event} {place}")
            raise PermissionError(EACCES, "the sandbox ends here", place)
